//! Findings, the worst first: what each rests on, what it costs, what to do.

use std::collections::BTreeSet;

use super::words;
use super::{Block, Section};
use crate::diagnose::{Confidence, Finding, Severity, Subject, about};
use crate::report::{Diagnosed, privacy};

/// Findings that are shown whole; the others are counted.
const SHOWN: usize = 50;

#[derive(Debug, Clone, PartialEq)]
pub struct FindingView {
    /// Unique in the report, and stable: made of rule and subject.
    pub anchor: String,
    /// The first finding of its rule: it answers to the rule's name as well.
    pub is_first_of_rule: bool,
    pub rule: &'static str,
    pub cause: Option<&'static str>,
    pub severity: Severity,
    pub headline: String,
    /// What it means that the rule fires.
    pub meaning: &'static str,
    pub costs: String,
    pub confidence: Confidence,
    pub evidence: Vec<Evidenced>,
    pub advice: Vec<super::Item>,
}

/// One number that the finding rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidenced {
    pub name: String,
    /// What it is, where the rule says so.
    pub meaning: Option<&'static str>,
    pub value: String,
    pub threshold: Option<String>,
    pub from: String,
}

/// The place of a finding in a report: `data_skew-stage-10.0`.
pub fn anchor(finding: &Finding) -> String {
    let rule = finding.rule.as_str();
    let anchor = match &finding.subject {
        Subject::Application => rule.to_owned(),
        Subject::Job { job_id } => format!("{rule}-job-{job_id}"),
        Subject::Stage { stage_id, stage_attempt_id } => {
            format!("{rule}-stage-{stage_id}.{stage_attempt_id}")
        }
        Subject::Executor { executor_id } => format!("{rule}-executor-{executor_id}"),
        Subject::Host { host } => format!("{rule}-host-{host}"),
        Subject::ConfigurationKey { key } => format!("{rule}-key-{key}"),
        Subject::SqlExecution { sql_id } => format!("{rule}-sql-{sql_id}"),
        Subject::PlanNode { sql_id, node } => format!("{rule}-sql-{sql_id}-node-{node}"),
    };
    let safe = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    anchor.chars().map(safe).take(120).collect()
}

pub(super) fn section(run: &Diagnosed) -> Section {
    let mut section = Section::new("findings", "Findings");
    let mut anchors = BTreeSet::new();
    let mut rules = BTreeSet::new();
    for finding in run.diagnosis.findings.iter().take(SHOWN) {
        let mut view = view(finding);
        let plain = view.anchor.clone();
        let mut number = 1;
        while !anchors.insert(view.anchor.clone()) {
            number += 1;
            view.anchor = format!("{plain}-{number}");
        }
        // One about the whole application has the rule's name already.
        view.is_first_of_rule =
            rules.insert(finding.rule) && anchors.insert(finding.rule.as_str().to_owned());
        section.blocks.push(Block::Finding(view));
    }
    let all = run.diagnosis.findings.len() + run.diagnosis.findings_omitted as usize;
    if let Some(more) = all.checked_sub(SHOWN).filter(|more| *more > 0) {
        let more = words::more(more, "finding", "findings");
        section.blocks.push(Block::Note(format!("{more}, each smaller than these: see the JSON")));
    }
    section
}

fn view(finding: &Finding) -> FindingView {
    let about = about(finding.rule);
    let evidence = finding.evidence.iter().map(|evidence| Evidenced {
        name: evidence.name.replace('_', " "),
        meaning: about
            .evidence
            .iter()
            .find(|(name, _)| *name == evidence.name)
            .map(|(_, meaning)| *meaning),
        value: words::value(evidence.value, evidence.unit),
        threshold: evidence.threshold.map(|limit| words::value(limit, evidence.unit)),
        from: privacy::cut(&evidence.from, 200),
    });
    let advice = finding.advice.iter().map(|advice| super::Item {
        text: privacy::cut(&advice.change, 600),
        aside: advice.not_when.as_ref().map(|when| format!("not when {}", privacy::cut(when, 400))),
        anchor: None,
    });
    FindingView {
        anchor: anchor(finding),
        is_first_of_rule: false,
        rule: finding.rule.as_str(),
        cause: finding.cause.map(crate::diagnose::Cause::as_str),
        severity: finding.severity,
        headline: privacy::cut(&finding.headline, 600),
        meaning: if about.meaning == "TODO" { "" } else { about.meaning },
        costs: words::savings(finding),
        confidence: finding.confidence,
        evidence: evidence.collect(),
        advice: advice.collect(),
    }
}
