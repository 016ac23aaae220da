//! What a slow run has that the runs before it have not: which part of its
//! time grew, which stage, and what is different about it.
//!
//! "Before" is the median of the earlier runs, or what most of them have: one
//! that was itself different does not hide a change.

use super::EXPLAINS;
use super::baseline::{Held, median};
use crate::diagnose::summary::{FindingSummary, PlanSummary, SettingSummary, StageSummary};
use crate::diagnose::{RunSummary, TimePart};

/// So many earlier runs must tell of a thing before anything is said of it.
const TELL: usize = 3;
/// Fewer cores than this share of the usual are fewer.
const FEWER: f64 = 0.9;
/// More, from this ratio on.
const MORE: f64 = 1.5;
/// A task is an outlier from this ratio of it to the typical one.
const UNEVEN: f64 = 3.0;
/// Less than this in bytes spilled is nothing.
const SPILL: u64 = 64 << 20;
/// Share of the growth in task time from which garbage collection is named.
const GC: f64 = 0.25;

pub(super) struct Changes<'a> {
    /// The part of the time that grew most, where it explains something.
    pub(super) part: Option<PartGrowth>,
    /// Most of the excess is time without an executor.
    pub(super) waited: bool,
    pub(super) stage: Option<StageGrowth<'a>>,
    /// A plan that none of the earlier runs had.
    pub(super) plan: Option<&'a PlanSummary>,
    pub(super) settings: Vec<SettingChange<'a>>,
    /// Spark's version in most of the earlier runs, and now.
    pub(super) version: Option<(&'a str, &'a str)>,
    /// Most cores at one time: usually, and now.
    pub(super) cores: Option<(u32, u32)>,
    /// Findings that none of the earlier runs had, the costliest first.
    pub(super) findings: Vec<&'a FindingSummary>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct PartGrowth {
    pub(super) part: TimePart,
    pub(super) growth_ms: f64,
}

pub(super) struct StageGrowth<'a> {
    pub(super) now: &'a StageSummary,
    /// By how much its span is longer than usual; its whole span where the
    /// earlier runs have no such stage.
    pub(super) growth_ms: f64,
    pub(super) is_new: bool,
    pub(super) why: Vec<Why>,
}

/// What is different about a stage: usually, and now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Why {
    Uneven { before: f64, now: f64 },
    Tasks { before: u64, now: u64 },
    Data { ratio: f64 },
    Spill { before: u64, now: u64 },
    Gc { growth_ms: f64 },
}

pub(super) struct SettingChange<'a> {
    pub(super) key: &'a str,
    /// Before and now, where both may be shown; `None` in them: not set.
    pub(super) values: Option<(Option<&'a str>, Option<&'a str>)>,
}

impl<'a> Changes<'a> {
    pub(super) fn of(run: &'a RunSummary, held: &Held<'a>) -> Self {
        let excess = held.excess().as_secs_f64() * 1_000.0;
        let part = part(run, &held.peers).filter(|part| part.growth_ms >= EXPLAINS * excess);
        let waited = part
            .is_some_and(|part| part.part == TimePart::Resources && part.growth_ms >= excess / 2.0);
        let stage =
            stage(run, &held.peers).filter(|stage| !waited && stage.growth_ms >= EXPLAINS * excess);
        Self {
            part,
            waited,
            stage,
            plan: plan(run, &held.peers),
            settings: settings(run, &held.peers),
            version: version(run, &held.peers),
            cores: cores(run, &held.peers),
            findings: findings(run, &held.peers),
        }
    }
}

