//! What can be said without a run: of a plan alone (`EXPLAIN`), or of a
//! driver's log, which has no numbers of tasks.
//!
//! Cost decides, and here nothing was measured: such findings are `info` of
//! low confidence without an impact, and say that no run was seen.

use super::Diagnosis;
use super::finding::{
    Advice, Cause, Confidence, Evidence, Finding, FindingKind, Impact, Rule, Severity, Subject,
    Unit, Where,
};
use crate::model::{Application, Plan, PlanNode, Source};

/// Rules that need jobs and times only, as a driver's log has them.
const OF_DRIVER_LOG: [Rule; 4] =
    [Rule::JobFailed, Rule::ApplicationFailed, Rule::DriverGap, Rule::Memory];

/// Keeps what the source can support, and adds what a plan alone shows.
pub(super) fn settle(application: &Application, findings: &mut Vec<Finding>) {
    match application.source {
        Source::DriverLog => {
            findings.retain(|finding| OF_DRIVER_LOG.contains(&finding.rule));
            for finding in findings {
                finding.confidence = finding.confidence.lower();
            }
        }
        Source::Explain => {
            findings.clear();
            for execution in application.sql.iter().flatten() {
                if let Some(plan) = &execution.plan {
                    findings.extend(of_plan(execution.id, plan));
                }
            }
        }
        Source::Driver | Source::HistoryServer | Source::EventLog => {}
    }
}

/// A driver's log says that its heap was used up, which no other source does:
/// the program died before it could tell.
pub fn add_driver_out_of_memory(diagnosis: &mut Diagnosis, ended_by_it: bool) {
    let finding = Finding {
        rule: Rule::Memory,
        cause: Some(Cause::HeapOom),
        severity: if ended_by_it { Severity::Critical } else { Severity::Warning },
        kind: FindingKind::Resources,
        subject: Subject::Application,
        headline: "The driver's heap was used up: its log has an OutOfMemoryError of the driver's \
                   own"
        .to_owned(),
        evidence: vec![Evidence {
            name: "driver_out_of_memory",
            value: 1.0,
            unit: Unit::Count,
            threshold: Some(1.0),
            from: "the driver's log".to_owned(),
        }],
        impact: Impact::default(),
        confidence: Confidence::High,
        advice: vec![
            Advice {
                change: "Bring less to the driver: write results out instead of collect() or \
                         toPandas(), or take a limit of them"
                    .to_owned(),
                place: Where::Sql,
                not_when: Some("the program collects nothing large".to_owned()),
            },
            Advice {
                change: "Broadcast less: lower spark.sql.autoBroadcastJoinThreshold, or take \
                         broadcast hints of large tables away; the driver builds each broadcast"
                    .to_owned(),
                place: Where::Conf,
                not_when: Some("the plan broadcasts nothing large".to_owned()),
            },
            Advice {
                change: "Raise spark.driver.memory; a spark.driver.maxResultSize well below it \
                         makes a large result fail as a job instead"
                    .to_owned(),
                place: Where::Resources,
                not_when: Some("what is held grows for as long as the driver runs".to_owned()),
            },
        ],
    };
    diagnosis.findings.insert(0, finding);
}

fn of_plan(sql_id: u64, plan: &Plan) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (place, node) in plan.nodes.iter().enumerate() {
        let Some((rule, what, advice)) = judged(node) else { continue };
        let node_number = u32::try_from(place).unwrap_or(u32::MAX);
        let operator: Vec<&str> = node.name.split_whitespace().take(2).collect();
        findings.push(Finding {
            rule,
            cause: None,
            severity: Severity::Info,
            kind: FindingKind::Data,
            subject: Subject::PlanNode { sql_id, node: node_number },
            headline: format!(
                "{} (node {place}) {what}; no run seen, so what it costs is unknown",
                operator.join(" ")
            ),
            evidence: vec![Evidence {
                name: "plan_nodes",
                value: plan.nodes.len() as f64,
                unit: Unit::Count,
                threshold: None,
                from: "the plan's text".to_owned(),
            }],
            impact: Impact::default(),
            confidence: Confidence::Low,
            advice: vec![advice],
        });
    }
    findings
}

