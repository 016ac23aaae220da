//! The whole daemon, as a user starts it, before a real OpenTelemetry
//! Collector: metrics, traces and logs over both protocols, compared with
//! `/metrics` and with the event logs; an independent decoder; back ends that
//! are down, slow, small or refuse.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;

mod collector;
mod log;
mod real_collector;
mod received;
mod scraped;
mod tap;
mod world;
