//! Spark's REST API v1 into the model: one file an endpoint, each with the
//! typed answer and the call that gets it.
//!
//! Every parameter is sent on every call: the defaults differ between
//! endpoints and some are ruinous (`details=true` sends every task). Every
//! field is optional, unknown ones are ignored, and what makes no sense is
//! dropped, so that Spark 3.3 to 4.3 are read by the same types.
//!
//! [`assemble`] puts decoded answers together into an
//! [`crate::model::Application`] and needs no server; [`running`] polls one
//! live driver within a budget. Of a History Server's finished runs [`logs`]
//! gets the event log itself, which costs the server little, and
//! [`completed`] reads what its API says where that cannot be had.

mod api;
pub mod applications;
pub mod assemble;
pub mod completed;
mod details;
pub mod dropped_events;
pub mod environment;
pub mod executors;
pub mod jobs;
mod listing;
pub mod logs;
pub mod running;
pub mod saved;
pub mod sql;
mod sql_list;
pub mod stages;
pub mod storage_rdd;
pub mod task_list;
pub mod task_summary;
pub mod value;
pub mod version;

pub use api::{Api, ApplicationPath};
pub use running::{CycleCost, RunningApplication};
