//! The whole daemon, as a user starts it, before a real OpenTelemetry
//! Collector: metrics, traces and logs over both protocols, compared with
//! `/metrics` and with the event logs; an independent decoder; back ends that
//! are down, slow, small or refuse.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;

mod collector;
mod live;
mod log;
mod received;
mod scraped;
mod tap;
mod world;

mod decoder;
mod faults;
mod metrics;
mod own;
mod page;
mod records;
mod traces;
