//! The conclusion: how ill the run is, which layer is slow, whose problem
//! that is, and where the next step is taken.

use std::fmt::Write;
use std::time::Duration;

use super::words;
use super::{Block, Section, Split};
use crate::diagnose::{
    Advice, Cause, Finding, FindingKind, Rule, Severity, Subject, TimePart, TimeSplit, humane,
};
use crate::model::StageId;
use crate::report::{View, privacy};

/// What a reader takes away.
#[derive(Debug, Clone, PartialEq)]
pub struct Conclusion {
    /// How many findings, and what mending them would save.
    pub lead: String,
    /// The layer that the costliest finding is about, or, without one, the
    /// largest part of the time.
    pub layer: Option<&'static str>,
    /// By what the layer was named.
    pub because: String,
    pub kind: Option<FindingKind>,
    pub next: Option<Advice>,
}

impl Conclusion {
    pub fn of(run: View<'_>) -> Self {
        let findings = &run.diagnosis.findings;
        let lead = lead(run);
        let largest = run.diagnosis.time.as_ref().and_then(largest);
        let Some(worst) = findings.iter().find(|finding| costs_something(finding)) else {
            return Self {
                lead,
                layer: largest.as_ref().map(|(part, _)| layer_of_time(*part)),
                because: largest.map_or_else(String::new, |(_, words)| words),
                kind: None,
                next: findings.iter().find_map(|finding| finding.advice.first().cloned()),
            };
        };
        let named = format!("named by the costliest finding ({})", worst.rule.as_str());
        let because = match largest {
            Some((_, words)) => format!("{named}; {words}"),
            None => named,
        };
        Self {
            lead,
            layer: Some(layer(worst, run)),
            because,
            kind: Some(worst.kind),
            next: worst.advice.first().cloned(),
        }
    }
}

/// Infos that cost nothing tell, and name no layer.
fn costs_something(finding: &Finding) -> bool {
    finding.severity > Severity::Info || finding.impact.wall.is_some_and(|wall| !wall.is_zero())
}

pub(super) fn section(run: View<'_>) -> Section {
    let conclusion = Conclusion::of(run);
    let mut section = Section::new("conclusion", "Conclusion");
    section.blocks.push(Block::Lead(conclusion.lead));
    let mut facts = Vec::new();
    if let Some(layer) = conclusion.layer {
        let because = match conclusion.because {
            because if because.is_empty() => because,
            because => format!(" ({because})"),
        };
        let name = if conclusion.kind.is_some() { "Slow layer" } else { "Most time in" };
        facts.push((name, format!("{layer}{because}")));
    }
    if let Some(kind) = conclusion.kind {
        facts.push(("Whose problem", words::kind(kind).to_owned()));
    }
    if let Some(next) = conclusion.next {
        let change = privacy::cut(&next.change, 400);
        facts.push(("Next step", format!("{}: {change}", words::place(next.place))));
    }
    if !facts.is_empty() {
        section.blocks.push(Block::Facts(facts));
    }
    if let Some(time) = &run.diagnosis.time {
        section.blocks.push(Block::Split(split("Where the time went", time)));
    }
    for mark in &run.application.data_quality {
        section.blocks.push(Block::Note(words::quality(*mark, run.application)));
    }
    section
}

pub(super) fn split(caption: &str, time: &TimeSplit) -> Split {
    let parts = TimePart::ALL
        .into_iter()
        .map(|part| (part, time.part(part)))
        .filter(|(_, span)| !span.is_zero())
        .collect();
    let mut notes: Vec<&str> = Vec::new();
    if let Some(by) = time.blocked_by.filter(|_| !time.part(TimePart::Blocked).is_zero()) {
        notes.push(words::blocked_by(by));
    }
    if time.estimated {
        notes.push("estimated from sums over the stages");
    }
    let note = match (time.blocked_by, notes.is_empty()) {
        (_, true) => None,
        (Some(_), _) => Some(format!("Blocked: {}", notes.join("; "))),
        (None, _) => Some(notes.join("; ")),
    };
    Split { caption: caption.to_owned(), total: time.total, parts, note }
}

fn largest(time: &TimeSplit) -> Option<(TimePart, String)> {
    let part = time.largest()?;
    let span = time.part(part);
    let share =
        if time.total.is_zero() { 0.0 } else { span.as_secs_f64() / time.total.as_secs_f64() };
    let words = format!(
        "most of the time went to {}: {} of {}, {}",
        words::part(part),
        humane::duration(span),
        humane::duration(time.total),
        humane::percent(share)
    );
    Some((part, words))
}

