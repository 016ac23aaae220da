//! A finding before its price is settled: rules write drafts, [`super::cost`]
//! makes findings of them.

use std::time::Duration;

use super::{
    Advice, Cause, Confidence, Evidence, Finding, FindingKind, Impact, Rule, Severity, Subject,
    Unit, Where,
};

/// How a draft's severity comes about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    /// By what it saves, and never above the given one. Emitted only above
    /// the floor of [`crate::config::Cost`].
    Saving { at_most: Severity },
    /// At least this, more where it saves more; emitted whatever it saves,
    /// because the rule has floors of its own.
    AtLeast(Severity),
    /// Exactly this; emitted whatever it saves.
    Exactly(Severity),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Draft {
    /// Its severity is a placeholder until [`super::cost`] has spoken.
    pub(super) finding: Finding,
    pub(super) weight: Weight,
    /// What of the wall saving lies in which stage, by its place in
    /// `Context::stages`.
    pub(super) shares: Vec<(usize, Duration)>,
}

impl Draft {
    pub(super) fn new(rule: Rule, kind: FindingKind, subject: Subject, headline: String) -> Self {
        Self {
            finding: Finding {
                rule,
                cause: None,
                severity: Severity::Info,
                kind,
                subject,
                headline,
                evidence: Vec::new(),
                impact: Impact::default(),
                confidence: Confidence::High,
                advice: Vec::new(),
            },
            weight: Weight::Saving { at_most: Severity::Critical },
            shares: Vec::new(),
        }
    }

    pub(super) fn cause(mut self, cause: impl Into<Option<Cause>>) -> Self {
        self.finding.cause = cause.into();
        self
    }

    pub(super) fn weight(mut self, weight: Weight) -> Self {
        self.weight = weight;
        self
    }

    pub(super) fn confidence(mut self, confidence: Confidence) -> Self {
        self.finding.confidence = confidence;
        self
    }

    /// What it saves, in the stages where it saves it. An estimate costs a
    /// step of confidence.
    pub(super) fn impact(mut self, impact: Impact, shares: Vec<(usize, Duration)>) -> Self {
        if impact.estimated {
            self.finding.confidence = self.finding.confidence.lower();
        }
        self.finding.impact = impact;
        self.shares = shares;
        self
    }

    pub(super) fn evidence(
        mut self,
        name: &'static str,
        value: f64,
        unit: Unit,
        threshold: impl Into<Option<f64>>,
        from: impl Into<String>,
    ) -> Self {
        if value.is_finite() {
            let threshold = threshold.into().filter(|threshold| threshold.is_finite());
            let from = from.into();
            self.finding.evidence.push(Evidence { name, value, unit, threshold, from });
        }
        self
    }

    pub(super) fn advice(mut self, change: impl Into<String>, place: Where) -> Self {
        self.finding.advice.push(Advice { change: change.into(), place, not_when: None });
        self
    }

    pub(super) fn advice_unless(
        mut self,
        change: impl Into<String>,
        place: Where,
        not_when: impl Into<String>,
    ) -> Self {
        let not_when = Some(not_when.into());
        self.finding.advice.push(Advice { change: change.into(), place, not_when });
        self
    }
}
