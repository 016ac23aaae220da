//! Why a task attempt failed, in a closed list.
//!
//! Spark tells it as an event's `Reason` (logs) or as text (REST's
//! `errorMessage`, stage and job failure reasons). The class is what may
//! become a label; the text never does.

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// `java.lang.OutOfMemoryError` in the task.
    HeapOom,
    /// The resource manager killed the container over its memory limit.
    ContainerMemory,
    FetchFailed,
    /// The executor went away under the task.
    ExecutorLost,
    /// The store said "slow down" (HTTP 503, throttling).
    StorageThrottled,
    /// The output commit coordinator refused a second commit: no failure.
    CommitDenied,
    ResultLost,
    /// Output was lost with its executor after success; the task runs again.
    Resubmitted,
    /// Killed on purpose (speculation, cancellation): no failure.
    Killed,
    /// Any other exception of the program.
    Exception,
    Unknown,
}

impl FailureClass {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::HeapOom => "heap_oom",
            Self::ContainerMemory => "container_memory",
            Self::FetchFailed => "fetch_failed",
            Self::ExecutorLost => "executor_lost",
            Self::StorageThrottled => "storage_throttled",
            Self::CommitDenied => "commit_denied",
            Self::ResultLost => "result_lost",
            Self::Resubmitted => "resubmitted",
            Self::Killed => "killed",
            Self::Exception => "exception",
            Self::Unknown => "unknown",
        }
    }

    /// From a text: REST's task `errorMessage`, a stage's or a job's failure
    /// reason, or the description and stack trace of a log's
    /// `ExceptionFailure`. The most telling words win.
    pub fn of_text(text: &str) -> Self {
        let has = |part: &str| text.contains(part);
        let lower_has = |part: &str| text.to_ascii_lowercase().contains(part);
        if text.trim().is_empty() {
            Self::Unknown
        } else if has("exceeding memory limits")
            || has("exceeding physical memory limits")
            || has("exceeding virtual memory limits")
            || has("OOMKilled")
        {
            Self::ContainerMemory
        } else if has("java.lang.OutOfMemoryError") || has("SparkOutOfMemoryError") {
            Self::HeapOom
        } else if has("FetchFailed") || has("MetadataFetchFailedException") {
            Self::FetchFailed
        } else if has("ExecutorLostFailure") {
            Self::ExecutorLost
        } else if has("TaskCommitDenied") || has("CommitDeniedException") {
            Self::CommitDenied
        } else if has("TaskResultLost") {
            Self::ResultLost
        } else if has("TaskKilled") {
            Self::Killed
        } else if has("SlowDown")
            || lower_has("slow down")
            || has("Status Code: 503")
            || lower_has("throttl")
        {
            Self::StorageThrottled
        } else if has("Resubmitted") {
            Self::Resubmitted
        } else {
            Self::Exception
        }
    }

    /// Whether the attempt counts as a failure of the program or the cluster.
    /// Kills on purpose and refused commits do not.
    pub fn is_failure(self) -> bool {
        !matches!(self, Self::Killed | Self::CommitDenied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_telling_words_win() {
        let lost = "ExecutorLostFailure (executor 3 exited caused by one of the running tasks) \
                    Reason: Container killed by YARN for exceeding memory limits.";
        assert_eq!(FailureClass::of_text(lost), FailureClass::ContainerMemory);
        assert_eq!(
            FailureClass::of_text("java.lang.OutOfMemoryError: Java heap space\n\tat x"),
            FailureClass::HeapOom
        );
        assert_eq!(FailureClass::of_text(""), FailureClass::Unknown);
        assert_eq!(
            FailureClass::of_text("java.lang.ArithmeticException: / by zero"),
            FailureClass::Exception
        );
    }
}
