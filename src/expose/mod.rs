//! What the daemon knows, to the world. Over HTTP: `/metrics` for Prometheus,
//! `/` for people, `/applications/...` for the report of one run,
//! `/-/healthy` and `/-/ready` for whoever restarts it, `/-/reload` for whoever
//! configures it. By OTLP: [`otlp`]. Who may read all that says [`WebConfig`].
//!
//! [`ExposeState`] holds the latest snapshot; the daemon publishes into it
//! after each cycle and a request only reads it. [`run`] takes the listener
//! and the shutdown future, so that a test binds port 0 and stops it at will.

mod address;
mod body;
mod connection;
mod lifecycle;
mod negotiate;
pub mod otlp;
mod page;
mod report_cache;
mod reports;
mod routes;
mod server;
mod state;
mod texts;
mod web;
mod write_deadline;

pub use lifecycle::{ReloadRequest, Reloader};
pub use server::run;
pub use state::ExposeState;
pub use texts::LiveTexts;
pub use web::WebConfig;