fn part(run: &RunSummary, peers: &[&RunSummary]) -> Option<PartGrowth> {
    let time = run.time.as_ref()?;
    let before: Vec<_> = peers.iter().filter_map(|peer| peer.time.as_ref()).collect();
    if before.len() < TELL {
        return None;
    }
    let of = |parts: &std::collections::BTreeMap<String, u64>, part: TimePart| {
        parts.get(part.as_str()).copied().unwrap_or(0) as f64
    };
    let growth = |part: TimePart| {
        let usual = median(before.iter().map(|time| of(&time.parts_ms, part)))?;
        Some(PartGrowth { part, growth_ms: of(&time.parts_ms, part) - usual })
    };
    let largest = |a: &PartGrowth, b: &PartGrowth| a.growth_ms.total_cmp(&b.growth_ms);
    TimePart::ALL.into_iter().filter_map(growth).max_by(largest)
}

/// The stage that grew most. Stages are known again by call site and
/// operators; operators are exact in logs only, so runs read by REST and runs
/// read from logs are not mixed.
fn stage<'a>(run: &'a RunSummary, peers: &[&'a RunSummary]) -> Option<StageGrowth<'a>> {
    let alike: Vec<&RunSummary> =
        peers.iter().filter(|peer| peer.is_exact() == run.is_exact()).copied().collect();
    if alike.len() < TELL {
        return None;
    }
    let growth = |now: &'a StageSummary| {
        let before: Vec<Option<&StageSummary>> = alike
            .iter()
            .map(|peer| peer.stages.iter().find(|stage| stage.key() == now.key()))
            .collect();
        let known: Vec<&StageSummary> = before.iter().copied().flatten().collect();
        let is_new = known.is_empty();
        // Below the longest that were kept, a stage may have been there.
        if is_new && alike.iter().any(|peer| peer.stages_omitted > 0) {
            return None;
        }
        let spans = before.iter().map(|stage| stage.map_or(0.0, |one| one.span_ms as f64));
        let usual = median(spans)?;
        let why = if is_new { Vec::new() } else { why(now, &known) };
        Some(StageGrowth { now, growth_ms: now.span_ms as f64 - usual, is_new, why })
    };
    run.stages.iter().filter_map(growth).max_by(|a, b| a.growth_ms.total_cmp(&b.growth_ms))
}

fn why(now: &StageSummary, before: &[&StageSummary]) -> Vec<Why> {
    let usual = |of: &dyn Fn(&StageSummary) -> Option<f64>| {
        median(before.iter().filter_map(|stage| of(stage)))
    };
    let mut why = Vec::new();
    let tasks = usual(&|stage| Some(stage.tasks as f64)).unwrap_or(0.0);
    let ratio_of_tasks = now.tasks as f64 / tasks.max(1.0);
    if tasks > 0.0 && (ratio_of_tasks <= 0.5 || ratio_of_tasks >= 2.0) {
        why.push(Why::Tasks { before: tasks.round() as u64, now: now.tasks });
    }
    if let Some((before, now)) = usual(&|stage| stage.run_time_ratio).zip(now.run_time_ratio)
        && now >= UNEVEN
        && now >= 2.0 * before
    {
        why.push(Why::Uneven { before, now });
    }
    let reads = |stage: &StageSummary| {
        let amount = if stage.read_records > 0 { stage.read_records } else { stage.read_bytes };
        (amount > 0).then_some(amount as f64)
    };
    if let Some((before, now)) = usual(&reads).zip(reads(now))
        && now >= MORE * before
    {
        why.push(Why::Data { ratio: now / before });
    }
    let spilled = usual(&|stage| Some(stage.spilled_bytes as f64)).unwrap_or(0.0);
    if now.spilled_bytes >= SPILL && now.spilled_bytes as f64 >= 2.0 * spilled {
        why.push(Why::Spill { before: spilled as u64, now: now.spilled_bytes });
    }
    let growth = |of: fn(&StageSummary) -> u64| {
        of(now) as f64 - usual(&|stage| Some(of(stage) as f64)).unwrap_or(0.0)
    };
    let (gc, task) = (growth(|stage| stage.gc_ms), growth(|stage| stage.task_ms));
    if task > 0.0 && gc >= GC * task {
        why.push(Why::Gc { growth_ms: gc });
    }
    why
}

