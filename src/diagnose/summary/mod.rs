//! What is kept of a diagnosed run so that later runs of the same name can be
//! compared with it.
//!
//! Small (a few KiB as JSON), and without text of users: operators and times
//! are in Spark's own words, stages are known again by their call site (where
//! it is one) and their operators, and of settings only values that are plain
//! are kept. Of the others there is a mark of one byte: enough to see that a
//! value changed (255 of 256 times), too little to guess a password by, since
//! of a million candidates thousands fit.
//!
//! A later version reads what an earlier one wrote: every field has a default,
//! and what is not known is `None`, never 0.

mod mark;
mod stages;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::finding::{Finding, Rule, Severity};
use super::{Diagnosis, TimePart, settings};
use crate::model::{
    Application, Configuration, Distribution, Kind, Measures, Source, Stage, StageStatus,
};

pub use stages::{PlanSummary, StageSummary};

/// Settings kept of a run, plain ones first.
const MOST_SETTINGS: usize = 60;
/// Findings kept, by rule and cause.
const MOST_FINDINGS: usize = 40;
/// Longest key of a setting, and longest version of Spark, in bytes.
const LONGEST_WORD: usize = 100;

/// A run in short.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunSummary {
    pub spark_version: Option<String>,
    pub kind: Kind,
    pub source: Option<Source>,
    /// Milliseconds since the epoch, by Spark's clock.
    pub start_ms: Option<i64>,
    pub duration_ms: Option<u64>,
    /// Whether its end was seen: without, the duration is only the time so far.
    pub end_known: bool,
    /// Marks of its data ([`crate::model::DataQuality`]), by their words.
    pub quality: BTreeSet<String>,
    pub time: Option<TimeSummary>,
    pub cores: CoresSummary,
    pub data: DataSummary,
    /// Stages that are the same from run to run are one; those with the longest
    /// span.
    pub stages: Vec<StageSummary>,
    pub stages_omitted: u64,
    /// Shapes of its plans, the longest first. `None`: not known of all.
    pub plans: Option<Vec<PlanSummary>>,
    pub plans_omitted: u64,
    /// By key, without those that differ between any two runs.
    pub settings: BTreeMap<String, SettingSummary>,
    pub settings_omitted: u64,
    pub findings: Vec<FindingSummary>,
}

/// Where the time of a run went: [`super::TimeSplit`] in short.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TimeSummary {
    /// Milliseconds by [`TimePart::as_str`]; no zeros.
    pub parts_ms: BTreeMap<String, u64>,
    pub blocked_by: Option<String>,
    pub estimated: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CoresSummary {
    /// Most at one time.
    pub peak: Option<u32>,
    /// There when its first task was launched.
    pub at_first_task: Option<u32>,
    pub bought_core_ms: Option<u64>,
    pub used_core_ms: Option<u64>,
}

/// Bytes and records, sums over its stages. `None`: not known of one of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DataSummary {
    /// From storage, not from a cached table (where that is known).
    pub input_records: Option<u64>,
    pub input_bytes: Option<u64>,
    pub cached_bytes: Option<u64>,
    pub output_records: Option<u64>,
    pub output_bytes: Option<u64>,
    pub shuffle_write_records: Option<u64>,
    pub shuffle_write_bytes: Option<u64>,
    pub shuffle_read_bytes: Option<u64>,
    pub memory_spilled_bytes: Option<u64>,
    pub disk_spilled_bytes: Option<u64>,
}

/// What is kept of a setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingSummary {
    /// The value of one of a short list of plain ones ([`settings::is_plain`]).
    Value(String),
    /// Eight bits of a hash of key and value.
    Mark(u8),
}

/// Findings of one rule and cause.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FindingSummary {
    pub rule: String,
    pub cause: Option<String>,
    /// Of the worst.
    pub severity: String,
    pub count: u32,
    /// What they promise to save of the run, in all.
    pub wall_ms: u64,
}

impl RunSummary {
    pub fn of(application: &Application, diagnosis: &Diagnosis) -> Self {
        let (stages, stages_omitted) = stages::of(application, diagnosis);
        let (plans, plans_omitted) = stages::plans(application);
        let (settings, settings_omitted) = settings_of(application);
        let version = application.spark_version.as_deref();
        Self {
            spark_version: version.map(|version| version.chars().take(LONGEST_WORD).collect()),
            kind: application.kind,
            source: Some(application.source),
            start_ms: application.start.map(Timestamp::as_millisecond),
            duration_ms: application.duration().map(millis),
            end_known: application.end.is_some(),
            quality: application.data_quality.iter().map(|mark| mark.as_str().to_owned()).collect(),
            time: diagnosis.time.as_ref().map(|time| TimeSummary {
                parts_ms: TimePart::ALL
                    .into_iter()
                    .map(|part| (part.as_str().to_owned(), millis(time.part(part))))
                    .filter(|(_, millis)| *millis > 0)
                    .collect(),
                blocked_by: time.blocked_by.map(|by| by.as_str().to_owned()),
                estimated: time.estimated,
            }),
            cores: CoresSummary {
                peak: diagnosis.totals.peak_cores,
                at_first_task: at_first_task(application),
                bought_core_ms: diagnosis.totals.bought.map(millis),
                used_core_ms: diagnosis.totals.used.map(millis),
            },
            data: data_of(application),
            stages,
            stages_omitted,
            plans,
            plans_omitted,
            settings,
            settings_omitted,
            findings: findings_of(&diagnosis.findings),
        }
    }