/// What an operator is known for, whatever its numbers.
fn judged(node: &PlanNode) -> Option<(Rule, &'static str, Advice)> {
    let name = &*node.name;
    let advice = |change: &str, place, not_when: &str| Advice {
        change: change.to_owned(),
        place,
        not_when: Some(not_when.to_owned()),
    };
    if name.starts_with("CartesianProduct") || name.starts_with("BroadcastNestedLoopJoin") {
        let what = "compares each row of one side with each of the other";
        let change = "Join by equal keys, or by a coarser equal key before the condition";
        let not_when = "one side has a few rows only: the run's event log has the numbers";
        return Some((Rule::Cartesian, what, advice(change, Where::Sql, not_when)));
    }
    let by_row = match name {
        "BatchEvalPython" => true,
        "ArrowEvalPython" => matches!(node.last_argument(), Some("100" | "101")),
        _ => false,
    };
    if by_row {
        let what = "calls Python for each row";
        let change = "Use built-in functions, or a pandas UDF, which takes rows in batches";
        let not_when = "few rows reach it";
        return Some((Rule::PythonUdf, what, advice(change, Where::Sql, not_when)));
    }
    if reads_whole_table(node) {
        let what = "reads every partition of a partitioned table";
        let change = "Filter by the partition column with a value that is known beforehand";
        let not_when = "the query needs all of the table, or the table is small";
        return Some((Rule::FullScan, what, advice(change, Where::Sql, not_when)));
    }
    None
}

/// A scan of files without a filter of partitions, whose output has columns
/// that are in no file: those are the partitions'.
fn reads_whole_table(node: &PlanNode) -> bool {
    if node.metadata("PartitionFilters") != Some("[]") {
        return false;
    }
    let Some(schema) = node.metadata("ReadSchema").filter(|schema| !schema.contains(['…', ' ']))
    else {
        return false;
    };
    let output = node.text.as_str().split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    let Some((output, _)) = output.filter(|(output, _)| !output.contains("more fields")) else {
        return false;
    };
    output.split(',').map(|column| column.trim().split('#').next().unwrap_or_default()).any(
        |column| {
            let field = format!("{column}:");
            !column.is_empty()
                && !column.starts_with("_metadata")
                && !schema.contains(&format!("<{field}"))
                && !schema.contains(&format!(",{field}"))
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::texts::explain;

    fn rules(text: &str) -> Vec<Rule> {
        let plan = explain::parse(text).expect("a plan");
        of_plan(0, &plan).iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn a_scan_of_all_partitions_and_others() {
        let scan = |output: &str, more: &str| {
            format!(
                "== Physical Plan ==\n* Scan parquet (1)\n\n\n(1) Scan parquet \n\
                 Output [2]: [{output}]\nBatched: true\n\
                 Location: InMemoryFileIndex [file:/t]\n{more}ReadSchema: struct<id:bigint,a:int>\n"
            )
        };
        assert_eq!(rules(&scan("id#1L, a#2, day#3", "")), [Rule::FullScan]);
        // Filtered, and not partitioned.
        let filtered = "PartitionFilters: [isnotnull(day#3), (day#3 = 1)]\n";
        assert_eq!(rules(&scan("id#1L, a#2, day#3", filtered)), []);
        assert_eq!(rules(&scan("id#1L, a#2", "")), []);
    }

    #[test]
    fn what_is_said_without_a_run_says_so() {
        let plan = explain::parse(
            "== Physical Plan ==\nCartesianProduct (x#1 > y#2)\n:- *(1) Range (0, 9)\n\
             +- *(2) Range (0, 9)\n",
        )
        .expect("a plan");
        let findings = of_plan(0, &plan);
        assert_eq!(findings.len(), 1);
        let finding = &findings[0];
        assert_eq!((finding.rule, finding.severity), (Rule::Cartesian, Severity::Info));
        assert_eq!(finding.confidence, Confidence::Low);
        assert_eq!(finding.impact, Impact::default());
        assert!(finding.headline.contains("no run seen"), "{}", finding.headline);
    }
}
