//! Whatever comes, a finding is new before it is cleared, and is not new twice
//! without having been cleared between; and what is said ends up as what is.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::tests::{Reader, attributes, ended, finding, running};
use super::*;
use crate::diagnose::{Cause, Finding, Rule};

/// Rules and stages of findings that may be there. The last two are of one
/// rule and stage.
const FINDINGS: [(Rule, u32); 5] = [
    (Rule::DataSkew, 1),
    (Rule::Spill, 1),
    (Rule::Spill, 7),
    (Rule::ExecutorLost, 3),
    (Rule::ExecutorLost, 3),
];

#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "what may happen, each by itself")]
struct Step {
    seconds: u64,
    /// Of each finding its severity and cause, where it is there.
    there: Vec<Option<(Severity, Option<Cause>)>>,
    ready: bool,
    taken: bool,
    restarts: bool,
    /// Whether old stages are in the reading.
    whole: bool,
}

fn step() -> impl Strategy<Value = Step> {
    let severity = prop_oneof![
        3 => Just(Severity::Info),
        2 => Just(Severity::Warning),
        1 => Just(Severity::Critical),
    ];
    let cause = prop_oneof![Just(None), Just(Some(Cause::Gc)), Just(Some(Cause::Killed))];
    let one = proptest::option::of((severity, cause));
    let there = proptest::collection::vec(one, FINDINGS.len());
    let often = |weight| prop::bool::weighted(weight);
    (1_u64..200, there, often(0.9), often(0.8), often(0.1), often(0.8)).prop_map(
        |(seconds, there, ready, taken, restarts, whole)| Step {
            seconds,
            there,
            ready,
            taken,
            restarts,
            whole,
        },
    )
}

fn findings(step: &Step) -> Vec<Finding> {
    let all = step.there.iter().zip(FINDINGS);
    all.filter_map(|(there, (rule, stage))| {
        let (severity, cause) = (*there)?;
        Some(Finding { cause, ..finding(rule, stage, severity) })
    })
    .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn new_comes_before_cleared_and_never_twice(steps in proptest::collection::vec(step(), 1..40)) {
        let mut reader = Reader::new();
        // How many of a rule and stage are said.
        let mut said: BTreeMap<(String, String), u32> = BTreeMap::new();
        for step in &steps {
            reader.pass(step.seconds);
            reader.ready = step.ready;
            if step.restarts {
                reader.memo = Memo::default();
            }
            let mut application = running();
            if !step.whole {
                application.stages.retain(|stage| stage.id.stage > 2);
            }
            let due = reader.look(&application, &findings(step));
            if !step.taken {
                continue;
            }
            for log in reader.take(due) {
                let all = attributes(&log);
                let key = (all["spark.finding.rule"].clone(), all["spark.stage.id"].clone());
                let most = if key.0 == "executor_lost" { 2 } else { 1 };
                let count = said.entry(key).or_default();
                match all["spark.finding.state"].as_str() {
                    "new" => {
                        *count += 1;
                        prop_assert!(*count <= most, "{:?}", all);
                    }
                    "cleared" => {
                        prop_assert!(*count > 0, "{:?}", all);
                        *count -= 1;
                    }
                    "changed" => prop_assert!(*count > 0, "{:?}", all),
                    other => prop_assert!(false, "{}", other),
                }
            }
            // What is there was said, as bad as it is at least.
            for now in findings(step) {
                let known = reader.delivered.findings.iter().any(|known| {
                    known.rule == now.rule.as_str()
                        && severity(&known.severity) >= Some(now.severity)
                });
                prop_assert!(known, "{:?}", now.headline);
            }
        }
        // Its end settles everything at once, and says nothing more then.
        let last = findings(&steps[steps.len() - 1]);
        reader.ready = true;
        let due = reader.look(&ended(), &last);
        reader.take(due);
        let now = last.iter().map(|now| (now.rule.as_str(), now.severity.as_str(), now.cause));
        let mut now: Vec<_> =
            now.map(|(rule, severity, cause)| (rule, severity, cause.map(Cause::as_str))).collect();
        let known = reader.delivered.findings.iter();
        let mut known: Vec<_> = known
            .map(|one| (one.rule.as_str(), one.severity.as_str(), one.cause.as_deref()))
            .collect();
        now.sort_unstable();
        known.sort_unstable();
        prop_assert_eq!(now, known);
        let due = reader.look(&ended(), &last);
        prop_assert!(due.records.is_empty() && due.silent.is_empty() && !due.again);
    }

    #[test]
    fn what_flaps_says_little(there in proptest::collection::vec(any::<bool>(), 100)) {
        let mut reader = Reader::new();
        let mut records = 0;
        for there in there {
            reader.pass(15);
            let findings = if there { vec![finding(Rule::Spill, 7, Severity::Info)] } else { vec![] };
            let due = reader.look(&running(), &findings);
            records += reader.take(due).len();
        }
        // In 25 minutes.
        prop_assert!(records <= 10, "{}", records);
    }
}
