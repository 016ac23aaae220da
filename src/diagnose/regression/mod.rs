//! `regression`: the run took longer than runs of its name used to, and what
//! changed.
//!
//! A rule like the others, but for what it looks at: not one run's data but
//! short summaries ([`RunSummary`]) of it and of those before it. So it is
//! called by whoever knows the others ([`judge`]), and what it found is put
//! into the run's diagnosis afterwards ([`with_regression`]). `baseline` says
//! which runs are comparable and what they usually take, `changes` what this
//! one has that they have not, `words` says it.

mod about;
mod baseline;
mod changes;
mod words;

#[cfg(test)]
mod tests;

use std::time::Duration;

use super::context::seconds;
use super::draft::Draft;
use super::{
    Cause, Confidence, Diagnosis, Finding, FindingKind, Impact, MOST_FINDINGS, Rule, RunSummary,
    Severity, Subject, Unit,
};
use crate::config::Thresholds;
use baseline::Held;
use changes::Changes;

pub(super) use about::ABOUT;

/// A part, a stage is said to explain the excess from this share of it.
const EXPLAINS: f64 = 0.3;
/// Runs of the baseline that were about as slow, from which the name has two
/// speeds rather than a regression.
const ALSO_SLOW: usize = 2;
/// Below this many runs the spread is known poorly.
const FEW_RUNS: usize = 10;

/// What runs of a name usually take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Baseline {
    /// Runs it was made of.
    pub runs: usize,
    pub median: Duration,
    /// Median of the absolute deviations from the median.
    pub spread: Duration,
}

/// A run held against those before it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Judgement {
    /// `None`: too few comparable runs.
    pub baseline: Option<Baseline>,
    /// Duration / median of the baseline.
    pub ratio: Option<f64>,
    pub finding: Option<Finding>,
}

/// Holds a run that ended well against earlier ones that did.
///
/// `before` may hold them in any order, and more than are looked at: what did
/// not start before the run, is of another kind or amount of data, or rests on
/// incomplete data is passed over. Nothing is said of a run that is itself
/// such.
pub fn judge(run: &RunSummary, before: &[RunSummary], thresholds: &Thresholds) -> Judgement {
    if !thresholds.regression.enabled {
        return Judgement::default();
    }
    let Some(held) = Held::of(run, before, &thresholds.regression) else {
        return Judgement::default();
    };
    let floor = thresholds.cost.emit_floor(held.duration);
    let finding = (held.is_slow(&thresholds.regression) && held.excess() >= floor)
        .then(|| finding(run, &held, thresholds, floor));
    Judgement { baseline: Some(held.baseline), ratio: held.ratio(), finding }
}

fn finding(run: &RunSummary, held: &Held<'_>, thresholds: &Thresholds, floor: Duration) -> Finding {
    let changes = Changes::of(run, held);
    let cause = cause(&changes);
    let kind = match cause {
        Some(Cause::NoExecutors | Cause::FewerCores) => FindingKind::Resources,
        Some(Cause::SettingsChanged) => FindingKind::Configuration,
        _ => FindingKind::Data,
    };
    let own = &thresholds.regression;
    let excess = held.excess();
    let headline = words::headline(held, &changes);
    let mut draft = Draft::new(Rule::Regression, kind, Subject::Application, headline)
        .cause(cause)
        .confidence(confidence(held))
        .evidence(
            "duration",
            held.duration.as_secs_f64(),
            Unit::Seconds,
            held.bar(own).as_secs_f64(),
            "start and end of the application",
        )
        .evidence(
            "baseline_median",
            held.baseline.median.as_secs_f64(),
            Unit::Seconds,
            None,
            format!("{} earlier runs of the name", held.baseline.runs),
        )
        .evidence(
            "baseline_spread",
            held.baseline.spread.as_secs_f64(),
            Unit::Seconds,
            None,
            "the same runs",
        )
        .evidence(
            "baseline_runs",
            held.baseline.runs as f64,
            Unit::Count,
            own.at_least as f64,
            "earlier runs of the name",
        )
        .evidence("ratio", held.ratio().unwrap_or(f64::NAN), Unit::Ratio, own.ratio, "both")
        .evidence("excess", excess.as_secs_f64(), Unit::Seconds, floor.as_secs_f64(), "both")
        .evidence(
            "as_slow",
            held.as_slow() as f64,
            Unit::Count,
            None,
            "earlier runs that took nine tenths of it or more",
        );
    if let Some(ratio) = held.data_ratio {
        draft = draft.evidence("data_ratio", ratio, Unit::Ratio, own.data_ratio, held.data_what);
    }
    if let Some(part) = &changes.part {
        draft = draft.evidence(
            "part_growth",
            part.growth_ms / 1_000.0,
            Unit::Seconds,
            None,
            format!("time part {}", part.part.as_str()),
        );
    }
    if let Some(stage) = &changes.stage {
        let (id, attempt) = stage.now.longest;
        draft = draft.evidence(
            "stage_growth",
            stage.growth_ms / 1_000.0,
            Unit::Seconds,
            None,
            format!("stage {id}.{attempt}"),
        );
    }
    draft = words::advise(draft, &changes);
    let severity = severity(excess, held.duration, thresholds);
    let impact = Impact { wall: Some(unpromised(run, held)), core: None, estimated: false };
    Finding { severity, impact, ..draft.finding }
}

