//! What differs between two diagnosed runs, worked out once for all forms.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::Duration;

use super::settings::differing;
use super::{Comparison, Kept, Layer, Setting, Side, Told, Values, Verdict, Volume};
use crate::diagnose::{Cause, Finding, Rule, Subject, TimePart, TimeSplit, humane};
use crate::model::{Distribution, Measures, SqlExecution, SqlStatus, Stage, StageStatus, State};
use crate::report::Diagnosed;

/// Raised only when a field changes its meaning or goes.
const SCHEMA_VERSION: u32 = 1;
/// Two runs of the same job differ by so much without a reason: the larger of
/// this share and [`SAME_SECONDS`].
const SAME_SHARE: f64 = 0.05;
const SAME_SECONDS: f64 = 1.0;
/// Less than this share of the records is less data.
const LESS_DATA: f64 = 0.9;

/// A run, or a SQL execution of it.
#[derive(Debug, Clone, Copy)]
pub struct Which<'a> {
    pub run: &'a Diagnosed,
    pub sql_id: Option<u64>,
}

/// Holds B against A.
///
/// # Errors
/// Where a SQL execution that was asked for is not there, in words for a
/// person.
pub fn compare(a: Which<'_>, b: Which<'_>, values: Values) -> Result<Comparison, String> {
    let (a, b) = (Part::of(a)?, Part::of(b)?);
    let data = volumes(&a, &b);
    let (verdict, mut sentences) = judge(&a, &b, &data);
    sentences.extend(cache_note(&a, &b));
    let layers = layers(a.time, b.time);
    sentences.extend(largest_change(&layers));
    let (gained, lost, kept) = findings(&a, &b);
    Ok(Comparison {
        schema_version: SCHEMA_VERSION,
        a: a.side(),
        b: b.side(),
        verdict,
        sentences,
        layers,
        gained,
        lost,
        kept,
        settings: settings(&a, &b, values),
        data,
    })
}

/// What is looked at of a run.
struct Part<'a> {
    run: &'a Diagnosed,
    execution: Option<&'a SqlExecution>,
    /// Stage attempts that ran for it.
    stages: Vec<&'a Stage>,
    wall: Option<Duration>,
    time: Option<&'a TimeSplit>,
    ended_well: bool,
}

impl<'a> Part<'a> {
    fn of(which: Which<'a>) -> Result<Self, String> {
        let application = &which.run.application;
        let diagnosis = &which.run.diagnosis;
        let ran = |stage: &&Stage| stage.first_task_launched.is_some();
        let Some(sql_id) = which.sql_id else {
            return Ok(Self {
                run: which.run,
                execution: None,
                stages: application.stages.iter().filter(ran).collect(),
                wall: application.duration(),
                time: diagnosis.time.as_ref(),
                ended_well: !matches!(
                    application.state,
                    State::Failed | State::Killed | State::Cancelled | State::Lost | State::Running
                ),
            });
        };
        let all = application.sql.as_deref().unwrap_or_default();
        let execution = all.iter().find(|execution| execution.id == sql_id).ok_or_else(|| {
            let known = all.len();
            format!(
                "{} has no SQL execution {sql_id} ({known} are known of it)",
                application.id.app_id
            )
        })?;
        // Those it started are part of it.
        let jobs: BTreeSet<u32> = all
            .iter()
            .filter(|other| other.id == sql_id || other.root_id == Some(sql_id))
            .flat_map(|other| other.job_ids.iter().copied())
            .collect();
        let end = execution.end.unwrap_or(application.observed);
        let within = |stage: &&Stage| {
            stage.first_task_launched.is_some_and(|first| {
                execution.start.is_none_or(|start| first >= start) && first <= end
            })
        };
        let stages = application
            .stages
            .iter()
            .filter(|stage| stage.job_ids.iter().any(|job| jobs.contains(job)))
            .filter(within)
            .collect();
        Ok(Self {
            run: which.run,
            execution: Some(execution),
            stages,
            wall: execution.wall(application.observed),
            time: diagnosis.sql_times.get(&sql_id),
            ended_well: execution.status == SqlStatus::Completed,
        })
    }

