//! Series by name of application, across its runs and through restarts.
//!
//! Everything per run is a gauge that goes with its run; what stands here are
//! true counters, whose runs were each counted once ([`crate::store`]), and
//! what alerts on batch jobs need: when a name last succeeded, how long its
//! runs usually take.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::catalogue::Id;
use super::exemplar::Exemplars;
use super::group::Group;
use super::label::{self, Text};
use super::sample::{Extra, Histogram};
use crate::config::{Limits, Names, UNNAMED};
use crate::diagnose::{Baseline, Rule};
use crate::report::privacy::redacted;
use crate::store::{DURATION_BOUNDS, NameKey, OUTCOMES, OVERFLOW_NAME, Totals};

/// A name with what is known of its runs.
#[derive(Debug, Clone, PartialEq)]
pub struct NameView {
    pub name: NameKey,
    /// As they are to be shown ([`Totals::shown`]).
    pub totals: Totals,
    /// Of the operator's prices: costs are not shown without one.
    pub currency: Option<Arc<str>>,
    /// What the newest run that ended well was held against.
    pub baseline: Option<Baseline>,
    /// Its duration / the baseline's median.
    pub regression_ratio: Option<f64>,
    /// Median time between the ends of runs that ended well, of 5 and more.
    pub success_interval: Option<Duration>,
    /// Applications since the last that ended well that did not.
    pub failures_in_a_row: Option<usize>,
    pub success_due: Option<SuccessDue>,
}

/// When the next run that ends well is due at the latest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SuccessDue {
    /// Milliseconds since the epoch.
    pub at_ms: i64,
    /// Whether it was learned from earlier runs; else the operator said so.
    pub learned: bool,
}

impl NameView {
    /// With totals only.
    pub fn new(name: NameKey, totals: Totals) -> Self {
        Self {
            name,
            totals,
            currency: None,
            baseline: None,
            regression_ratio: None,
            success_interval: None,
            failures_in_a_row: None,
            success_due: None,
        }
    }
}

/// The `app_name` label of an application of this name: without secrets,
/// rewritten by the operator's rules, cleaned and cut; never empty.
///
/// Secrets go before the rules too: a rule could keep the secret and drop the
/// word that announces it.
pub fn app_name(name: &str, names: &Names, limits: &Limits) -> Arc<str> {
    let rewritten = names.rewrite(&redacted(name));
    let label = label::clean(&redacted(&rewritten), limits.label_length);
    if label.is_empty() { UNNAMED.into() } else { label.into() }
}

/// The series of each name, those with the latest run first. Names that are
/// equal once cut cannot both be shown: of the second sort there is only how
/// many series they would have.
pub(super) fn groups(
    names: &[NameView],
    exemplars: &Exemplars<'_>,
    limits: &Limits,
) -> (Vec<Group>, usize) {
    let mut views: Vec<&NameView> = names.iter().collect();
    // What is added up of many names is not left out for one of them.
    views.sort_by_key(|view| {
        let overflow = view.name.app_name == OVERFLOW_NAME;
        (!overflow, Reverse(view.totals.last_end_ms), &view.name)
    });
    let mut seen = HashSet::with_capacity(views.len());
    let mut groups = Vec::with_capacity(views.len());
    let mut twice = 0;
    for view in views {
        let labels: Arc<[Text]> = Arc::new([
            Text::clean(&view.name.cluster, limits.label_length),
            Text::clean(&view.name.app_name, limits.label_length),
        ]);
        let group = group(view, exemplars, &labels, limits);
        if seen.insert(labels) {
            groups.push(group);
        } else {
            twice += group.len();
        }
    }
    (groups, twice)
}