fn lead(run: View<'_>) -> String {
    let (application, findings) = (run.application, &run.diagnosis.findings);
    if findings.is_empty() {
        return if application.data_quality.is_empty() {
            "Nothing found.".to_owned()
        } else {
            "Nothing found in what could be read.".to_owned()
        };
    }
    let of = |severity: Severity| findings.iter().filter(|f| f.severity == severity).count();
    let counts: Vec<String> = [Severity::Critical, Severity::Warning, Severity::Info]
        .into_iter()
        .map(|severity| (of(severity), severity))
        .filter(|(count, _)| *count > 0)
        .map(|(count, severity)| format!("{count} {}", severity.as_str()))
        .collect();
    let saved: Duration = findings.iter().filter_map(|finding| finding.impact.wall).sum();
    let noun = if findings.len() == 1 { "finding" } else { "findings" };
    let mut line = format!("{} {noun}: {}", findings.len(), counts.join(", "));
    if let (false, Some(run)) = (saved.is_zero(), application.duration()) {
        let (saved, run) = (humane::duration(saved), humane::duration(run));
        let _ = write!(line, "; up to {saved} of {run} could be saved");
    }
    line
}

/// The layer a finding is about, in the words of whoever tunes it.
fn layer(finding: &Finding, run: View<'_>) -> &'static str {
    match (finding.rule, finding.cause) {
        (Rule::DataSkew, Some(Cause::InputFiles))
        | (Rule::SmallFilesRead | Rule::FullScan | Rule::CacheEvicted, _) => "scan",
        (Rule::DataSkew, _) => {
            operator_of(finding, run).unwrap_or("shuffle, with one key too heavy")
        }
        (Rule::Straggler, Some(Cause::ColdExecutor)) => "cold start of executors",
        (Rule::Straggler, Some(Cause::Gc)) | (Rule::GcPressure, _) => "garbage collection",
        (Rule::Straggler, Some(Cause::FetchWait))
        | (Rule::ShuffleHeavy | Rule::FetchFailures, _) => "shuffle",
        (Rule::Straggler, Some(Cause::SlowHost)) => "one slow host",
        (Rule::Straggler, _) => "a few slow tasks",
        (Rule::Spill, _) => "spill to disk",
        (Rule::IoBound, _) => "disk and network",
        (Rule::Partitioning, _) => "partitioning",
        (Rule::SchedulingDelay, _) => "scheduling",
        (Rule::ColdStart, _) | (Rule::Regression, Some(Cause::NoExecutors)) => "start of executors",
        (Rule::DriverGap, _) => "planning and the driver",
        (Rule::ApplicationIdle | Rule::IdleCores, _) => "unused resources",
        (Rule::StuckStage, _) => "a stage that stands still",
        (Rule::TaskFailures | Rule::StageRetries | Rule::SpeculationWaste, _) => {
            "work done in vain"
        }
        (Rule::ExecutorLost, _) => "lost executors",
        (Rule::Memory, _) => "memory",
        (Rule::JobFailed | Rule::ApplicationFailed, _) => "failure",
        (Rule::Configuration, _) => "configuration",
        (
            Rule::JoinExplosion | Rule::Cartesian | Rule::LargeBroadcast | Rule::MissedBroadcast,
            _,
        ) => "join",
        (Rule::PartialAggregation | Rule::CountDistinct, _) => "aggregation",
        (Rule::PythonUdf, _) => "Python code",
        (Rule::SmallFilesWritten, _) => "writing",
        (Rule::RepeatedSubplan, _) => "work that is done twice",
        (Rule::StreamingBehind, _) => "the stream's intake",
        (Rule::Regression, _) => "what changed since earlier runs",
    }
}

/// The operator that the tasks of a finding's stage worked on, from the plan.
fn operator_of(finding: &Finding, run: View<'_>) -> Option<&'static str> {
    let nodes = run.application.sql.iter().flatten().filter_map(|one| one.plan.as_ref());
    let nodes = nodes.flat_map(|plan| plan.nodes.iter());
    if let Subject::PlanNode { sql_id, node } = finding.subject {
        let executions = run.application.sql.as_ref()?;
        let plan = executions.iter().find(|one| one.id == sql_id)?.plan.as_ref()?;
        return operator(&plan.nodes.get(node as usize)?.name);
    }
    let stage: StageId = finding.stage()?;
    let mut found: Vec<&'static str> = nodes
        .filter(|node| node.stages.contains(&stage))
        .filter_map(|node| operator(&node.name))
        .collect();
    found.sort_by_key(|word| ["join", "window", "aggregation"].iter().position(|w| w == word));
    found.first().copied()
}

fn operator(name: &str) -> Option<&'static str> {
    if name.contains("Join") || name.starts_with("CartesianProduct") {
        Some("join")
    } else if name.starts_with("Window") {
        Some("window")
    } else if name.contains("Aggregate") {
        Some("aggregation")
    } else {
        None
    }
}

fn layer_of_time(part: TimePart) -> &'static str {
    match part {
        TimePart::Resources => "start of executors",
        TimePart::Driver => "planning and the driver",
        TimePart::Scheduling => "scheduling",
        TimePart::Deserialize => "cold start of executors",
        TimePart::Cpu => "computing",
        TimePart::Gc => "garbage collection",
        TimePart::FetchWait | TimePart::ShuffleWrite => "shuffle",
        TimePart::Result => "fetching results",
        TimePart::Blocked => "disk, network or Python",
    }
}
