//! Configuration and risks: the settings that a diagnosis needs, how this run
//! had them, and which of them mattered.
//!
//! Values are shown only of these keys of Spark's own and only where they are
//! a switch, a number, a size or a time: nothing that can be a secret.

use super::{Block, Row, Section, Table};
use crate::diagnose::{Finding, Subject, humane};
use crate::model::{Configuration, Source};
use crate::report::{Diagnosed, Texts, privacy};

/// A setting, and what Spark does without it.
struct Known {
    key: &'static str,
    /// Spark's default in current versions.
    default: &'static str,
    /// What is recommended; `None`: it depends.
    recommended: Option<&'static str>,
    /// What it is for.
    purpose: &'static str,
}

const fn known(
    key: &'static str,
    default: &'static str,
    recommended: Option<&'static str>,
    purpose: &'static str,
) -> Known {
    Known { key, default, recommended, purpose }
}

/// In the order of a report.
const SETTINGS: [Known; 18] = [
    known("spark.sql.adaptive.enabled", "true", Some("true"), "adaptive execution"),
    known(
        "spark.sql.adaptive.coalescePartitions.enabled",
        "true",
        Some("true"),
        "joins small shuffle partitions",
    ),
    known("spark.sql.adaptive.skewJoin.enabled", "true", Some("true"), "splits skewed joins"),
    known(
        "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes",
        "256MB",
        None,
        "from this size a partition can be skewed",
    ),
    known(
        "spark.sql.adaptive.advisoryPartitionSizeInBytes",
        "64MB",
        None,
        "size of a shuffle partition",
    ),
    known("spark.sql.shuffle.partitions", "200", None, "shuffle partitions"),
    known("spark.sql.autoBroadcastJoinThreshold", "10MB", None, "largest side that is broadcast"),
    known("spark.eventLog.enabled", "false", Some("true"), "keeps what a diagnosis needs"),
    known("spark.serializer", "JavaSerializer", None, "serializer of RDD code"),
    known("spark.executor.memory", "1g", None, "heap of an executor"),
    known("spark.executor.cores", "1", None, "task slots of an executor"),
    known(
        "spark.executor.memoryOverhead",
        "10 %, 384 MiB at least",
        None,
        "memory beside the heap, for Python too",
    ),
    known("spark.driver.memory", "1g", None, "heap of the driver"),
    known("spark.driver.maxResultSize", "1g", None, "results that the driver takes"),
    known("spark.network.timeout", "120s", None, "until a silent peer is given up"),
    known("spark.dynamicAllocation.enabled", "false", None, "executors come and go"),
    known(
        "spark.dynamicAllocation.shuffleTracking.enabled",
        "true",
        None,
        "keeps executors with shuffle data",
    ),
    known("spark.task.maxFailures", "4", None, "attempts of a task"),
];

/// How a run had a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingState {
    /// Not set: Spark's default.
    Absent,
    Set(String),
    /// Set to what is not shown.
    Hidden,
    /// SQL executions had it differently.
    Varies,
}

/// One setting of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    pub key: &'static str,
    pub purpose: &'static str,
    pub default: &'static str,
    pub state: SettingState,
    /// Neither set nor by default what is recommended.
    pub missing: bool,
    /// Anchors of the findings that it mattered to.
    pub mattered: Vec<String>,
}

/// Every known setting, as this run had it. Empty where the configuration is
/// not known.
pub fn settings(run: &Diagnosed, texts: Texts) -> Vec<Setting> {
    let application = &run.application;
    if application.configuration.is_empty() {
        return Vec::new();
    }
    SETTINGS
        .iter()
        .map(|known| {
            let state = state(known, run, texts);
            let now = match &state {
                SettingState::Absent => known.default,
                SettingState::Set(value) => value,
                SettingState::Hidden | SettingState::Varies => "",
            };
            // A log is there, whatever its own configuration says.
            let there =
                known.key == "spark.eventLog.enabled" && application.source == Source::EventLog;
            let missing = known.recommended.is_some_and(|value| !now.eq_ignore_ascii_case(value));
            let findings = run.diagnosis.findings.iter();
            let mattered =
                findings.filter(|finding| names(finding, known.key)).map(super::anchor).collect();
            Setting {
                key: known.key,
                purpose: known.purpose,
                default: known.default,
                state,
                missing: missing && !there,
                mattered,
            }
        })
        .collect()
}

