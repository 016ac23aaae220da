//! The chart on a real API server.

#[path = "../common/mod.rs"]
mod common;

mod server;
