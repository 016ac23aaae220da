//! Real Prometheus (2.42 and 3) and a real Alertmanager, with the very files of
//! `alerts/` and `dashboards/`, on real runs of Spark: the right alert arrives
//! and no other, and every panel has something to show.
//!
//! One binary, so that what one test waits for another one uses.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../support/mod.rs"]
mod support;

mod alerts;
mod all;
mod files;
mod grafana;
mod live;
mod otlp;
mod panels;
mod runs;
mod scrape;
mod servers;
mod world;

use std::time::Duration;

pub(crate) const SOON: Duration = Duration::from_mins(2);
