//! What a report says beyond the findings, in the JSON document: the
//! conclusion, where the time went, what if, configuration, suggestions and
//! limits. The same as in every other form, from the same outline.

use std::collections::BTreeMap;

use serde::Serialize;

use super::outline::{Conclusion, Setting, SettingState, elsewhere_texts, limit_texts, settings};
use super::outline::{Suggestion, suggested};
use super::{Texts, View};
use crate::diagnose::{BlockedBy, FindingKind, Scenario, TimePart, TimeSplit, WhatIf};

#[derive(Serialize)]
pub(super) struct ReportJson {
    conclusion: ConclusionJson,
    time: Option<SplitJson>,
    what_if: Option<WhatIfJson>,
    settings: Vec<SettingJson>,
    suggestions: Vec<SuggestionJson>,
    limits: Vec<String>,
    check_elsewhere: Vec<&'static str>,
}

impl ReportJson {
    pub(super) fn new(run: View<'_>, texts: Texts) -> Self {
        let conclusion = Conclusion::of(run);
        Self {
            conclusion: ConclusionJson {
                summary: conclusion.lead,
                slow_layer: conclusion.layer,
                kind: conclusion.kind,
                next_step: conclusion.next.map(|advice| super::privacy::plain(&advice.change)),
            },
            time: run.diagnosis.time.as_ref().map(SplitJson::from),
            what_if: run.diagnosis.what_if.as_ref().map(WhatIfJson::from),
            settings: settings(run, texts).into_iter().map(SettingJson::from).collect(),
            suggestions: suggested(run).into_iter().map(SuggestionJson::from).collect(),
            limits: limit_texts(run, texts),
            check_elsewhere: elsewhere_texts(run),
        }
    }
}

#[derive(Serialize)]
struct ConclusionJson {
    summary: String,
    slow_layer: Option<&'static str>,
    kind: Option<FindingKind>,
    next_step: Option<String>,
}

/// The parts in seconds by their names; they sum to the total.
#[derive(Serialize)]
pub(super) struct SplitJson {
    total_seconds: f64,
    parts_seconds: BTreeMap<&'static str, f64>,
    largest: Option<TimePart>,
    blocked_by: Option<BlockedBy>,
    estimated: bool,
}

impl From<&TimeSplit> for SplitJson {
    fn from(split: &TimeSplit) -> Self {
        Self {
            total_seconds: split.total.as_secs_f64(),
            parts_seconds: TimePart::ALL
                .into_iter()
                .map(|part| (part.as_str(), split.part(part).as_secs_f64()))
                .collect(),
            largest: split.largest(),
            blocked_by: split.blocked_by,
            estimated: split.estimated,
        }
    }
}

#[derive(Serialize)]
struct WhatIfJson {
    scenarios: Vec<ScenarioJson>,
    critical_path_seconds: f64,
    model_error: f64,
    assumptions: Vec<String>,
}

#[derive(Serialize)]
struct ScenarioJson {
    factor: f64,
    cores: f64,
    wall_seconds: f64,
    bought_core_seconds: f64,
}

impl From<&WhatIf> for WhatIfJson {
    fn from(what_if: &WhatIf) -> Self {
        let scenario = |one: &Scenario| ScenarioJson {
            factor: one.factor,
            cores: one.cores,
            wall_seconds: one.wall.as_secs_f64(),
            bought_core_seconds: one.bought.as_secs_f64(),
        };
        Self {
            scenarios: what_if.scenarios.iter().map(scenario).collect(),
            critical_path_seconds: what_if.critical_path.as_secs_f64(),
            model_error: what_if.model_error,
            assumptions: what_if.assumptions.clone(),
        }
    }
}

#[derive(Serialize)]
struct SettingJson {
    key: &'static str,
    /// `absent`, `set`, `hidden`, `varies`.
    state: &'static str,
    value: Option<String>,
    default: &'static str,
    as_recommended: bool,
    /// Anchors of findings.
    mattered_to: Vec<String>,
}

impl From<Setting> for SettingJson {
    fn from(setting: Setting) -> Self {
        let (state, value) = match setting.state {
            SettingState::Absent => ("absent", None),
            SettingState::Set(value) => ("set", Some(value)),
            SettingState::Hidden => ("hidden", None),
            SettingState::Varies => ("varies", None),
        };
        Self {
            key: setting.key,
            state,
            value,
            default: setting.default,
            as_recommended: !setting.missing,
            mattered_to: setting.mattered,
        }
    }
}

#[derive(Serialize)]
struct SuggestionJson {
    change: String,
    #[serde(rename = "where")]
    place: crate::diagnose::Where,
    not_when: Option<String>,
    finding: String,
}

impl From<Suggestion> for SuggestionJson {
    fn from(one: Suggestion) -> Self {
        let Suggestion { change, place, not_when, finding } = one;
        Self { change, place, not_when, finding }
    }
}
