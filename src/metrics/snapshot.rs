//! All series of one moment.
//!
//! The daemon builds a snapshot after each cycle and swaps it in; a scrape
//! only writes it down. Nothing here is changed afterwards, so label values
//! that are gone leave no series behind and two scrapes cannot disturb each
//! other.
//!
//! Where not everything fits in `limits.series`, what is dear to more readers
//! comes first: the daemon's own series always; then the numbers of every run,
//! those of every name, then a run's findings, its stages, its SQL executions,
//! its streaming queries, its executors; running runs before finished ones, later before
//! earlier.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;

use super::catalogue::{Id, Metric};
use super::exemplar::Exemplars;
use super::group::{Builder, Group};
use super::label::Text;
use super::name::{self, NameView};
use super::sample::Sample;
use super::{daemon, executor, finding, run, sql_execution, stage, streaming};
use crate::config::Limits;
use crate::diagnose::Diagnosis;
use crate::model::{Application, State, TraceId};
use crate::telemetry::TelemetrySnapshot;

/// Parts of a run that have series, in the order in which they are let in.
const PARTS: [PartOf; 5] =
    [finding::groups, stage::groups, sql_execution::groups, streaming::groups, executor::groups];

type PartOf = fn(&RunView, &Arc<[Text]>, &Limits) -> Part;

/// A run and what was found wrong with it.
#[derive(Debug, Clone)]
pub struct RunView {
    /// Its `app_name` label: [`super::app_name`].
    pub name: Arc<str>,
    pub application: Arc<Application>,
    pub diagnosis: Arc<Diagnosis>,
    /// Of the trace that its application span is in, where traces are sent.
    pub trace_id: Option<TraceId>,
}

/// All series of one metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Family {
    pub metric: &'static Metric,
    pub samples: Vec<Sample>,
}

impl Family {
    /// Lines of a text format; a histogram has many.
    pub fn series(&self) -> usize {
        self.samples.iter().map(|sample| sample.value.series()).sum()
    }
}

/// All series of one moment, by metric.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Snapshot {
    families: Vec<Family>,
    dropped: BTreeMap<&'static str, u64>,
    runs: Vec<ShownRun>,
}

/// A run that has series.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownRun {
    /// Values of [`Scope::Run`](super::catalogue::Scope::Run)'s labels, which
    /// all series of the run begin with.
    pub labels: Arc<[Text]>,
    /// Its place among the runs that the snapshot was built from.
    pub place: usize,
}

impl Snapshot {
    /// Metrics that have series, in the order of the catalogue.
    pub fn families(&self) -> impl Iterator<Item = &Family> {
        self.families.iter().filter(|family| !family.samples.is_empty())
    }

    /// The series of one metric.
    pub fn family(&self, id: Id) -> &[Sample] {
        self.families.get(id as usize).map_or(&[], |family| &family.samples)
    }

    pub fn series(&self) -> usize {
        self.families.iter().map(Family::series).sum()
    }

    /// Runs that have series: those that run first, then the latest.
    pub fn runs(&self) -> &[ShownRun] {
        &self.runs
    }

    /// Series that this snapshot leaves out, by reason. It shows them already
    /// in `spark_exporter_series_dropped_total`; emit them as
    /// [`crate::telemetry::events::SeriesDropped`], so that the next one adds
    /// them up.
    pub fn dropped(&self) -> &BTreeMap<&'static str, u64> {
        &self.dropped
    }

    /// A series that is there twice, if there is one: the writer of a text
    /// format must never meet it.
    pub fn duplicate(&self) -> Option<(&'static Metric, &Sample)> {
        self.families.iter().find_map(|family| {
            let mut seen = HashSet::with_capacity(family.samples.len());
            let twice = family.samples.iter().find(|sample| {
                let values: Vec<String> =
                    sample.label_values().map(|value| value.to_string()).collect();
                !seen.insert(values)
            })?;
            Some((family.metric, twice))
        })
    }
}

