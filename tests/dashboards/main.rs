//! The dashboards of `dashboards/`: what they ask for exists, what they say can
//! be read, where they lead to is there, and they are what their source makes.
//! That every panel shows something is tested where a real Prometheus is
//! (`prometheus`); a running Grafana is not.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod links;
mod lint;
mod look;
mod made;
mod queries;
mod read;
