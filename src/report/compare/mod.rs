//! Two runs, or a SQL execution of each, side by side: what took how long,
//! what was found in one and not in the other, which settings and how much
//! data differ. `facts` works out what is the same for all forms; `print`
//! writes it for a terminal and as Markdown.
//!
//! A run that took less time on less data, or on data that lay in a cache, is
//! not called faster: the verdict says so instead.

mod facts;
mod print;
mod settings;

use serde::Serialize;

pub use facts::{Which, compare};
pub use print::{markdown, text};

/// Whether values of all settings are shown. Those of a short list of plain
/// ones always are; of others only that they differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    Safe,
    /// But what looks like a secret.
    All,
}

/// What came of it. Seconds and bytes; `None`: not known, never 0.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    pub schema_version: u32,
    pub a: Side,
    pub b: Side,
    pub verdict: Verdict,
    /// The verdict in words, the conclusion first.
    pub sentences: Vec<String>,
    /// Where the time went, in the order of [`crate::diagnose::TimePart::ALL`];
    /// empty where it is not known of both.
    pub layers: Vec<Layer>,
    /// Found in B only, the worst first.
    pub gained: Vec<Told>,
    /// Found in A only.
    pub lost: Vec<Told>,
    /// Found in both, by rule and cause.
    pub kept: Vec<Kept>,
    /// Settings that differ, by key, without those that differ between any two
    /// runs (ids, ports, names).
    pub settings: Vec<Setting>,
    pub data: Vec<Volume>,
}

/// One of the two.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Side {
    pub app_id: String,
    pub attempt_id: Option<String>,
    pub app_name: String,
    /// Of the SQL execution, where one was asked for.
    pub sql_id: Option<u64>,
    pub spark_version: Option<String>,
    pub state: &'static str,
    pub start: Option<String>,
    pub duration_seconds: Option<f64>,
    pub peak_cores: Option<u32>,
    /// Of the whole run; `None` for a SQL execution.
    pub bought_core_seconds: Option<f64>,
    pub stages: u64,
    pub tasks: u64,
    /// Stages that read a cached table; `None` where the source does not tell.
    pub cache_reading_stages: Option<u64>,
}

/// How B did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Faster,
    Slower,
    Same,
    /// Took less time, on less data.
    LessData,
    /// Took longer, on more data.
    MoreData,
    /// Only one of them read a cache: their times cannot be held against each
    /// other.
    CacheDiffers,
    /// One of them did not end well, or nothing tells how long it took.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Layer {
    pub part: &'static str,
    pub a_seconds: f64,
    pub b_seconds: f64,
}

/// A rule and cause that fired in one of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Told {
    pub rule: &'static str,
    pub cause: Option<&'static str>,
    pub severity: &'static str,
    /// Findings of this rule and cause.
    pub count: u64,
    /// Of the worst of them.
    pub headline: String,
    pub wall_seconds: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Kept {
    pub a: Told,
    pub b: Told,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Setting {
    pub key: String,
    /// `None`: not set, or not shown.
    pub a: Option<String>,
    pub b: Option<String>,
    pub in_a: bool,
    pub in_b: bool,
    /// Whether values are shown.
    pub shown: bool,
}

/// A sum over the stages. `None`: not known of one of them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Volume {
    pub what: &'static str,
    pub bytes: bool,
    pub a: Option<u64>,
    pub b: Option<u64>,
}

impl Comparison {
    /// Whether B has a finding that A has not, at this severity or above.
    pub fn gained_at(&self, severity: crate::diagnose::Severity) -> bool {
        let floor = crate::diagnose::Severity::ALL.into_iter().filter(|one| *one >= severity);
        let words: Vec<&str> = floor.map(crate::diagnose::Severity::as_str).collect();
        self.gained.iter().any(|told| words.contains(&told.severity))
    }
}
