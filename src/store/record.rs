//! What is kept of one run.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::diagnose::{Diagnosis, RunNumbers, RunSummary};
use crate::model::{Application, Distribution, Kind, Measures, RunId, Source, State};

/// Which run: the same id with another start is another run (Standalone and
/// local ids collide).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunKey {
    pub id: RunId,
    /// Milliseconds since the epoch; 0 where the start is not known.
    pub start_ms: i64,
}

impl RunKey {
    /// Starts of one run may differ by this much between sources.
    pub const SAME_START_MS: i64 = 1_000;

    pub fn new(id: RunId, start: Option<Timestamp>) -> Self {
        Self { id, start_ms: start.map_or(0, Timestamp::as_millisecond) }
    }

    pub fn of(application: &Application) -> Self {
        Self::new(application.id.clone(), application.start)
    }

    /// Whether both name the same run.
    pub fn is_same_run(&self, other: &Self) -> bool {
        self.id == other.id
            && self.start_ms.abs_diff(other.start_ms) <= Self::SAME_START_MS.unsigned_abs()
    }

    /// With an attempt that is empty as none.
    pub(super) fn normal(&self) -> Self {
        let mut key = self.clone();
        key.id.attempt_id = key.id.attempt_id.filter(|attempt| !attempt.is_empty());
        key
    }

    /// This run among those of the same id: the one whose start is nearest,
    /// or, where either start is not known, the only one.
    pub(super) fn among<T>(&self, runs: Vec<(Self, T)>) -> Option<(Self, T)> {
        let only = runs.len() == 1;
        let unknown = |key: &Self| self.start_ms == 0 || key.start_ms == 0;
        runs.into_iter()
            .filter(|(known, _)| self.is_same_run(known) || (only && unknown(known)))
            .min_by_key(|(known, _)| self.start_ms.abs_diff(known.start_ms))
    }
}

/// The log a run was read from, as its place listed it: a log that is listed
/// so again needs no second reading.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogSeen {
    /// The place, as it is shown (`/mnt/events`, `s3://logs/events`).
    pub place: String,
    /// What the log is called in it once its application has ended.
    pub key: String,
    pub bytes: u64,
    /// Milliseconds since the epoch.
    pub modified_ms: i64,
}

/// Whether a run is in the totals of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    Yes,
    /// Nobody saw it end: it is counted once it has stayed so for a while.
    NotYet,
    /// Never: it ended before the store was made, or before everything the
    /// store has forgotten.
    History,
}

/// Amounts of a run that are summed up by name. Absent in the source: 0.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Amounts {
    /// Core-milliseconds.
    pub bought_core_ms: u64,
    pub used_core_ms: u64,
    /// Bought and not used; 0 where either is not known.
    pub wasted_core_ms: u64,
    pub memory_spilled_bytes: u64,
    pub disk_spilled_bytes: u64,
    pub shuffle_read_bytes: u64,
    pub shuffle_write_bytes: u64,
    pub input_bytes: u64,
    pub output_bytes: u64,
    /// By the operator's prices; `None` where there are none.
    pub cost: Option<f64>,
}

/// The part of a stored run that is looked at often.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Its `app_name` as exported: rewritten, cleaned, cut.
    pub app_name: String,
    /// The name whose totals it is in: `app_name`, or
    /// [`super::OVERFLOW_NAME`].
    pub total_name: String,
    /// Never `running`.
    pub state: State,
    pub kind: Kind,
    pub source: Source,
    /// Whether its end was seen, not only that it is gone.
    pub end_seen: bool,
    /// It succeeded, or its end was seen and nothing speaks against it (Spark
    /// 3 does not tell success).
    pub ended_well: bool,
    /// How sure its state is: [`Application::outcome_proof`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub proof: u8,
    /// Its end; where nobody saw it, the latest moment its data speaks of.
    /// Milliseconds since the epoch, by Spark's clock.
    pub end_ms: i64,
    /// When it was first read as one that has ended, by our clock.
    pub read_at_ms: i64,
    pub duration_ms: Option<u64>,
    pub amounts: Amounts,
    /// Findings by rule.
    pub findings: BTreeMap<String, u32>,
    pub counted: Counted,
    pub log: Option<LogSeen>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde asks for it")]
fn is_zero(proof: &u8) -> bool {
    *proof == 0
}

impl RunRecord {
    /// The later of its end and of when it was read: retention runs from here.
    pub fn since_ms(&self) -> i64 {
        self.end_ms.max(self.read_at_ms)
    }
}

/// A run with what later ones of its name are compared with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredRun {
    pub record: RunRecord,
    pub summary: RunSummary,
}

impl StoredRun {
    /// What is kept of a run that has ended. `cost`: by the operator's prices.
    pub fn of(
        application: &Application,
        diagnosis: &Diagnosis,
        app_name: &str,
        cost: Option<f64>,
        log: Option<LogSeen>,
    ) -> Self {
        let mut findings = BTreeMap::new();
        for finding in &diagnosis.findings {
            let count: &mut u32 = findings.entry(finding.rule.as_str().to_owned()).or_default();
            *count = count.saturating_add(1);
        }
        let end_seen = application.end.is_some();
        let record = RunRecord {
            app_name: app_name.to_owned(),
            total_name: app_name.to_owned(),
            state: application.state,
            kind: application.kind,
            source: application.source,
            end_seen,
            ended_well: end_seen && ended_well(application),
            proof: application.outcome_proof(),
            end_ms: application.end.unwrap_or(application.observed).as_millisecond(),
            read_at_ms: 0,
            duration_ms: application
                .duration()
                .map(|duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)),
            amounts: Amounts::of(application, &diagnosis.totals, cost),
            findings,
            counted: Counted::NotYet,
            log,
        };
        Self { record, summary: RunSummary::of(application, diagnosis) }
    }
}

/// Spark 3 writes no exit code: there a run whose end nothing speaks against
/// is taken to have ended well.
pub fn ended_well(application: &Application) -> bool {
    match application.state {
        State::Succeeded => true,
        State::Unknown => !application.jobs.iter().any(|job| application.died_with(job)),
        State::Running | State::Failed | State::Killed | State::Cancelled | State::Lost => false,
    }
}

impl Amounts {
    fn of(application: &Application, numbers: &RunNumbers, cost: Option<f64>) -> Self {
        let sum = |of: fn(&Measures) -> &Distribution<u64>| {
            let stages = application.stages.iter();
            stages.filter_map(|stage| of(&stage.measures).sum).fold(0, u64::saturating_add)
        };
        let millis = |span: Option<std::time::Duration>| {
            span.map_or(0, |span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
        };
        let wasted =
            numbers.bought.zip(numbers.used).map(|(bought, used)| bought.saturating_sub(used));
        Self {
            bought_core_ms: millis(numbers.bought),
            used_core_ms: millis(numbers.used),
            wasted_core_ms: millis(wasted),
            memory_spilled_bytes: sum(|measures| &measures.memory_spilled_bytes),
            disk_spilled_bytes: sum(|measures| &measures.disk_spilled_bytes),
            shuffle_read_bytes: sum(|measures| &measures.shuffle_read_bytes),
            shuffle_write_bytes: sum(|measures| &measures.shuffle_write_bytes),
            input_bytes: sum(|measures| &measures.input_bytes),
            output_bytes: sum(|measures| &measures.output_bytes),
            cost,
        }
    }
}
