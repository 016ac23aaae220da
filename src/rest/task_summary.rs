//! `/stages/{id}/{attempt}/taskSummary`: quantiles over the successful tasks
//! of a stage attempt.
//!
//! `duration` is not read, ever: since 3.2 failed and killed tasks are in its
//! list, which shifts every quantile. `executorRunTime` is right.

use serde::Deserialize;

use super::value::QuantileArray;
use super::{Api, ApplicationPath};
use crate::fetch::FetchError;
use crate::model::{QUANTILES, StageId};

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TaskMetricDistributions {
    pub quantiles: QuantileArray,
    pub executor_deserialize_time: QuantileArray,
    pub executor_run_time: QuantileArray,
    pub executor_cpu_time: QuantileArray,
    pub jvm_gc_time: QuantileArray,
    pub scheduler_delay: QuantileArray,
    pub peak_execution_memory: QuantileArray,
    pub memory_bytes_spilled: QuantileArray,
    pub disk_bytes_spilled: QuantileArray,
    pub input_metrics: InputMetricDistributions,
    pub output_metrics: OutputMetricDistributions,
    pub shuffle_read_metrics: ShuffleReadMetricDistributions,
    pub shuffle_write_metrics: ShuffleWriteMetricDistributions,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct InputMetricDistributions {
    pub bytes_read: QuantileArray,
    pub records_read: QuantileArray,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct OutputMetricDistributions {
    pub bytes_written: QuantileArray,
    pub records_written: QuantileArray,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ShuffleReadMetricDistributions {
    pub read_bytes: QuantileArray,
    pub read_records: QuantileArray,
    pub fetch_wait_time: QuantileArray,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ShuffleWriteMetricDistributions {
    pub write_bytes: QuantileArray,
    pub write_records: QuantileArray,
    pub write_time: QuantileArray,
}

impl TaskMetricDistributions {
    /// Whether these are the quantiles that were asked for.
    pub fn is_as_asked(&self) -> bool {
        self.quantiles.get() == Some(QUANTILES)
    }
}

/// `None` where no task has succeeded yet: Spark answers 404 then, which is
/// no error.
pub async fn get(
    api: &Api,
    application: &ApplicationPath,
    stage: StageId,
) -> Result<Option<TaskMetricDistributions>, FetchError> {
    let (id, attempt) = (stage.stage.to_string(), stage.attempt.to_string());
    let url = api.application_url(
        application,
        &["stages", &id, &attempt, "taskSummary"],
        &[("quantiles", "0.0,0.25,0.5,0.75,0.95,1.0")],
    );
    match api.json::<TaskMetricDistributions>("task_summary", url).await {
        Ok(summary) => Ok(summary.is_as_asked().then_some(summary)),
        Err(error)
            if error.status == Some(404) && error.what.contains("No tasks reported metrics") =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
