//! The earlier runs of a name: what the newest is held against, and the
//! finding `regression` of those that are shown.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::super::registry::{Registry, locked};
use super::rhythm::Rhythm;
use super::{Memory, WORK_FOR};
use crate::config::UNNAMED;
use crate::diagnose::{Baseline, Finding, Rule, RunSummary, judge, with_regression};
use crate::model::{Kind, State};
use crate::store::{NameKey, OVERFLOW_NAME, RunKey, Store, StoreError, StoredRun};

/// Runs of a name that are looked at: several times what a baseline is made
/// of, since not all of them ended well or had as much data.
const LOOKED_AT: usize = 100;

/// What the runs of a name say together.
#[derive(Debug, Clone, Default)]
pub(super) struct History {
    pub(super) baseline: Option<Baseline>,
    pub(super) regression_ratio: Option<f64>,
    pub(super) success_interval: Option<Duration>,
    /// How long after a success the next one is due, as learned.
    pub(super) success_within: Option<Duration>,
    pub(super) failures_in_a_row: Option<usize>,
}

impl Memory {
    /// Whether a run that is about to be written took longer than those
    /// before it.
    pub(super) fn is_regression(
        &self,
        store: &Store,
        name: &NameKey,
        key: &RunKey,
        run: &StoredRun,
    ) -> Result<bool, StoreError> {
        if is_many_jobs(name) {
            return Ok(false);
        }
        let runs = store.backend().runs_by_name(name, LOOKED_AT)?;
        let config = self.config();
        let thresholds = config.thresholds_for(&name.app_name);
        let judged = judge(&run.summary, &before(&runs, key), &thresholds);
        Ok(judged.finding.is_some())
    }

    /// Looks at names whose runs changed, for as long as there is time.
    pub(super) fn judge(
        &self,
        store: &Store,
        registry: &Mutex<Registry>,
        begun: Instant,
    ) -> Result<(), StoreError> {
        loop {
            let Some(name) = self.inner().changed.first().cloned() else { return Ok(()) };
            let mut history = History::default();
            if !is_many_jobs(&name) {
                let runs = store.backend().runs_by_name(&name, LOOKED_AT)?;
                history = self.history(&name, &runs);
                self.judge_shown(&name, &runs, registry);
            }
            let mut inner = self.inner();
            inner.changed.remove(&name);
            if inner.totals.contains_key(&name) {
                inner.histories.insert(name, history);
            }
            drop(inner);
            if begun.elapsed() >= WORK_FOR {
                return Ok(());
            }
        }
    }

    fn history(&self, name: &NameKey, runs: &[(RunKey, StoredRun)]) -> History {
        let rhythm = Rhythm::of(runs);
        let newest = runs
            .iter()
            .filter(|(_, run)| run.record.ended_well)
            .max_by_key(|(key, _)| key.start_ms);
        let config = self.config();
        let thresholds = config.thresholds_for(&name.app_name);
        let judged = newest
            .map(|(key, run)| judge(&run.summary, &before(runs, key), &thresholds))
            .unwrap_or_default();
        History {
            baseline: judged.baseline,
            regression_ratio: judged.ratio,
            success_interval: rhythm.map(|rhythm| rhythm.median),
            success_within: rhythm.and_then(|rhythm| rhythm.within()),
            failures_in_a_row: failures_in_a_row(runs),
        }
    }

    /// Gives the runs of the name that are shown their finding, or takes it
    /// away: earlier runs may be read after later ones.
    fn judge_shown(
        &self,
        name: &NameKey,
        runs: &[(RunKey, StoredRun)],
        registry: &Mutex<Registry>,
    ) {
        let config = self.config();
        let shown = locked(registry).ended_runs_of(name);
        for held in shown {
            let key = RunKey::of(&held.application);
            let stored = runs.iter().find(|(known, _)| known.is_same_run(&key));
            let Some((key, run)) = stored else { continue };
            let finding = if run.record.ended_well {
                let thresholds = config.thresholds_for(&held.application.name);
                judge(&run.summary, &before(runs, key), &thresholds).finding
            } else {
                None
            };
            if known_finding(&held.diagnosis.findings) == finding.as_ref() {
                continue;
            }
            let judged = Arc::new(with_regression(&held.diagnosis, finding));
            locked(registry).rejudge(&held, judged);
        }
    }
}

/// Whether runs of this name are runs of different jobs: they have nothing in
/// common to be held against.
pub(super) fn is_many_jobs(name: &NameKey) -> bool {
    [UNNAMED, OVERFLOW_NAME].contains(&name.app_name.as_str())
}

