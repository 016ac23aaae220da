//! Findings about plans whose numbers were read from texts for people.
//!
//! The REST API shows sizes and times in three digits, and of a metric's tasks
//! only the largest ([`DataQuality::SqlMetricsRounded`]). That is good enough
//! for every threshold, but not as good as the event log: whatever rests on it
//! is said with one step less confidence, and its impact is an estimate.

use super::finding::{Finding, Subject};
use crate::model::{Application, DataQuality};

pub(super) fn doubt(application: &Application, findings: &mut [Finding]) {
    if !application.has(DataQuality::SqlMetricsRounded) {
        return;
    }
    for finding in findings {
        let of_plan =
            matches!(finding.subject, Subject::SqlExecution { .. } | Subject::PlanNode { .. });
        // An estimate has had its step already.
        if of_plan && !finding.impact.estimated {
            finding.impact.estimated = true;
            finding.confidence = finding.confidence.lower();
        }
    }
}
