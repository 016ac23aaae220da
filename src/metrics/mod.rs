//! From runs and their diagnoses to metrics: the [`catalogue`] says what there
//! is, [`build`] makes a [`Snapshot`] of it, [`prometheus`] writes a snapshot
//! as text. Pure: the daemon builds it after each cycle, `expose` serves it.

pub mod catalogue;
mod daemon;
mod executor;
mod exemplar;
mod finding;
mod group;
mod kubernetes;
pub mod label;
mod name;
pub mod prometheus;
mod run;
mod sample;
mod snapshot;
mod sql_execution;
mod stage;
mod streaming;

pub use name::{NameView, SuccessDue, app_name};
pub use sample::{Exemplar, Extra, Histogram, Sample, Value};
pub use snapshot::{Family, RunView, ShownRun, Snapshot, build};
