//! Texts that Spark writes for people -> model: plans as `EXPLAIN` shows them,
//! and the log of a driver. They tell less than an event log or the REST API,
//! and are all that some people have.
//!
//! Pure: a text or a reader in, the model out, every line and list bounded.

pub mod driver_log;
pub mod explain;
mod explain_details;
mod explain_merge;
mod log_line;

pub use explain_merge::{add_details, add_text};