fn group(
    view: &NameView,
    exemplars: &Exemplars<'_>,
    labels: &Arc<[Text]>,
    limits: &Limits,
) -> Group {
    let mut group = Group::new(Arc::clone(labels));
    let totals = &view.totals;
    group.since(totals.since_ms);
    for (outcome, runs) in OUTCOMES.into_iter().zip(totals.runs) {
        group.add_for(Id::NameRuns, outcome.as_str(), runs);
    }
    group.add(
        Id::NameDuration,
        Histogram {
            bounds: &DURATION_BOUNDS,
            counts: totals.durations.to_vec(),
            sum: Duration::from_millis(totals.duration_sum_ms).as_secs_f64(),
            exemplars: exemplars.of_name(
                &view.name.cluster,
                &view.name.app_name,
                &totals.durations,
            ),
        },
    );
    amounts(&mut group, view, limits);
    for (rule, total) in &totals.findings {
        let known = Rule::ALL.into_iter().find(|known| known.as_str() == rule);
        // Another version's: its counter goes on all the same.
        let other = || Extra::Many(Arc::new([Text::clean(rule, limits.label_length)]));
        let label = known.map_or_else(other, |known| Extra::One(known.as_str()));
        group.since(total.since_ms);
        group.with(Id::NameFindings, label, total.runs);
    }
    let at = |ms: i64| ms as f64 / 1_000.0;
    group.add(Id::NameLastRun, totals.last_end_ms.map(at));
    group.add(Id::NameLastSuccess, totals.last_success_ms.map(at));
    group.add(Id::NameLastDuration, totals.last_duration_ms.map(Duration::from_millis));
    group.add(Id::NameSuccessInterval, view.success_interval);
    group.add(Id::NameFailuresInARow, view.failures_in_a_row);
    if let Some(due) = view.success_due {
        let basis = if due.learned { "learned" } else { "configured" };
        group.add_for(Id::NameSuccessDue, basis, at(due.at_ms));
    }
    if let Some(baseline) = view.baseline {
        group.add(Id::NameBaseline, baseline.median);
        group.add(Id::NameBaselineSpread, baseline.spread);
        group.add(Id::NameBaselineRuns, baseline.runs);
    }
    group.add(Id::NameRegression, view.regression_ratio);
    group
}

fn amounts(group: &mut Group, view: &NameView, limits: &Limits) {
    let amounts = &view.totals.amounts;
    for (id, core_ms) in [
        (Id::NameBoughtCore, amounts.bought_core_ms),
        (Id::NameUsedCore, amounts.used_core_ms),
        (Id::NameWastedCore, amounts.wasted_core_ms),
    ] {
        group.add(id, Duration::from_millis(core_ms));
    }
    for (id, bytes) in [
        (Id::NameMemorySpilled, amounts.memory_spilled_bytes),
        (Id::NameDiskSpilled, amounts.disk_spilled_bytes),
        (Id::NameShuffleRead, amounts.shuffle_read_bytes),
        (Id::NameShuffleWrite, amounts.shuffle_write_bytes),
        (Id::NameInput, amounts.input_bytes),
        (Id::NameOutput, amounts.output_bytes),
    ] {
        group.add(id, bytes);
    }
    if let Some(currency) = &view.currency {
        let currency = Arc::new([Text::clean(currency, limits.label_length)]);
        group.with(Id::NameCost, Extra::Many(currency), amounts.cost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_has_no_secret_and_is_never_empty() {
        let limits = Limits::default();
        let config = crate::config::Config::parse(
            "names:\n  rules:\n  - {pattern: '.*password=(.*)', replacement: '$1'}\n",
        )
        .expect("valid");
        let label = |name: &str| app_name(name, &config.names, &limits).to_string();
        // The rule would keep what the word before it announces.
        assert_eq!(label("load password=hunter2"), "<redacted>");
        assert_eq!(label("load token=hunter2 2026-11-29"), "load token=<redacted>");
        assert_eq!(
            label("jdbc:x://me:hunter2-20261129@db/orders"),
            "jdbc:x://<redacted>@db/orders"
        );
        assert_eq!(label("etl\n2026-11-29"), "etl");
        for nothing in ["", "\u{202e}", "\n", "\0", "2026-11-29"] {
            assert_eq!(label(nothing), UNNAMED);
        }
        assert_eq!(label(&"é".repeat(100_000)).chars().count(), limits.label_length);
    }
}
