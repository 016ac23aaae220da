//! Events of SQL executions and of streaming queries: what
//! `org.apache.spark.sql` logs with Jackson, so with its own field names, the
//! event's being the class name.
//!
//! `physicalPlanDescription`, `details` and call sites are not among the
//! fields: they are as long as all the rest together (20 million characters
//! have been seen) and are skipped without being copied.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::event::events;
use super::field::{Decimal, Number, Object, Properties, Text};
use super::plan::MetricInfo;

/// An event of `org.apache.spark.sql`, whichever package its release has it
/// in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SqlEvent {
    ExecutionStart,
    ExecutionEnd,
    AdaptiveExecutionUpdate,
    AdaptiveMetricUpdates,
    DriverAccumUpdates,
    QueryStarted,
    QueryProgress,
    QueryIdle,
    QueryTerminated,
}

impl SqlEvent {
    /// From the event's name.
    pub(super) fn of(name: &str) -> Option<Self> {
        let class = name.rsplit(['.', '$']).next()?;
        let sql = name.starts_with("org.apache.spark.sql.");
        Some(match class {
            "SparkListenerSQLExecutionStart" if sql => Self::ExecutionStart,
            "SparkListenerSQLExecutionEnd" if sql => Self::ExecutionEnd,
            "SparkListenerSQLAdaptiveExecutionUpdate" if sql => Self::AdaptiveExecutionUpdate,
            "SparkListenerSQLAdaptiveSQLMetricUpdates" if sql => Self::AdaptiveMetricUpdates,
            "SparkListenerDriverAccumUpdates" if sql => Self::DriverAccumUpdates,
            _ if !name.contains("StreamingQueryListener") => return None,
            "QueryStartedEvent" => Self::QueryStarted,
            "QueryProgressEvent" => Self::QueryProgress,
            "QueryIdleEvent" => Self::QueryIdle,
            "QueryTerminatedEvent" => Self::QueryTerminated,
            _ => return None,
        })
    }
}

events! {
    struct ExecutionStart<'a> {
        "executionId" => id: Number,
        /// Since 3.4; -1 where Spark has none.
        "rootExecutionId" => root_id: Number,
        "description" => description: Text<'a>,
        "time" => time: Number,
        "modifiedConfigs" => configuration: Properties,
        /// The plan, read by [`super::plan`].
        "sparkPlanInfo" => plan: Option<&'a RawValue>,
    }
    struct ExecutionEnd<'a> {
        "executionId" => id: Number,
        "time" => time: Number,
        /// Since 3.4; empty for a success.
        "errorMessage" => error: Option<Text<'a>>,
    }
    struct AdaptiveExecutionUpdate<'a> {
        "executionId" => id: Number,
        "sparkPlanInfo" => plan: Option<&'a RawValue>,
    }
    struct AdaptiveMetricUpdates<'a> {
        "executionId" => id: Number,
        "sqlPlanMetrics" => metrics: Option<Vec<Object<MetricInfo<'a>>>>,
    }
    struct DriverAccumUpdates {
        "executionId" => id: Number,
        /// Pairs of accumulator and value.
        "accumUpdates" => updates: Option<Vec<Vec<Number>>>,
    }
    struct QueryStarted<'a> {
        "id" => id: Text<'a>,
        "runId" => run_id: Text<'a>,
        "name" => name: Text<'a>,
        "timestamp" => time: Text<'a>,
    }
    struct QueryProgress<'a> {
        /// An object, or JSON inside a text.
        "progress" => progress: Option<&'a RawValue>,
    }
    struct QueryIdle<'a> {
        "runId" => run_id: Text<'a>,
        "timestamp" => time: Text<'a>,
    }
    struct QueryTerminated<'a> {
        "runId" => run_id: Text<'a>,
        "exception" => exception: Text<'a>,
        "errorClassOnException" => error_class: Text<'a>,
    }
    struct Progress<'a> {
        "id" => id: Text<'a>,
        "runId" => run_id: Text<'a>,
        "name" => name: Text<'a>,
        "timestamp" => time: Text<'a>,
        "batchId" => batch_id: Number,
        "batchDuration" => batch_duration: Number,
        "durationMs" => durations: Durations,
        "numInputRows" => input_rows: Number,
        "stateOperators" => state: Option<Vec<Object<StateProgress<'a>>>>,
        "sources" => sources: Option<Vec<Object<Source<'a>>>>,
        "sink" => sink: Object<Sink>,
    }
    struct StateProgress<'a> {
        "operatorName" => name: Text<'a>,
        "numRowsTotal" => rows: Number,
        "numRowsUpdated" => rows_updated: Number,
        "memoryUsedBytes" => memory: Number,
        "commitTimeMs" => commit: Number,
        "numRowsDroppedByWatermark" => dropped: Number,
    }
    struct Source<'a> {
        "description" => description: Text<'a>,
        "endOffset" => end_offset: Option<&'a RawValue>,
        "latestOffset" => latest_offset: Option<&'a RawValue>,
        "numInputRows" => input_rows: Number,
        "inputRowsPerSecond" => input_rate: Decimal,
        "processedRowsPerSecond" => processed_rate: Decimal,
    }
    struct Sink {
        "numOutputRows" => output_rows: Number,
    }
}

/// Named spans in milliseconds: at most 32.
#[derive(Debug, Default)]
pub(super) struct Durations(pub(super) Vec<(Arc<str>, Number)>);

impl<'de> Deserialize<'de> for Durations {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Properties(properties) = Properties::deserialize(deserializer)?;
        let number = |text: &str| serde_json::from_str(text).unwrap_or_default();
        Ok(Self(
            properties
                .into_iter()
                .take(32)
                .map(|(name, value)| {
                    (name.chars().take(64).collect::<String>().into(), number(&value))
                })
                .collect(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_by_class_whatever_the_package() {
        for (name, expected) in [
            (
                "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart",
                Some(SqlEvent::ExecutionStart),
            ),
            (
                "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent",
                Some(SqlEvent::QueryProgress),
            ),
            (
                "org.apache.spark.sql.streaming.StreamingQueryListener.QueryIdleEvent",
                Some(SqlEvent::QueryIdle),
            ),
            ("com.example.SparkListenerSQLExecutionStart", None),
            ("com.example.QueryStartedEvent", None),
            ("SparkListenerJobStart", None),
        ] {
            assert_eq!(SqlEvent::of(name), expected, "{name}");
        }
    }
}