fn known_finding(findings: &[Finding]) -> Option<&Finding> {
    findings.iter().find(|finding| finding.rule == Rule::Regression)
}

/// The runs that began before this one and ended well, in any order.
fn before(runs: &[(RunKey, StoredRun)], key: &RunKey) -> Vec<RunSummary> {
    let earlier = runs.iter().filter(|(other, run)| {
        run.record.ended_well && other.start_ms < key.start_ms && !other.is_same_run(key)
    });
    earlier.map(|(_, run)| run.summary.clone()).collect()
}

/// How many applications failed since the last that ended well. Of attempts of
/// one application the latest speaks for it; what somebody ended, or of which
/// nothing tells how it ended, speaks for neither. `None` where no run speaks.
fn failures_in_a_row(runs: &[(RunKey, StoredRun)]) -> Option<usize> {
    let mut latest_first: Vec<_> =
        runs.iter().filter(|(_, run)| run.record.kind != Kind::Interactive).collect();
    latest_first.sort_by_key(|(_, run)| Reverse(run.record.end_ms));
    let mut failed = HashSet::new();
    for (key, run) in latest_first {
        if failed.contains(&key.id.app_id) {
            continue;
        }
        if run.record.ended_well {
            return Some(failed.len());
        }
        let did_fail = match run.record.state {
            State::Failed | State::Lost => true,
            State::Unknown => run.record.end_seen,
            State::Running | State::Succeeded | State::Killed | State::Cancelled => false,
        };
        if did_fail {
            failed.insert(&key.id.app_id);
        }
    }
    (!failed.is_empty()).then_some(failed.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::Diagnosis;
    use crate::model::{Application, RunId, Source};
    use jiff::Timestamp;

    fn run(start: i64, end: i64, state: State) -> (RunKey, StoredRun) {
        let id = RunId { cluster: "c".into(), app_id: format!("app-{start}"), attempt_id: None };
        let at = |second| Timestamp::from_second(1_800_000_000 + second).unwrap();
        let mut application = Application::new(id, Source::EventLog, at(end));
        application.start = Some(at(start));
        application.end = Some(at(end));
        application.state = state;
        let run = StoredRun::of(&application, &Diagnosis::default(), "job", None, None);
        (RunKey::of(&application), run)
    }

    #[test]
    fn names_that_stand_for_many_jobs_have_no_baseline() {
        let name = |app_name: &str| {
            is_many_jobs(&NameKey { cluster: "c".to_owned(), app_name: app_name.to_owned() })
        };
        assert!(name("_unnamed") && name("_other"));
        assert!(!name("orders") && !name("other"));
    }

    #[test]
    fn failures_are_counted_back_to_the_last_run_that_ended_well() {
        let row = |states: &[State]| {
            let runs: Vec<_> = (0..).zip(states).map(|(n, state)| run(n, n + 1, *state)).collect();
            failures_in_a_row(&runs)
        };
        let (good, bad, lost, killed) =
            (State::Succeeded, State::Failed, State::Lost, State::Killed);
        assert_eq!(row(&[]), None);
        assert_eq!(row(&[killed]), None);
        assert_eq!(row(&[bad, good]), Some(0));
        assert_eq!(row(&[bad, good, bad, killed, lost]), Some(2));
        assert_eq!(row(&[bad, bad, bad]), Some(3));
    }

    /// The tempting wrong verdict: two attempts that failed are two failures.
    #[test]
    fn the_latest_attempt_speaks_for_its_application() {
        let attempt = |number: i64, state: State| {
            let (mut key, run) = run(number, number + 1, state);
            key.id.app_id = "app-1".into();
            key.id.attempt_id = Some(number.to_string());
            (key, run)
        };
        let runs = [attempt(1, State::Failed), attempt(2, State::Failed)];
        assert_eq!(failures_in_a_row(&runs), Some(1));
        let runs = [attempt(1, State::Failed), attempt(2, State::Succeeded)];
        assert_eq!(failures_in_a_row(&runs), Some(0));
    }

    #[test]
    fn a_run_is_held_against_those_that_began_before_it() {
        let runs = [
            run(300, 360, State::Succeeded),
            run(200, 290, State::Succeeded),
            run(100, 150, State::Failed),
            run(0, 400, State::Succeeded),
        ];
        let earlier = before(&runs, &runs[1].0);
        assert_eq!(earlier, [runs[3].1.summary.clone()]);
        assert_eq!(before(&runs, &runs[0].0).len(), 2);
    }
}