fn state(known: &Known, run: &Diagnosed, texts: Texts) -> SettingState {
    let of = |configuration: &Configuration| configuration.get(known.key).map(str::to_owned);
    let own = of(&run.application.configuration);
    let executions = run.application.sql.iter().flatten();
    let others: Vec<String> =
        executions.filter_map(|execution| of(&execution.configuration)).collect();
    match (own, others.first()) {
        (own, Some(other)) if own.as_ref() != Some(other) => SettingState::Varies,
        (None, _) => SettingState::Absent,
        (Some(value), _) if texts.are_shown() || is_harmless(&value) => {
            SettingState::Set(privacy::cut(&value, 80))
        }
        (Some(_), _) => SettingState::Hidden,
    }
}

/// A switch, a number, a size or a time.
fn is_harmless(value: &str) -> bool {
    let value = value.trim();
    if ["true", "false"].contains(&value.to_ascii_lowercase().as_str())
        || value.starts_with("org.apache.spark.serializer.")
            && value.chars().all(|c| c.is_ascii_alphanumeric() || c == '.')
    {
        return true;
    }
    let digits = value.trim_start_matches('-');
    let unit = digits.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    digits.len() > unit.len()
        && digits.len() - unit.len() <= 20
        && [
            "", "b", "k", "kb", "m", "mb", "g", "gb", "t", "tb", "p", "pb", "us", "ms", "s", "min",
            "h", "d",
        ]
        .contains(&unit.trim().to_ascii_lowercase().as_str())
}

/// Whether a finding is about the setting, or its advice names it.
fn names(finding: &Finding, key: &str) -> bool {
    let names = |text: &str| {
        text.match_indices(key).any(|(at, _)| {
            // Not the beginning of a longer key.
            let next = text.get(at + key.len()..).and_then(|rest| rest.chars().next());
            !next.is_some_and(char::is_alphanumeric)
                && !text.get(at + key.len()..).is_some_and(|rest| {
                    let mut rest = rest.chars();
                    rest.next() == Some('.') && rest.next().is_some_and(char::is_alphabetic)
                })
        })
    };
    matches!(&finding.subject, Subject::ConfigurationKey { key: subject } if subject == key)
        || finding.advice.iter().any(|advice| names(&advice.change))
}

pub(super) fn section(run: &Diagnosed, texts: Texts) -> Section {
    let mut section = Section::new("configuration", "Configuration and risks");
    let settings = settings(run, texts);
    if settings.is_empty() {
        section.blocks.push(Block::Note("The configuration is not known.".to_owned()));
        return section;
    }
    let mut table = Table::new("", &["setting", "value", "what it does", "mattered here"], &[]);
    for setting in &settings {
        let value = match &setting.state {
            SettingState::Absent => format!("not set (default {})", setting.default),
            SettingState::Set(value) => value.clone(),
            SettingState::Hidden => "set".to_owned(),
            SettingState::Varies => "differs between SQL executions".to_owned(),
        };
        // What is as it should be and mattered to nothing is no news.
        let default = setting.state == SettingState::Absent && setting.mattered.is_empty();
        if default && !setting.missing {
            continue;
        }
        let mattered = match (setting.mattered.first(), setting.missing) {
            (Some(anchor), _) => format!("yes: {anchor}"),
            (None, true) => "not as recommended; it did not matter here".to_owned(),
            (None, false) => "-".to_owned(),
        };
        let cells = vec![setting.key.to_owned(), value, setting.purpose.to_owned(), mattered];
        table.rows.push(Row { cells, severity: None, anchor: None });
    }
    let left = settings.len() - table.rows.len();
    section.blocks.push(Block::Table(table));
    if left > 0 {
        let left = humane::count(left as u64, "setting is", "settings are");
        section
            .blocks
            .push(Block::Note(format!("{left} at Spark's default and mattered to no finding.")));
    }
    section
}
