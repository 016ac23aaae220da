//! `/applications`: which applications a server knows, and how their attempts
//! stand.

use jiff::Timestamp;
use serde::Deserialize;

use super::Api;
use super::value::{Count, Moment, Text};
use crate::fetch::FetchError;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ApplicationInfo {
    pub id: Text,
    pub name: Text,
    /// Newest first.
    pub attempts: Vec<ApplicationAttemptInfo>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ApplicationAttemptInfo {
    pub attempt_id: Text,
    start_time: Moment,
    start_time_epoch: Moment,
    end_time: Moment,
    end_time_epoch: Moment,
    last_updated: Moment,
    last_updated_epoch: Moment,
    pub spark_user: Text,
    pub completed: Option<bool>,
    pub app_spark_version: Text,
    /// Since 4.3, on a History Server.
    pub exit_code: Option<Exit>,
}

/// An exit code may be negative.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Exit(Count);

impl Exit {
    pub fn code(self) -> Option<i32> {
        self.0.signed().and_then(|code| i32::try_from(code).ok())
    }
}

impl ApplicationAttemptInfo {
    /// One of which only the start is known, in milliseconds since the epoch.
    pub(super) fn begun(start: Option<i64>) -> Self {
        let start_time_epoch = start.map(Moment::of_millis).unwrap_or_default();
        Self { start_time_epoch, ..Self::default() }
    }

    pub fn start(&self) -> Option<Timestamp> {
        self.start_time_epoch.0.or(self.start_time.0)
    }

    /// `None` while it runs.
    pub fn end(&self) -> Option<Timestamp> {
        self.end_time_epoch.0.or(self.end_time.0)
    }

    /// On a History Server when the log last changed; of a run that it takes to
    /// be running, when it last read the log: because it had grown, or because
    /// the server was started (seen with 3.5.9 and 4.3.0). On a live UI the
    /// start.
    pub fn last_updated(&self) -> Option<Timestamp> {
        self.last_updated_epoch.0.or(self.last_updated.0)
    }

    pub fn is_completed(&self) -> bool {
        self.completed.unwrap_or(false)
    }
}

impl ApplicationInfo {
    /// What the application is called: its id where it has no name.
    pub fn name_or_id(&self) -> &str {
        if self.name.get().is_empty() { self.id.get() } else { self.name.get() }
    }

    /// The attempt that decides how the application stands: the newest. The
    /// list's own `status` filter looked at any attempt before SPARK-39620.
    pub fn latest(&self) -> Option<&ApplicationAttemptInfo> {
        self.attempts.iter().max_by_key(|attempt| attempt.start())
    }
}

/// Which applications to list. Each is sent as said; there is no paging, so
/// `limit` and `min_end` are what bounds an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Filter {
    pub status: Option<Status>,
    /// Ended at or after.
    pub min_end: Option<Timestamp>,
    pub limit: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Running,
    Completed,
}

/// A date as the API takes it in a query.
fn date(moment: Timestamp) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%S.%3fGMT").to_string()
}

pub async fn get(api: &Api, filter: Filter) -> Result<Vec<ApplicationInfo>, FetchError> {
    let status = filter.status.map(|status| match status {
        Status::Running => "running",
        Status::Completed => "completed",
    });
    let min_end = filter.min_end.map(date);
    let limit = filter.limit.map(|limit| limit.to_string());
    let mut query = Vec::new();
    query.extend(status.map(|status| ("status", status)));
    query.extend(min_end.as_deref().map(|date| ("minEndDate", date)));
    query.extend(limit.as_deref().map(|limit| ("limit", limit)));
    api.list("applications", api.url(&["applications"], &query)).await
}

/// One application by its id; `UnknownApplication` where the server does not
/// list it.
pub async fn one(api: &Api, id: &str) -> Result<ApplicationInfo, FetchError> {
    api.json("applications", api.url(&["applications", id], &[])).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_attempt_decides() {
        let application: ApplicationInfo = serde_json::from_str(
            r#"{"id": "application_1_0001", "attempts": [
                {"attemptId": "1", "startTimeEpoch": 1000, "endTimeEpoch": -1, "completed": false},
                {"attemptId": "2", "startTimeEpoch": 2000, "endTimeEpoch": 3000, "completed": true,
                 "exitCode": -9}]}"#,
        )
        .expect("readable");
        let latest = application.latest().expect("two attempts");
        assert_eq!(latest.attempt_id.get(), "2");
        assert!(latest.is_completed());
        assert_eq!(latest.exit_code.and_then(Exit::code), Some(-9));
        assert_eq!(application.attempts[0].end(), None);
    }

    #[test]
    fn dates_in_queries() {
        let moment: Timestamp = "2026-11-30T03:19:09.42Z".parse().expect("a time");
        assert_eq!(date(moment), "2026-11-30T03:19:09.420GMT");
    }
}