    pub(super) fn has(&self, quality: crate::model::DataQuality) -> bool {
        self.quality.contains(quality.as_str())
    }

    /// Whether tasks and plans are told exactly: stages of an event log are
    /// known by operators that REST does not tell.
    pub(super) fn is_exact(&self) -> bool {
        self.source == Some(Source::EventLog)
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn at_first_task(application: &Application) -> Option<u32> {
    let first = application.stages.iter().filter_map(|stage| stage.first_task_launched).min()?;
    let there = |executor: &&crate::model::Executor| {
        executor.added.is_some_and(|added| added <= first)
            && executor.removed.is_none_or(|removed| removed > first)
    };
    let cores: u32 = application
        .executors
        .iter()
        .filter(there)
        .map(|executor| executor.cores)
        .fold(0, u32::saturating_add);
    (cores > 0).then_some(cores)
}

fn data_of(application: &Application) -> DataSummary {
    let ran = |stage: &&Stage| {
        stage.first_task_launched.is_some()
            && (stage.status != StageStatus::Active || stage.tasks.succeeded > 0)
    };
    let stages: Vec<&Stage> = application.stages.iter().filter(ran).collect();
    // As `report::compare` counts them: input of stages that read a cached
    // table is what lay in the cache.
    let sum = |cached: Option<bool>, of: fn(&Measures) -> &Distribution<u64>| {
        stages
            .iter()
            .filter(|stage| {
                cached.is_none_or(|cached| stage.reads_cache.unwrap_or(false) == cached)
            })
            .map(|stage| of(&stage.measures).sum)
            .try_fold(0_u64, |sum, part| Some(sum.saturating_add(part?)))
    };
    DataSummary {
        input_records: sum(Some(false), |m| &m.input_records),
        input_bytes: sum(Some(false), |m| &m.input_bytes),
        cached_bytes: sum(Some(true), |m| &m.input_bytes),
        output_records: sum(None, |m| &m.output_records),
        output_bytes: sum(None, |m| &m.output_bytes),
        shuffle_write_records: sum(None, |m| &m.shuffle_write_records),
        shuffle_write_bytes: sum(None, |m| &m.shuffle_write_bytes),
        shuffle_read_bytes: sum(None, |m| &m.shuffle_read_bytes),
        memory_spilled_bytes: sum(None, |m| &m.memory_spilled_bytes),
        disk_spilled_bytes: sum(None, |m| &m.disk_spilled_bytes),
    }
}

/// Settings of the application and, over them, of its SQL sessions; with how
/// many were left out.
fn settings_of(application: &Application) -> (BTreeMap<String, SettingSummary>, u64) {
    let mut all: Configuration = application.configuration.clone();
    for execution in application.sql.iter().flatten() {
        for (key, value) in execution.configuration.iter() {
            all.set(key, value);
        }
    }
    let is_word = |key: &str| {
        key.len() <= LONGEST_WORD
            && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'))
    };
    let mut kept: Vec<(&str, SettingSummary)> = all
        .iter()
        .filter(|(key, _)| key.starts_with("spark.") && is_word(key) && !settings::is_noise(key))
        .map(|(key, value)| {
            let summary = if settings::is_plain(key, value) {
                SettingSummary::Value(value.to_owned())
            } else {
                SettingSummary::Mark(mark::byte(&[key, value]))
            };
            (key, summary)
        })
        .collect();
    kept.sort_by_key(|(_, summary)| matches!(summary, SettingSummary::Mark(_)));
    let omitted = kept.len().saturating_sub(MOST_SETTINGS) as u64;
    kept.truncate(MOST_SETTINGS);
    (kept.into_iter().map(|(key, summary)| (key.to_owned(), summary)).collect(), omitted)
}

/// By rule and cause, the worst first; without `regression` itself, which is
/// said of the run afterwards.
fn findings_of(findings: &[Finding]) -> Vec<FindingSummary> {
    let mut kept: Vec<FindingSummary> = Vec::new();
    for finding in findings.iter().filter(|finding| finding.rule != Rule::Regression) {
        let cause = finding.cause.map(super::Cause::as_str);
        let wall_ms = finding.impact.wall.map_or(0, millis);
        let is_it = |one: &&mut FindingSummary| {
            one.rule == finding.rule.as_str() && one.cause.as_deref() == cause
        };
        if let Some(one) = kept.iter_mut().find(is_it) {
            one.count = one.count.saturating_add(1);
            one.wall_ms = one.wall_ms.saturating_add(wall_ms);
        } else if kept.len() < MOST_FINDINGS {
            kept.push(FindingSummary {
                rule: finding.rule.as_str().to_owned(),
                cause: cause.map(str::to_owned),
                severity: finding.severity.as_str().to_owned(),
                count: 1,
                wall_ms,
            });
        }
    }
    kept
}

impl FindingSummary {
    pub(super) fn is_loud(&self) -> bool {
        self.severity != Severity::Info.as_str()
    }
}

#[cfg(test)]
mod tests;
