//! The chart on a real API server, by the means of those who use it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;

#[cfg(feature = "kubernetes")]
mod container;
#[cfg(feature = "kubernetes")]
mod daemon;
mod examples;
mod lifecycle;
mod rights;
mod server;
mod without_operator;
mod world;
