//! Spark's event log -> [`crate::model::Application`].
//!
//! ```text
//! layout    which files of a place make up which log
//! codec     a file's bytes        -> decompressed bytes
//! lines     decompressed bytes    -> batches of lines, without what is not read
//! feed      the files of a log    -> batches, within the limits
//! pipeline  one thread fills batches, another takes them
//! replay    lines                 -> what [`crate::model`] asks
//! read      a log that is finished, from its files to the model
//! follow    a log that grows, read on from where it was
//! ```
//!
//! `event` says which fields of Spark's JSON are read, `accumulables`, `plan`
//! and `event_sql` which of those of SQL.
//!
//! Everything here blocks and knows nothing of the daemon, which calls it on
//! a bounded number of blocking threads.

mod accumulables;
mod codec;
mod event;
mod event_sql;
mod feed;
mod field;
mod follow;
#[doc(hidden)]
pub mod fuzzing;
mod layout;
mod lines;
mod listed;
mod pipeline;
mod plan;
mod read;
mod replay;
mod task_end;
#[cfg(test)]
mod tests;

pub use codec::{Damage, UnsupportedCodec};
pub use follow::{Advance, Follower};
pub use layout::{LogFile, LogFiles, Scan, SkipReason, group, scan};
pub use listed::{Listed, read_listed};
pub use read::{
    ReadError, ReadOptions, ReadOutcome, ReadStatistics, Wants, read, read_from, read_if,
};
