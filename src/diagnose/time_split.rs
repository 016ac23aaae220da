//! Where the time went: each instant of a span given to what held it up.
//!
//! Each instant of the run goes to: no executor: `resources`; executors but no
//! job: `driver`; a job but no task: `scheduling`; else it is shared equally
//! among the running tasks, by each one's own split of its duration. The parts
//! sum to the whole.

use std::time::Duration;

use serde::Serialize;

use crate::model::Application;

/// What an instant went to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TimePart {
    /// No executor was there.
    Resources,
    /// Executors were there and no job ran.
    Driver,
    /// A job ran and no task of it.
    Scheduling,
    Deserialize,
    Cpu,
    Gc,
    FetchWait,
    ShuffleWrite,
    /// Serializing and fetching results.
    Result,
    /// Run time that none of the others explains: disk, network, Python,
    /// locks. Spark has no time for them.
    Blocked,
}

impl TimePart {
    pub const ALL: [Self; 10] = [
        Self::Resources,
        Self::Driver,
        Self::Scheduling,
        Self::Deserialize,
        Self::Cpu,
        Self::Gc,
        Self::FetchWait,
        Self::ShuffleWrite,
        Self::Result,
        Self::Blocked,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Resources => "resources",
            Self::Driver => "driver",
            Self::Scheduling => "scheduling",
            Self::Deserialize => "deserialize",
            Self::Cpu => "cpu",
            Self::Gc => "gc",
            Self::FetchWait => "fetch_wait",
            Self::ShuffleWrite => "shuffle_write",
            Self::Result => "result",
            Self::Blocked => "blocked",
        }
    }
}

/// What tasks most likely waited for in `Blocked` time: an inference from
/// bytes and plan, never a measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockedBy {
    Input,
    Output,
    Spill,
    Python,
    Unknown,
}

/// A span of wall time by what held it up.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TimeSplit {
    /// What the parts sum to.
    pub total: Duration,
    /// In the order of [`TimePart::ALL`].
    pub parts: [Duration; 10],
    /// `None` where nothing was blocked, or nothing is likely.
    pub blocked_by: Option<BlockedBy>,
    /// Not from every task (REST): from sums over the stages.
    pub estimated: bool,
}

impl TimeSplit {
    pub fn part(&self, part: TimePart) -> Duration {
        self.parts[part as usize]
    }

    /// The largest part names the layer.
    pub fn largest(&self) -> Option<TimePart> {
        TimePart::ALL
            .into_iter()
            .filter(|part| !self.part(*part).is_zero())
            .max_by_key(|part| self.part(*part))
    }
}

/// `None` where start or end of the run is not known.
pub(super) fn of_application(_application: &Application) -> Option<TimeSplit> {
    None
}
