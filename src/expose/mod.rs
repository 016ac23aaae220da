//! What the daemon knows, to the world. Over HTTP: `/metrics` for Prometheus,
//! `/` for people, `/applications/...` for the report of one run,
//! `/-/healthy` and `/-/ready` for whoever restarts it. By OTLP: [`otlp`].
//!
//! [`ExposeState`] holds the latest snapshot; the daemon publishes into it
//! after each cycle and a request only reads it. [`run`] takes the listener
//! and the shutdown future, so that a test binds port 0 and stops it at will.

mod address;
mod body;
mod negotiate;
pub mod otlp;
mod page;
mod report_cache;
mod reports;
mod routes;
mod server;
mod state;
mod write_deadline;

pub use server::run;
pub use state::ExposeState;
