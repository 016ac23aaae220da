//! How well the diagnosis does over the whole collection, rule by rule:
//! printed by each run of the tests, and held at 1.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;

use spark_exporter::config::Thresholds;
use spark_exporter::diagnose::{Cause, Finding, Rule, Severity, diagnose};

use super::labels::{self, Expected};
use super::recorded;

/// Of one rule, over all labelled runs: findings that were wanted, findings
/// that nobody wanted, and wanted ones that did not come.
#[derive(Debug, Clone, Copy, Default)]
struct Score {
    right: u32,
    wrong: u32,
    missed: u32,
}

impl Score {
    fn precision(self) -> f64 {
        share(self.right, self.wrong)
    }

    fn recall(self) -> f64 {
        share(self.right, self.missed)
    }
}

fn share(right: u32, other: u32) -> f64 {
    if right + other == 0 { 1.0 } else { f64::from(right) / f64::from(right + other) }
}

/// What a label says of a finding: wanted, or nobody asked, or neither (it
/// may be there).
fn wanted(expected: &Expected, finding: &Finding) -> Option<bool> {
    let must = |(rule, cause, _): &(Rule, Option<Cause>, Severity)| {
        *rule == finding.rule && *cause == finding.cause
    };
    if expected.must.iter().any(must) {
        return Some(true);
    }
    let may =
        expected.may.iter().any(|(rule, most)| *rule == finding.rule && finding.severity <= *most)
            || (finding.cause == Some(Cause::ColdExecutor) && finding.severity == Severity::Info);
    if may { None } else { Some(false) }
}

#[test]
fn each_label_is_of_a_recorded_run_and_the_only_one() {
    let names: Vec<&str> = labels::all().map(|expected| expected.run).collect();
    let unique: BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!(names.len(), unique.len(), "a run has two labels");
    let runs: BTreeSet<String> = recorded().into_iter().map(|(run, ..)| run).collect();
    let recorded: BTreeSet<&str> = runs.iter().map(String::as_str).collect();
    let missing: Vec<_> = unique.difference(&recorded).collect();
    assert!(missing.is_empty(), "labelled and not recorded: {missing:?}");
}

#[test]
fn precision_and_recall_over_the_collection_are_one() {
    let mut scores: BTreeMap<Rule, Score> = BTreeMap::new();
    let runs = recorded();
    for (run, _, application) in &runs {
        let expected = labels::of(run).expect("a labelled run");
        let findings = diagnose(application, &Thresholds::default()).findings;
        for finding in &findings {
            let score = scores.entry(finding.rule).or_default();
            match wanted(expected, finding) {
                Some(true) => score.right += 1,
                Some(false) => score.wrong += 1,
                None => {}
            }
        }
        for (rule, cause, least) in expected.must {
            let found = findings.iter().any(|finding| {
                finding.rule == *rule && finding.cause == *cause && finding.severity >= *least
            });
            scores.entry(*rule).or_default().missed += u32::from(!found);
        }
    }
    let mut table = format!(
        "\nDiagnosis of {} labelled runs of real Spark ({} names):\n{:<20} {:>7} {:>7} {:>7} {:>10} {:>7}\n",
        runs.len(),
        labels::all().count(),
        "rule",
        "right",
        "wrong",
        "missed",
        "precision",
        "recall"
    );
    for (rule, score) in &scores {
        writeln!(
            table,
            "{:<20} {:>7} {:>7} {:>7} {:>10.2} {:>7.2}",
            rule.as_str(),
            score.right,
            score.wrong,
            score.missed,
            score.precision(),
            score.recall()
        )
        .expect("a String takes it");
    }
    // Past the capture of tests that pass: whoever runs them should see it.
    std::io::stderr().write_all(table.as_bytes()).expect("standard error");
    assert!(runs.len() >= 60, "only {} labelled runs", runs.len());
    for (rule, score) in scores {
        assert_eq!((score.wrong, score.missed), (0, 0), "{}: {score:?}", rule.as_str());
    }
}