    fn side(&self) -> Side {
        let application = &self.run.application;
        let state = self
            .execution
            .map_or(application.state.as_str(), |execution| execution.status.as_str());
        let start = self.execution.map_or(application.start, |execution| execution.start);
        let tasks = |stage: &&Stage| {
            stage
                .tasks
                .succeeded
                .saturating_add(stage.tasks.failed)
                .saturating_add(stage.tasks.killed)
        };
        Side {
            app_id: application.id.app_id.clone(),
            attempt_id: application.id.attempt_id.clone(),
            app_name: application.name.clone(),
            sql_id: self.execution.map(|execution| execution.id),
            spark_version: application.spark_version.clone(),
            state,
            start: start.map(|start| start.to_string()),
            duration_seconds: self.wall.map(|wall| wall.as_secs_f64()),
            peak_cores: self.run.diagnosis.totals.peak_cores,
            bought_core_seconds: self
                .run
                .diagnosis
                .totals
                .bought
                .filter(|_| self.execution.is_none())
                .map(|bought| bought.as_secs_f64()),
            stages: self.stages.len() as u64,
            tasks: self.stages.iter().map(tasks).fold(0, u64::saturating_add),
            cache_reading_stages: self.cache_reading_stages(),
        }
    }

    fn cache_reading_stages(&self) -> Option<u64> {
        let told: Vec<bool> = self.stages.iter().filter_map(|stage| stage.reads_cache).collect();
        let known = told.len() == self.stages.len() || told.contains(&true);
        known.then(|| told.iter().filter(|reads| **reads).count() as u64)
    }

    /// A measure summed over the stages, all or (`cached`) only those that
    /// read a cached table or only the others.
    fn sum(&self, cached: Option<bool>, of: fn(&Measures) -> &Distribution<u64>) -> Option<u64> {
        let of_these = |stage: &&&Stage| {
            cached.is_none_or(|cached| stage.reads_cache.unwrap_or(false) == cached)
        };
        // A running attempt of which nothing has ended has no sums yet.
        self.stages
            .iter()
            .filter(of_these)
            .filter(|stage| stage.status != StageStatus::Active || stage.tasks.succeeded > 0)
            .map(|stage| of(&stage.measures).sum)
            .try_fold(0_u64, |sum, part| Some(sum.saturating_add(part?)))
    }
}

fn volumes(a: &Part<'_>, b: &Part<'_>) -> Vec<Volume> {
    type Of = fn(&Measures) -> &Distribution<u64>;
    let rows: [(&'static str, bool, Option<bool>, Of); 10] = [
        ("records read from storage", false, Some(false), |m| &m.input_records),
        ("bytes read from storage", true, Some(false), |m| &m.input_bytes),
        ("bytes read from a cache", true, Some(true), |m| &m.input_bytes),
        ("records written to storage", false, None, |m| &m.output_records),
        ("bytes written to storage", true, None, |m| &m.output_bytes),
        ("records shuffled", false, None, |m| &m.shuffle_write_records),
        ("bytes shuffled", true, None, |m| &m.shuffle_write_bytes),
        ("bytes read from shuffles", true, None, |m| &m.shuffle_read_bytes),
        ("bytes spilled to disk", true, None, |m| &m.disk_spilled_bytes),
        ("largest peak execution memory", true, None, |m| &m.peak_execution_memory_bytes),
    ];
    rows.into_iter()
        .map(|(what, bytes, cached, of)| {
            let value = |part: &Part<'_>| {
                if what.starts_with("largest") {
                    part.stages.iter().filter_map(|stage| of(&stage.measures).max()).max()
                } else {
                    part.sum(cached, of)
                }
            };
            Volume { what, bytes, a: value(a), b: value(b) }
        })
        .filter(|volume| volume.a.unwrap_or(0) > 0 || volume.b.unwrap_or(0) > 0)
        .collect()
}

/// The volume that tells how much data each had: the first of these that is
/// known of both.
fn basis(data: &[Volume]) -> Option<(&'static str, f64)> {
    [
        "records read from storage",
        "bytes read from storage",
        "records written to storage",
        "bytes written to storage",
        "records shuffled",
    ]
    .into_iter()
    .find_map(|what| {
        let volume = data.iter().find(|volume| volume.what == what)?;
        let (a, b) = (volume.a?, volume.b?);
        (a > 0 && b > 0).then(|| (what, b as f64 / a as f64))
    })
}

