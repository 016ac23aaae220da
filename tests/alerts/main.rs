//! The alerts of `alerts/`: they are what the mixin makes, each fires when it
//! should and is quiet when it should be (`promtool test rules`, Prometheus
//! 2.42 and 3), what they ask for exists, and each has its runbook.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;

mod files;
mod judged;
mod mixin;
mod names;
mod page;
mod routes;
mod runbooks;