/// What differs, in the order in which it is most likely the reason. A setting
/// can make another plan; neither makes a cluster full.
fn cause(changes: &Changes<'_>) -> Option<Cause> {
    if changes.waited {
        Some(Cause::NoExecutors)
    } else if changes.settings.iter().any(|setting| setting.values.is_some()) {
        Some(Cause::SettingsChanged)
    } else if changes.plan.is_some() {
        Some(Cause::PlanChanged)
    } else if changes.cores.is_some() {
        Some(Cause::FewerCores)
    } else {
        None
    }
}

fn confidence(held: &Held<'_>) -> Confidence {
    let mut confidence = Confidence::High;
    if held.baseline.runs < FEW_RUNS {
        confidence = confidence.lower();
    }
    if held.as_slow() >= ALSO_SLOW {
        confidence = confidence.lower();
    }
    confidence
}

/// By the whole excess, not by what is left to promise: other findings may
/// explain the slowness, and it is as bad.
fn severity(excess: Duration, run: Duration, thresholds: &Thresholds) -> Severity {
    let cost = &thresholds.cost;
    let share = excess.as_secs_f64() / run.as_secs_f64().max(1e-3);
    if excess >= cost.critical_at.get() && share >= cost.critical_ratio {
        Severity::Critical
    } else if excess >= cost.warning_at.get() && share >= cost.warning_ratio {
        Severity::Warning
    } else {
        Severity::Info
    }
}

/// The part of the excess that no other finding of the run promises: what they
/// promise beyond what findings of the runs before did is taken to be the same
/// seconds. All of them together never promise more than the run.
fn unpromised(run: &RunSummary, held: &Held<'_>) -> Duration {
    let promised = |run: &RunSummary| -> f64 {
        run.findings.iter().map(|finding| finding.wall_ms as f64 / 1_000.0).sum()
    };
    let now = promised(run);
    let usual = baseline::median(held.peers.iter().map(|peer| promised(peer))).unwrap_or(0.0);
    let left = held.excess().as_secs_f64() - (now - usual).max(0.0);
    seconds(left.min(held.duration.as_secs_f64() - now))
}

/// The diagnosis with this finding about regression, and no other, in its
/// place among the others.
#[must_use]
pub fn with_regression(diagnosis: &Diagnosis, finding: Option<Finding>) -> Diagnosis {
    let mut diagnosis = diagnosis.clone();
    diagnosis.findings.retain(|other| other.rule != Rule::Regression);
    let Some(finding) = finding else { return diagnosis };
    let cores = diagnosis.totals.peak_cores.map(f64::from).map(|cores| cores.max(1.0));
    let rank = |finding: &Finding| {
        let core = finding.impact.core.zip(cores);
        let in_wall = core.map(|(core, cores)| seconds(core.as_secs_f64() / cores));
        let wall = finding.impact.wall.unwrap_or_default();
        (finding.severity, wall.max(in_wall.unwrap_or_default()))
    };
    let place = diagnosis.findings.partition_point(|other| rank(other) >= rank(&finding));
    diagnosis.findings.insert(place, finding);
    let over = diagnosis.findings.len().saturating_sub(MOST_FINDINGS);
    diagnosis.findings.truncate(MOST_FINDINGS);
    diagnosis.findings_omitted = diagnosis.findings_omitted.saturating_add(over as u64);
    diagnosis
}