fn judge(a: &Part<'_>, b: &Part<'_>, data: &[Volume]) -> (Verdict, Vec<String>) {
    let (Some(wall_a), Some(wall_b)) = (a.wall, b.wall) else {
        return (Verdict::Unknown, vec!["Nothing tells how long one of them took.".to_owned()]);
    };
    let (one, other) = (wall_a.as_secs_f64(), wall_b.as_secs_f64());
    let times = format!("B took {}, A {}", humane::duration(wall_b), humane::duration(wall_a));
    let share = (other / one.max(1e-3) - 1.0) * 100.0;
    if !a.ended_well || !b.ended_well {
        let which = if a.ended_well { "B" } else { "A" };
        return (
            Verdict::Unknown,
            vec![format!("{times}, but {which} did not end well: that is no comparison of speed.")],
        );
    }
    let same = (other - one).abs() <= (one * SAME_SHARE).max(SAME_SECONDS);
    if let Some(why) = cache_differs(a, b).filter(|_| !same) {
        let sentence = format!(
            "{times} ({share:+.0} %), but {why}: their times say nothing about which is faster."
        );
        return (Verdict::CacheDiffers, vec![sentence]);
    }
    let basis = basis(data);
    let on = |what: &str, ratio: f64| {
        let mut said = format!("{what}: {}", change(ratio));
        // Start-up and gaps do not shrink with the data: of data that differ
        // much a rate says nothing.
        if (0.1..10.0).contains(&ratio) {
            let per = other / one.max(1e-3) / ratio;
            let _ = write!(said, "; per record or byte it took {per:.2}x the time");
        }
        said
    };
    match basis {
        _ if same => {
            let mut sentences = vec![format!("{times}: no difference that means anything.")];
            if let Some((what, ratio)) =
                basis.filter(|(_, ratio)| *ratio < LESS_DATA || *ratio > 1.0 / LESS_DATA)
            {
                sentences.push(format!("But it had other data: {}.", on(what, ratio)));
            }
            (Verdict::Same, sentences)
        }
        Some((what, ratio)) if other < one && ratio < LESS_DATA => (
            Verdict::LessData,
            vec![
                format!("{times} ({share:+.0} %), on less data: that does not make it faster."),
                format!("{}.", on(what, ratio)),
                "If reading less is what was changed (a filter, fewer partitions), it is the gain; \
                 if there was less to read, it is not."
                    .to_owned(),
            ],
        ),
        Some((what, ratio)) if other > one && ratio > 1.0 / LESS_DATA => (
            Verdict::MoreData,
            vec![
                format!("{times} ({share:+.0} %), on more data: that does not make it slower."),
                format!("{}.", on(what, ratio)),
            ],
        ),
        _ => {
            let (verdict, word) =
                if other < one { (Verdict::Faster, "faster") } else { (Verdict::Slower, "slower") };
            let data = match basis {
                Some((what, ratio)) => format!("{what}: {}", change(ratio)),
                None => "nothing tells how much data each had".to_owned(),
            };
            (verdict, vec![format!("{times}: B is {word} ({share:+.0} %; {data}).")])
        }
    }
}

/// `+12 %`, or how many times as much where that would be hard to read.
pub(super) fn change(ratio: f64) -> String {
    if ratio >= 10.0 {
        format!("{ratio:.0}x")
    } else if ratio > 0.0 && ratio < 0.1 {
        format!("1/{:.0}", 1.0 / ratio)
    } else {
        format!("{:+.0} %", (ratio - 1.0) * 100.0)
    }
}

/// In words, where one had its data in a cache and the other had not, or
/// filled it.
fn cache_differs(a: &Part<'_>, b: &Part<'_>) -> Option<String> {
    let (in_a, in_b) = (a.cache_reading_stages()? > 0, b.cache_reading_stages()? > 0);
    if in_a != in_b {
        return Some(format!("only {} read a cached table", if in_b { "B" } else { "A" }));
    }
    let storage = |part: &Part<'_>| Some(part.sum(Some(false), |m| &m.input_records)? > 0);
    let (from_a, from_b) = (storage(a)?, storage(b)?);
    (in_a && from_a != from_b).then(|| {
        let (filled, read) = if from_a { ("A", "B") } else { ("B", "A") };
        format!("{filled} read storage and filled a cache, {read} read the cache alone")
    })
}

fn cache_note(a: &Part<'_>, b: &Part<'_>) -> Option<String> {
    match (a.cache_reading_stages(), b.cache_reading_stages()) {
        (Some(0), Some(0)) => None,
        (Some(in_a), Some(in_b)) => Some(format!(
            "Stages that read a cached table: {in_a} in A, {in_b} in B. Of disk caches and caches \
             of the file system nothing tells."
        )),
        _ => Some("Nothing tells whether they read a cache.".to_owned()),
    }
}

