//! The chart on a real API server, by the means of those who use it.

#[path = "../common/mod.rs"]
mod common;

mod examples;
mod lifecycle;
mod rights;
mod server;
mod without_operator;
mod world;
