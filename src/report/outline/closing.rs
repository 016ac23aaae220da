//! The end of a report: what to do in order, what the data cannot tell, and
//! what somebody has to look up elsewhere.

use std::collections::BTreeSet;

use super::words;
use super::{Block, Item, Section};
use crate::diagnose::{Cause, Rule, Where};
use crate::model::{Source, State};
use crate::report::{Texts, View, privacy};

/// Changes listed.
const SUGGESTIONS: usize = 10;

/// One thing to change, of all findings together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion {
    pub change: String,
    pub place: Where,
    pub not_when: Option<String>,
    pub finding: String,
}

/// The first advice of each finding, the costliest finding first, then the
/// second ones, and so on; what several findings advise is said once.
pub fn suggested(run: View<'_>) -> Vec<Suggestion> {
    let findings = &run.diagnosis.findings;
    let rounds = findings.iter().map(|finding| finding.advice.len()).max().unwrap_or_default();
    let mut said = BTreeSet::new();
    let mut all = Vec::new();
    for round in 0..rounds {
        for finding in findings {
            let Some(advice) = finding.advice.get(round) else { continue };
            if all.len() < SUGGESTIONS && said.insert(&advice.change) {
                all.push(Suggestion {
                    change: privacy::cut(&advice.change, 600),
                    place: advice.place,
                    not_when: advice.not_when.as_deref().map(|when| privacy::cut(when, 400)),
                    finding: super::anchor(finding),
                });
            }
        }
    }
    all
}

pub(super) fn suggestions(run: View<'_>) -> Section {
    let mut section = Section::new("suggestions", "Suggestions, in order");
    let items: Vec<Item> = suggested(run)
        .into_iter()
        .map(|one| Item {
            text: format!("{} ({})", one.change, words::place(one.place)),
            aside: one.not_when.map(|when| format!("not when {when}")),
            anchor: Some(one.finding),
        })
        .collect();
    if !items.is_empty() {
        section.blocks.push(Block::List { ordered: true, items });
    }
    section
}

/// What this report cannot know, and why.
pub fn limit_texts(run: View<'_>, texts: Texts) -> Vec<String> {
    let application = run.application;
    let mut limits = Vec::new();
    match application.source {
        Source::EventLog => {}
        Source::DriverLog => limits.push(
            "Read from a driver's log: the event log or the UI would add every number of tasks, \
             executors and plans."
                .to_owned(),
        ),
        Source::Explain => limits.push(
            "A plan without a run: an event log or a UI would add rows, bytes and times of its \
             nodes."
                .to_owned(),
        ),
        Source::Driver => limits.push(
            "Read from the driver's REST API: its event log would add exact metrics of plans, \
             every task's times, streaming queries and reasons of failures."
                .to_owned(),
        ),
        Source::HistoryServer => limits.push(
            "Read from a History Server's REST API: the event log would add exact metrics of \
             plans, every task's times and streaming queries."
                .to_owned(),
        ),
    }
    if application.state == State::Running {
        limits.push("The application runs: what is said holds so far.".to_owned());
    }
    limits.push(
        "Key values are unknown: Spark counts records and bytes of a task, never what is in them."
            .to_owned(),
    );
    limits.push(
        "How long the application waited in a queue before it started is in the resource \
         manager's log only."
            .to_owned(),
    );
    limits.push("The code of UDFs and of the driver's program is not seen.".to_owned());
    limits.push(
        "Savings are what a replay of the tasks on the same slots would save; they do not add up \
         with changes that are not listed."
            .to_owned(),
    );
    if !texts.are_shown() {
        limits.push(
            "SQL text, tables, paths, descriptions and values of properties are left out; ask for \
             them with --show-sql (web.show_sql of the daemon)."
                .to_owned(),
        );
    }
    limits
}

pub(super) fn limits(run: View<'_>, texts: Texts) -> Section {
    let mut section = Section::new("limits", "Evidence and limits");
    let items = limit_texts(run, texts).into_iter().map(Item::from).collect();
    section.blocks.push(Block::List { ordered: false, items });
    section
}

/// What the findings leave to be looked up where Spark does not write.
pub fn elsewhere_texts(run: View<'_>) -> Vec<&'static str> {
    let findings = &run.diagnosis.findings;
    let has = |rule: Rule| findings.iter().any(|finding| finding.rule == rule);
    let by = |causes: &[Cause]| {
        findings.iter().any(|finding| finding.cause.is_some_and(|cause| causes.contains(&cause)))
    };
    let mut all = Vec::new();
    let mut when = |holds: bool, text: &'static str| {
        if holds {
            all.push(text);
        }
    };
    when(
        by(&[Cause::HotKey, Cause::CompressibleHotKey]),
        "Which key is hot: count the rows by the join or grouping key of that stage, largest first.",
    );
    when(
        by(&[Cause::NoExecutor, Cause::NoExecutors]) || has(Rule::ColdStart),
        "Why executors came late: the queue in YARN's resource manager, or events of the pods in \
         Kubernetes (quota, image, unschedulable).",
    );
    when(
        by(&[Cause::Killed, Cause::ContainerMemory, Cause::NodeLost, Cause::Preempted]),
        "Who ended the executor: the NodeManager's or the pod's last state, and the node's kernel \
         log for the out-of-memory killer.",
    );
    when(
        by(&[Cause::HeapOom]) || has(Rule::Memory),
        "What filled the heap: a heap dump (-XX:+HeapDumpOnOutOfMemoryError), or the executor's \
         own log.",
    );
    when(
        by(&[Cause::SlowHost]),
        "What is wrong with the host: its disks, network and neighbours at that time.",
    );
    when(
        has(Rule::IoBound),
        "Whether the store, the disks or the network are the limit: their own metrics at that time.",
    );
    when(
        has(Rule::JobFailed) || has(Rule::ApplicationFailed) || has(Rule::TaskFailures),
        "The whole stack trace: the driver's log and the executor's standard error.",
    );
    when(
        has(Rule::DriverGap) || by(&[Cause::Driver]),
        "What the driver did: its own log, or a thread dump while it does it.",
    );
    when(has(Rule::PythonUdf), "What the Python code does with its time: profile it on a sample.");
    when(
        has(Rule::StreamingBehind),
        "Whether the source gives more than usual: its own rate and the lag of its consumers.",
    );
    when(
        findings.is_empty(),
        "If it was slower than usual all the same: compare it with an earlier run of the same name, \
         its data volume first.",
    );
    all
}

pub(super) fn elsewhere(run: View<'_>) -> Section {
    let mut section = Section::new("elsewhere", "To be checked elsewhere");
    let items: Vec<Item> = elsewhere_texts(run).into_iter().map(Item::from).collect();
    if !items.is_empty() {
        section.blocks.push(Block::List { ordered: false, items });
    }
    section
}
