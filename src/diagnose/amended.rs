//! A diagnosis when more becomes known of a run whose tasks are not held any
//! more.

use super::{Diagnosis, Finding, MOST_FINDINGS, Rule, Severity};

impl Diagnosis {
    /// Takes over what two diagnoses of the same run, without and with what
    /// became known, say differently: the findings of those rules. What the
    /// rest found in its tasks, which neither of the two had, stays.
    pub(crate) fn take_changes(&mut self, before: &Self, after: Self) {
        let of = |diagnosis: &Self, rule: Rule| -> Vec<Finding> {
            diagnosis.findings.iter().filter(|one| one.rule == rule).cloned().collect()
        };
        let changed: Vec<Rule> =
            Rule::ALL.into_iter().filter(|rule| of(before, *rule) != of(&after, *rule)).collect();
        if changed.is_empty() {
            return;
        }
        self.findings.retain(|one| !changed.contains(&one.rule));
        self.findings.extend(after.findings.into_iter().filter(|one| changed.contains(&one.rule)));
        let cores = self.totals.peak_cores.map_or(1.0, f64::from).max(1.0);
        // Stable: equals keep their order.
        self.findings.sort_by(|one, other| {
            let rank = |finding: &Finding| -> (Severity, f64) {
                let wall = finding.impact.wall.map_or(0.0, |wall| wall.as_secs_f64());
                let core = finding.impact.core.map_or(0.0, |core| core.as_secs_f64());
                (finding.severity, wall.max(core / cores))
            };
            let (one, other) = (rank(one), rank(other));
            other.0.cmp(&one.0).then(other.1.total_cmp(&one.1))
        });
        let over = self.findings.len().saturating_sub(MOST_FINDINGS);
        self.findings.truncate(MOST_FINDINGS);
        self.findings_omitted = self.findings_omitted.saturating_add(over as u64);
    }
}
