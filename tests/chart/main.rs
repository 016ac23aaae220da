//! The Helm chart as Helm renders it, 3 and 4: what it makes of each of
//! `ci/*-values.yaml`, that every value does something, what is refused, and
//! that what it hands on is the project's own (alerts, dashboards,
//! configuration, flags). No cluster is asked here.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;

mod binary;
mod files;
mod guarded;
mod helm;
mod notes;
mod objects;
mod refused;
mod rendered;
mod rules;
mod subchart;
mod values;
mod web;
