//! Discovery against a real API server of Kubernetes: pods and custom
//! resources that come, change and go; connections, permissions and the
//! server itself that do.
//!
//! No kubelet runs here: a pod is what a test writes, and its driver a
//! recorded or a real one on loopback.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;

mod gate;
mod setting;
mod watched_cluster;