fn layers(a: Option<&TimeSplit>, b: Option<&TimeSplit>) -> Vec<Layer> {
    let (Some(a), Some(b)) = (a, b) else { return Vec::new() };
    TimePart::ALL
        .into_iter()
        .map(|part| Layer {
            part: part.as_str(),
            a_seconds: a.part(part).as_secs_f64(),
            b_seconds: b.part(part).as_secs_f64(),
        })
        .collect()
}

fn largest_change(layers: &[Layer]) -> Option<String> {
    let change = |layer: &Layer| layer.b_seconds - layer.a_seconds;
    let largest = layers.iter().max_by(|a, b| change(a).abs().total_cmp(&change(b).abs()))?;
    if change(largest).abs() < SAME_SECONDS {
        return None;
    }
    let by = humane::duration(Duration::try_from_secs_f64(change(largest).abs()).ok()?);
    let word = if change(largest) < 0.0 { "less" } else { "more" };
    Some(format!("The largest difference is in {}: {by} {word} in B.", largest.part))
}

type Key = (Rule, Option<Cause>);

fn findings(a: &Part<'_>, b: &Part<'_>) -> (Vec<Told>, Vec<Told>, Vec<Kept>) {
    let (in_a, in_b) = (by_key(a), by_key(b));
    let only = |these: &BTreeMap<Key, Vec<&Finding>>, others: &BTreeMap<Key, Vec<&Finding>>| {
        let mut only: Vec<&Vec<&Finding>> = these
            .iter()
            .filter(|(key, _)| !others.contains_key(key))
            .map(|(_, findings)| findings)
            .collect();
        only.sort_by_key(|findings| std::cmp::Reverse(worth(findings)));
        only.into_iter().filter_map(|findings| told(findings)).collect::<Vec<Told>>()
    };
    let kept = in_a
        .iter()
        .filter_map(|(key, of_a)| Some(Kept { a: told(of_a)?, b: told(in_b.get(key)?)? }))
        .collect();
    (only(&in_b, &in_a), only(&in_a, &in_b), kept)
}

fn by_key<'a>(part: &Part<'a>) -> BTreeMap<Key, Vec<&'a Finding>> {
    let stages: BTreeSet<_> = part.stages.iter().map(|stage| stage.id).collect();
    let of_it = |finding: &&Finding| match (&finding.subject, part.execution) {
        (_, None) => true,
        (Subject::SqlExecution { sql_id } | Subject::PlanNode { sql_id, .. }, Some(execution)) => {
            *sql_id == execution.id
        }
        (_, Some(_)) => finding.stage().is_some_and(|stage| stages.contains(&stage)),
    };
    let mut by_key: BTreeMap<Key, Vec<&Finding>> = BTreeMap::new();
    for finding in part.run.diagnosis.findings.iter().filter(of_it) {
        by_key.entry((finding.rule, finding.cause)).or_default().push(finding);
    }
    by_key
}

fn worth(findings: &[&Finding]) -> (Option<crate::diagnose::Severity>, Duration) {
    let saved = findings.iter().filter_map(|finding| finding.impact.wall);
    (
        findings.iter().map(|finding| finding.severity).max(),
        saved.fold(Duration::ZERO, Duration::saturating_add),
    )
}

/// Findings come the worst first.
fn told(findings: &[&Finding]) -> Option<Told> {
    let worst = findings.first()?;
    let known = findings.iter().any(|finding| finding.impact.wall.is_some());
    Some(Told {
        rule: worst.rule.as_str(),
        cause: worst.cause.map(Cause::as_str),
        severity: worst.severity.as_str(),
        count: findings.len() as u64,
        headline: worst.headline.clone(),
        wall_seconds: known.then(|| worth(findings).1.as_secs_f64()),
    })
}

/// Of SQL executions what their sessions set counts, over what their
/// applications did.
fn settings(a: &Part<'_>, b: &Part<'_>, values: Values) -> Vec<Setting> {
    let of = |part: &Part<'_>| {
        let mut all = part.run.application.configuration.clone();
        for (key, value) in
            part.execution.iter().flat_map(|execution| execution.configuration.iter())
        {
            all.set(key, value);
        }
        all
    };
    differing(&of(a), &of(b), values)
}
