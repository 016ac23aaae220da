//! What rules say of themselves (`docs/diagnostics.md`) is true of the
//! recorded runs.

use std::collections::{BTreeMap, BTreeSet};

use spark_exporter::config::Thresholds;
use spark_exporter::diagnose::{Cause, Finding, Rule, Severity, about, diagnose};

use super::recorded;

/// Rules whose runs need more time or data than a recording has: where they
/// are tested on those runs with a moved clock or a lower threshold.
const TESTED_OTHERWISE: [Rule; 3] = [
    // judgement.rs, at 200 MiB instead of 10 GiB.
    Rule::ShuffleHeavy,
    // whole_run.rs, a quarter of an hour later.
    Rule::ApplicationIdle,
    Rule::StuckStage,
];

/// Findings of each recorded run by its name, over all versions.
fn findings() -> BTreeMap<String, Vec<Vec<Finding>>> {
    let mut all: BTreeMap<String, Vec<Vec<Finding>>> = BTreeMap::new();
    for (run, _, application) in recorded() {
        let found = diagnose(&application, &Thresholds::default()).findings;
        all.entry(run).or_default().push(found);
    }
    all
}

#[test]
fn rules_fire_in_the_runs_they_name_and_are_silent_in_the_near_misses() {
    let all = findings();
    let mut wrong = Vec::new();
    for rule in Rule::ALL {
        let about = about(rule);
        let name = rule.as_str();
        if about.meaning.len() < 20 || about.details.len() < 40 {
            wrong.push(format!("{name} says nothing of itself"));
        }
        let fires = |run: &str| {
            let of_run = all.get(run).unwrap_or_else(|| panic!("{name} names {run}: no such run"));
            let count = of_run.iter().filter(|found| {
                found.iter().any(|finding| {
                    finding.rule == rule && finding.cause != Some(Cause::ColdExecutor)
                })
            });
            (count.count(), of_run.len())
        };
        for run in about.fires {
            let (count, of) = fires(run);
            if count != of && !TESTED_OTHERWISE.contains(&rule) {
                wrong.push(format!("{name} fires in {count} of {of} recordings of {run}"));
            }
        }
        for run in about.near_misses.iter().chain(about.resists.iter().map(|(run, _)| run)) {
            all.get(*run).unwrap_or_else(|| panic!("{name} names {run}: no such run"));
        }
        for run in about.near_misses {
            if fires(run).0 > 0 {
                wrong.push(format!("{name} fires in {run}, which it calls a near miss"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_number_of_the_evidence_is_explained() {
    let mut unknown = BTreeSet::new();
    for finding in findings().into_values().flatten().flatten() {
        let about = about(finding.rule);
        for evidence in &finding.evidence {
            if !about.evidence.iter().any(|(name, _)| *name == evidence.name) {
                unknown.insert(format!("{}: {}", finding.rule.as_str(), evidence.name));
            }
        }
        if finding.severity > Severity::Info {
            assert!(!finding.advice.is_empty(), "{}: no advice", finding.headline);
        }
        assert!(!finding.evidence.is_empty(), "{}: no evidence", finding.headline);
    }
    assert!(unknown.is_empty(), "not in ABOUT: {unknown:?}");
}
