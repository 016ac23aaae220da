//! What a finding is worth: which drafts are said, how loud, and that the
//! savings of a run are not promised twice.

use std::time::Duration;

use super::context::Context;
use super::draft::{Draft, Weight};
use super::humane;
use super::{Finding, Impact, Severity};

/// Drafts to findings, the worst first, the costliest first among equals.
///
/// Each draft is held against the emission floor on its own. Then savings are
/// handed out from the costliest down: no stage gives more than the time it
/// ran alone, the run no more than it took, nor more core-time than was
/// bought. Severity is that of the saving a finding was left with, so that a
/// lesser fault in a stage that a greater one explains is no second alarm.
pub(super) fn settle(context: &Context<'_>, mut drafts: Vec<Draft>) -> Vec<Finding> {
    drafts.retain(|draft| is_worth_saying(context, draft));
    drafts.sort_by_key(|draft| std::cmp::Reverse(worth(context, &draft.finding.impact)));
    let mut budget = Budget::new(context);
    let mut findings: Vec<Finding> = drafts
        .into_iter()
        .map(|draft| {
            let impact = budget.hand_out(&draft);
            let saving = severity(context, worth(context, &impact));
            let severity = match draft.weight {
                Weight::Saving { at_most } => saving.min(at_most),
                Weight::AtLeast(least) => saving.max(least),
                Weight::Exactly(severity) => severity,
            };
            let headline = with_saving(draft.finding.headline, &impact);
            Finding { severity, headline, impact, ..draft.finding }
        })
        .collect();
    // Stable: what costs the same stays in the order of the rules.
    findings.sort_by_key(|finding| {
        std::cmp::Reverse((finding.severity, worth(context, &finding.impact)))
    });
    findings
}

/// Savings below this are not worth the words.
const SAID_FROM: Duration = Duration::from_millis(100);

/// The headline with what could be saved at its end.
fn with_saving(headline: String, impact: &Impact) -> String {
    match impact.wall.filter(|wall| *wall >= SAID_FROM) {
        Some(wall) if impact.estimated => {
            format!("{headline}: some {} could be saved (estimated)", humane::duration(wall))
        }
        Some(wall) => format!("{headline}: {} could be saved", humane::duration(wall)),
        None => headline,
    }
}

/// Wall time, or the wall time that the core-time is worth on all cores of
/// the run, whichever is more.
fn worth(context: &Context<'_>, impact: &Impact) -> Duration {
    let in_wall = impact
        .core
        .zip(context.cores())
        .map(|(core, cores)| super::context::seconds(core.as_secs_f64() / cores));
    impact.wall.unwrap_or_default().max(in_wall.unwrap_or_default())
}

fn is_worth_saying(context: &Context<'_>, draft: &Draft) -> bool {
    match draft.weight {
        Weight::Saving { .. } => {
            let worth = worth(context, &draft.finding.impact);
            !worth.is_zero() && worth >= context.thresholds.cost.emit_floor(context.run)
        }
        Weight::AtLeast(_) | Weight::Exactly(_) => true,
    }
}

/// Severity grows with the saving and with its share of the run.
fn severity(context: &Context<'_>, saving: Duration) -> Severity {
    let cost = &context.thresholds.cost;
    let share = context.share(saving);
    if saving >= cost.critical_at.get() && share >= cost.critical_ratio {
        Severity::Critical
    } else if saving >= cost.warning_at.get() && share >= cost.warning_ratio {
        Severity::Warning
    } else {
        Severity::Info
    }
}

/// What is left to be promised.
struct Budget {
    wall: Duration,
    /// `None`: not known what was bought.
    core: Option<Duration>,
    stages: Vec<Duration>,
}

impl Budget {
    fn new(context: &Context<'_>) -> Self {
        Self {
            wall: context.run,
            core: context.totals.bought,
            stages: context.stages.iter().map(|view| view.alone).collect(),
        }
    }

    fn hand_out(&mut self, draft: &Draft) -> Impact {
        let asked = draft.finding.impact;
        let wall = asked.wall.map(|asked| self.wall(asked, &draft.shares));
        let core = asked.core.map(|asked| match &mut self.core {
            Some(left) => {
                let given = asked.min(*left);
                *left = left.saturating_sub(given);
                given
            }
            None => asked,
        });
        Impact { wall, core, estimated: asked.estimated }
    }

    fn wall(&mut self, asked: Duration, shares: &[(usize, Duration)]) -> Duration {
        let in_stages =
            shares.iter().fold(Duration::ZERO, |sum, (_, share)| sum.saturating_add(*share));
        let mut given = asked.saturating_sub(in_stages).min(self.wall);
        let mut left = self.wall.saturating_sub(given);
        for (stage, share) in shares {
            let Some(of_stage) = self.stages.get_mut(*stage) else { continue };
            let part = (*share).min(*of_stage).min(left);
            *of_stage = of_stage.saturating_sub(part);
            left = left.saturating_sub(part);
            given = given.saturating_add(part);
        }
        let given = given.min(asked);
        self.wall = self.wall.saturating_sub(given);
        given
    }
}
