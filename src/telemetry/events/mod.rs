//! Everything the daemon may say about itself, one struct each.
//!
//! `event.emit(&telemetry)` writes the log line and bumps the counter. To add
//! one: a struct with what a reader needs, an `emit` with one log line, one
//! counter in [`super::TelemetrySnapshot`], one row in the metrics catalogue.
//! Texts must be clean of secrets before they come here: URLs without user
//! information or query, messages without header values.

mod kubernetes;
mod logs;
mod otlp;
mod pods;
mod runs;
mod settings;
mod sources;
mod storage;
mod web;
mod web_config;

pub use kubernetes::*;
pub use logs::*;
pub use otlp::*;
pub use pods::*;
pub use runs::*;
pub use settings::*;
pub use sources::*;
pub use storage::*;
pub use web::*;
pub use web_config::*;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;

    use super::*;
    use crate::telemetry::{TargetId, Telemetry};

    fn id() -> TargetId {
        TargetId { cluster: "prod".to_owned(), target: "http://history:18080".to_owned() }
    }

    fn cycle(success: bool, skipped: Vec<(&'static str, u64)>) -> CycleFinished {
        CycleFinished {
            target: id(),
            success,
            at: Timestamp::UNIX_EPOCH,
            duration: Duration::from_millis(20),
            requests: 2,
            bytes: 100,
            skipped,
            elsewhere: 0,
        }
    }

    #[test]
    fn a_failed_request_is_a_request_and_an_error() {
        let telemetry = Telemetry::default();
        let counted = |errors| RequestsCounted { endpoint: "jobs", requests: 1, bytes: 10, errors };
        counted(Vec::new()).emit(&telemetry);
        counted(vec![("timeout", 1)]).emit(&telemetry);
        let counters = telemetry.snapshot();
        assert_eq!((counters.fetches["jobs"].requests, counters.fetches["jobs"].bytes), (2, 20));
        assert_eq!(counters.fetch_errors[&("jobs", "timeout")], 1);
    }

    #[test]
    fn a_cycle_replaces_what_the_last_one_skipped() {
        let telemetry = Telemetry::default();
        cycle(true, vec![("limit", 3), ("lookback", 1)]).emit(&telemetry);
        cycle(true, vec![("limit", 2)]).emit(&telemetry);
        let skipped = telemetry.snapshot().skipped_by_reason();
        assert_eq!(skipped.get("limit"), Some(&2));
        assert_eq!(skipped.get("lookback"), None);
    }

    #[test]
    fn a_failed_cycle_keeps_the_last_success() {
        let telemetry = Telemetry::default();
        cycle(true, Vec::new()).emit(&telemetry);
        cycle(false, Vec::new()).emit(&telemetry);
        let status = telemetry.snapshot().targets[&id()];
        assert!(!status.up);
        assert_eq!(status.last_success, Some(Timestamp::UNIX_EPOCH));
    }
}
