//! Watches Apache Spark from outside and says what is wrong.
//!
//! Data flows one way through the folders below, and each imports only from
//! those that stand above it (`tests/architecture.rs` holds them to it):
//!
//! ```text
//! config/     what the operator may say
//! telemetry/  the daemon's own events: log line and counter in one
//! model/      what an application is
//! fetch/      bytes in: over HTTP, and from files wherever they lie
//! texts/      what Spark writes for people: plans, drivers' logs -> model
//! rest/       Spark's REST API  -> model
//! eventlog/   Spark's event log -> model
//! discover/   where applications are
//! diagnose/   model -> findings
//! report/     one diagnosis for a person
//! store/      what survives a restart: runs read, totals by name
//! metrics/    the catalogue, and the snapshot built from it
//! watch/      the daemon: schedule, politeness, retention
//! expose/     snapshot -> HTTP and OTLP
//! cli/        one file a command
//! ```
//!
//! Follow one number: a task's run time enters in [`eventlog`] or [`rest`],
//! sits in a stage's [`model::Distribution`], makes a finding in
//! [`diagnose`], becomes a sample in [`metrics`] and leaves through
//! [`expose`]. It never goes back.

pub mod cli;
pub mod config;
pub mod diagnose;
pub mod discover;
pub mod eventlog;
pub mod expose;
pub mod fetch;
pub mod metrics;
pub mod model;
pub mod report;
pub mod rest;
pub mod store;
pub mod telemetry;
pub mod texts;
pub mod watch;