/// Makes the snapshot of a moment. Pure: the same input gives the same
/// series in the same order.
pub fn build(
    runs: &[RunView],
    names: &[NameView],
    telemetry: &TelemetrySnapshot,
    limits: &Limits,
    now: Timestamp,
) -> Snapshot {
    let mut builder = Builder::new(limits.series);
    builder.reserve(daemon::group(telemetry, &BTreeMap::new(), 0, limits, now).len());

    let mut kept = Vec::with_capacity(runs.len());
    let mut shown = Vec::with_capacity(runs.len());
    for view in ordered(runs, limits) {
        let labels = run::labels(&view.application, limits);
        if !view.unique {
            let series = everything(&view, &labels, limits);
            builder.drop("duplicate_run", series);
        } else if builder.admit(run::group(&view, &labels, limits)) {
            shown.push(ShownRun { labels: Arc::clone(&labels), place: view.place });
            kept.push((view, labels));
        } else {
            let series = parts(&view, &labels, limits);
            builder.drop("series_limit", series);
        }
    }
    let (groups, twice) = name::groups(names, &Exemplars::of(runs), limits);
    builder.drop("duplicate_name", twice);
    for group in groups {
        builder.admit(group);
    }
    for part in PARTS {
        for (view, labels) in &kept {
            let Part { groups, reason, beyond } = part(view, labels, limits);
            builder.drop(reason, beyond);
            for group in groups {
                builder.admit(group);
            }
        }
    }

    // One series more: the one that tells how many there are counts itself,
    // and is part of the group already.
    let own = daemon::group(telemetry, builder.dropped(), 0, limits, now).len();
    let series = builder.series() + own;
    let own = daemon::group(telemetry, builder.dropped(), series, limits, now);
    builder.add(own);
    let (families, dropped) = builder.finish();
    let snapshot = Snapshot { families, dropped, runs: shown };
    debug_assert!(
        snapshot.duplicate().is_none(),
        "the same series twice: {:?}",
        snapshot.duplicate()
    );
    snapshot
}

/// Subjects of one sort in one run: those that get series, and how many
/// series the others would have had.
pub(super) struct Part {
    pub(super) groups: Vec<Group>,
    /// Why the others get none.
    pub(super) reason: &'static str,
    pub(super) beyond: usize,
}

struct Ordered<'a> {
    view: &'a RunView,
    /// Among the runs as they were given.
    place: usize,
    /// Whether no run before it has the same labels.
    unique: bool,
}

impl std::ops::Deref for Ordered<'_> {
    type Target = RunView;
    fn deref(&self) -> &RunView {
        self.view
    }
}

/// Running first, then the latest. Two runs whose labels are equal (the same
/// id started again, or ids equal once cut) cannot both be shown: the first
/// in this order is.
fn ordered<'a>(runs: &'a [RunView], limits: &Limits) -> Vec<Ordered<'a>> {
    let mut views: Vec<(usize, &RunView)> = runs.iter().enumerate().collect();
    views.sort_by(|(_, a), (_, b)| {
        let key = |view: &RunView| {
            let application = &view.application;
            (application.state == State::Running, application.end, application.start)
        };
        key(b).cmp(&key(a)).then_with(|| a.application.id.cmp(&b.application.id))
    });
    let mut seen = HashSet::with_capacity(views.len());
    views
        .into_iter()
        .map(|(place, view)| {
            let unique = seen.insert(run::labels(&view.application, limits));
            Ordered { view, place, unique }
        })
        .collect()
}

/// Series of all parts of a run, were they all shown.
fn parts(view: &RunView, labels: &Arc<[Text]>, limits: &Limits) -> usize {
    PARTS
        .iter()
        .map(|part| part(view, labels, limits))
        .map(|part| part.groups.iter().map(Group::len).sum::<usize>() + part.beyond)
        .sum()
}

fn everything(view: &RunView, labels: &Arc<[Text]>, limits: &Limits) -> usize {
    run::group(view, labels, limits).len() + parts(view, labels, limits)
}