/// A plan that is new, where the earlier runs had the same ones each time.
fn plan<'a>(run: &'a RunSummary, peers: &[&'a RunSummary]) -> Option<&'a PlanSummary> {
    let told = |run: &RunSummary| run.plans.is_some() && run.plans_omitted == 0;
    let plans = run.plans.as_ref().filter(|_| told(run))?;
    let before: Vec<&[PlanSummary]> = peers
        .iter()
        .filter(|peer| told(peer) && peer.is_exact() == run.is_exact())
        .filter_map(|peer| peer.plans.as_deref())
        .collect();
    if before.len() < TELL || before.len() * 2 < peers.len() {
        return None;
    }
    let shapes = |plans: &[PlanSummary]| {
        let mut shapes: Vec<u32> = plans.iter().map(|plan| plan.shape).collect();
        shapes.sort_unstable();
        shapes
    };
    let latest = shapes(before.first()?);
    let steady = before.iter().filter(|plans| shapes(plans) == latest).count();
    let is_new =
        |plan: &&PlanSummary| !before.iter().flat_map(|all| *all).any(|b| b.shape == plan.shape);
    plans.iter().find(is_new).filter(|_| steady * 2 > before.len())
}

/// Settings that most of the earlier runs had otherwise, plain ones first.
fn settings<'a>(run: &'a RunSummary, peers: &[&'a RunSummary]) -> Vec<SettingChange<'a>> {
    // Of a list that was cut, what is missing may be set.
    let cut = run.settings_omitted > 0 || peers.iter().any(|peer| peer.settings_omitted > 0);
    let keys: std::collections::BTreeSet<&'a str> = run
        .settings
        .keys()
        .chain(peers.iter().flat_map(|peer| peer.settings.keys()))
        .map(String::as_str)
        .collect();
    let mut changed: Vec<SettingChange<'a>> = keys
        .into_iter()
        .filter_map(|key| {
            let now = run.settings.get(key);
            let before = usual(peers.iter().map(|peer| peer.settings.get(key)))?;
            if before == now || cut && (before.is_none() || now.is_none()) {
                return None;
            }
            let value = |setting: Option<&'a SettingSummary>| match setting {
                None => Some(None),
                Some(SettingSummary::Value(value)) => Some(Some(value.as_str())),
                Some(SettingSummary::Mark(_)) => None,
            };
            Some(SettingChange { key, values: value(before).zip(value(now)) })
        })
        .collect();
    changed.sort_by_key(|change| change.values.is_none());
    changed
}

/// What more than half of them are.
fn usual<T: PartialEq + Copy>(all: impl Iterator<Item = T>) -> Option<T> {
    let all: Vec<T> = all.collect();
    let count = |one: &T| all.iter().filter(|other| *other == one).count();
    all.iter().copied().find(|one| count(one) * 2 > all.len())
}

fn version<'a>(run: &'a RunSummary, peers: &[&'a RunSummary]) -> Option<(&'a str, &'a str)> {
    let now = run.spark_version.as_deref()?;
    let before = usual(peers.iter().map(|peer| peer.spark_version.as_deref()))??;
    (before != now).then_some((before, now))
}

fn cores(run: &RunSummary, peers: &[&RunSummary]) -> Option<(u32, u32)> {
    let now = run.cores.peak?;
    let before = median(peers.iter().filter_map(|peer| peer.cores.peak).map(f64::from))?;
    (f64::from(now) < FEWER * before).then_some((before.round() as u32, now))
}

fn findings<'a>(run: &'a RunSummary, peers: &[&RunSummary]) -> Vec<&'a FindingSummary> {
    let known = |one: &FindingSummary| {
        peers.iter().flat_map(|peer| &peer.findings).any(|other| other.rule == one.rule)
    };
    let mut new: Vec<&FindingSummary> =
        run.findings.iter().filter(|one| one.is_loud() && !known(one)).collect();
    new.sort_by_key(|one| std::cmp::Reverse(one.wall_ms));
    new
}
