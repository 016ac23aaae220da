//! One diagnosis as an outline: which sections there are, in which order, and
//! what each says. Terminal text, Markdown and HTML only say how it looks, so
//! that none of them decides anything of its own.
//!
//! Texts are final here: what may not be shown is left out
//! ([`super::privacy`]), lists are cut and say by how much.

mod closing;
mod conclusion;
mod execution;
mod finding;
mod plan_words;
mod plans;
mod pod;
mod settings;
mod tasks;
mod timeline;
pub(super) mod words;

use std::time::Duration;

pub use closing::{Suggestion, elsewhere_texts, limit_texts, suggested};
pub use conclusion::Conclusion;
pub use finding::{Evidenced, FindingView, anchor};
pub use settings::{Setting, SettingState, settings};

use super::{Texts, View, privacy};
use crate::diagnose::{Severity, TimePart};
use crate::model::State;

/// A report before it has a form.
#[derive(Debug, Clone, PartialEq)]
pub struct Outline {
    pub heading: Heading,
    pub sections: Vec<Section>,
}

/// Which run it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Heading {
    pub name: String,
    pub cluster: String,
    pub app_id: String,
    pub attempt_id: Option<String>,
    pub state: State,
    /// Version, kind, state, duration.
    pub facts: Vec<String>,
    /// The worst of its findings.
    pub severity: Option<Severity>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// Stable: the anchor of the page. None is the name of a rule, which is
    /// the anchor of its first finding.
    pub id: &'static str,
    pub title: &'static str,
    pub blocks: Vec<Block>,
}

/// One piece of a section.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// The sentence to read if only one is read.
    Lead(String),
    Text(String),
    /// What is missing, left out or to be known about the data.
    Note(String),
    Facts(Vec<(&'static str, String)>),
    /// `ordered`: the first is the most important.
    List {
        ordered: bool,
        items: Vec<Item>,
    },
    Table(Table),
    Finding(FindingView),
    Split(Split),
    Timeline(Timeline),
    Spread(Spread),
    Plan(PlanView),
}

pub use plans::{PlanRow, PlanView};
pub use tasks::Spread;
pub use timeline::{Bar, Cores, Lane, Timeline, Tone};

#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    pub text: String,
    /// Said less loudly after it.
    pub aside: Option<String>,
    /// Anchor of the finding it comes from.
    pub anchor: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    pub caption: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Column {
    pub title: &'static str,
    pub is_number: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub cells: Vec<String>,
    /// How bad what it says is, where a finding says so.
    pub severity: Option<Severity>,
    pub anchor: Option<String>,
}

/// Where a span of time went.
#[derive(Debug, Clone, PartialEq)]
pub struct Split {
    pub caption: String,
    pub total: Duration,
    /// Without empty parts, in the order in which a run goes through them.
    pub parts: Vec<(TimePart, Duration)>,
    pub note: Option<String>,
}

impl Split {
    /// Of the whole, 0 to 1.
    pub fn share(&self, part: Duration) -> f64 {
        if self.total.is_zero() { 0.0 } else { part.as_secs_f64() / self.total.as_secs_f64() }
    }
}

impl Outline {
    pub fn new(run: View<'_>, texts: Texts) -> Self {
        let sections = [
            conclusion::section(run),
            finding::section(run),
            execution::section(run, texts),
            tasks::section(run, texts),
            plans::section(run, texts),
            settings::section(run, texts),
            closing::suggestions(run),
            closing::limits(run, texts),
            closing::elsewhere(run),
        ];
        let sections = sections.into_iter().filter(|section| !section.blocks.is_empty()).collect();
        Self { heading: heading(run), sections }
    }
}

fn heading(run: View<'_>) -> Heading {
    let application = run.application;
    let version = application.spark_version.as_deref();
    let mut facts: Vec<String> =
        version.map(|version| format!("Spark {}", privacy::cut(version, 40))).into_iter().collect();
    facts.push(application.kind.as_str().to_owned());
    facts.push(application.state.as_str().to_owned());
    facts.extend(application.duration().map(crate::diagnose::humane::duration));
    facts.extend(pod::fact(application));
    Heading {
        name: privacy::cut(&application.name, 200),
        cluster: privacy::cut(&application.id.cluster, 200),
        app_id: privacy::cut(&application.id.app_id, 200),
        attempt_id: application.id.attempt_id.as_deref().map(|id| privacy::cut(id, 40)),
        state: application.state,
        facts,
        severity: run.diagnosis.findings.iter().map(|finding| finding.severity).max(),
    }
}

impl Section {
    fn new(id: &'static str, title: &'static str) -> Self {
        Self { id, title, blocks: Vec::new() }
    }
}

impl Table {
    fn new(caption: impl Into<String>, text: &[&'static str], numbers: &[&'static str]) -> Self {
        let column = |is_number| move |title: &&'static str| Column { title, is_number };
        let columns =
            text.iter().map(column(false)).chain(numbers.iter().map(column(true))).collect();
        Self { caption: caption.into(), columns, rows: Vec::new() }
    }
}

impl From<Vec<String>> for Row {
    fn from(cells: Vec<String>) -> Self {
        Self { cells, severity: None, anchor: None }
    }
}

impl From<String> for Item {
    fn from(text: String) -> Self {
        Self { text, aside: None, anchor: None }
    }
}

impl From<&str> for Item {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}
