//! The chart on a real API server, by the means of those who use it.

#[path = "../common/mod.rs"]
mod common;

mod lifecycle;
mod server;
mod world;
