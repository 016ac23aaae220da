//! Spark's event log -> [`crate::model::Application`].
//!
//! Four steps, one file each: `layout` finds the files of a log, `codec`
//! decompresses them, `lines` splits them, and `replay` works out from the
//! events what [`crate::model`] asks. `event` says which fields of Spark's
//! JSON are read.
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
mod layout;
mod lines;
mod pipeline;
mod plan;
mod read;
mod replay;
#[cfg(test)]
mod tests;

pub use codec::{Damage, UnsupportedCodec};
pub use follow::{Advance, Follower};
pub use layout::{LogFile, LogFiles, Scan, SkipReason, group, scan};
pub use read::{ReadError, ReadOptions, ReadOutcome, ReadStatistics, read, read_from};
