//! What makes every series of the catalogue that a run or the daemon itself
//! has: a new metric is given its value here.

use std::time::Duration;

use spark_exporter::diagnose::Price;
use spark_exporter::metrics::RunView;
use spark_exporter::telemetry::events::{
    ConfigLoaded, CycleFinished, KubernetesSeen, LogsListed, OtlpAccepted, SubmissionTold,
    ThresholdsSet, WebConfigLoaded, WebRequestFailed, WebRequestServed,
};
use spark_exporter::telemetry::{
    KubernetesCounts, SubmissionId, SubmissionStatus, TargetId, Telemetry, ThresholdSetting,
};

use super::{at, changed, run_id, skewed_run};

/// A run that has something in every series.
pub(crate) fn full_run(app_id: &str) -> RunView {
    changed(&skewed_run(run_id("default", app_id)), |application, diagnosis| {
        application.exit_code = Some(0);
        application.end = Some(at(75));
        application.executors[0].peaks.heap = Some(5);
        for numbers in diagnosis.stages.values_mut() {
            numbers.io_per_core.input = Some(1.0);
        }
        diagnosis.price = Some(Price { amount: 1.5, unused: None, currency: "EUR".into() });
    })
}

/// Counters of a daemon that has done something of each sort.
pub(crate) fn busy() -> Telemetry {
    let telemetry = Telemetry::new(at(0));
    let target = TargetId { cluster: "c".to_owned(), target: "http://x".to_owned() };
    CycleFinished {
        elsewhere: 0,
        target: target.clone(),
        success: true,
        at: at(1),
        duration: Duration::from_millis(1_250),
        requests: 1,
        bytes: 1,
        skipped: Vec::new(),
    }
    .emit(&telemetry);
    LogsListed { target, logs: 1, followed: 1, bytes: 1 }.emit(&telemetry);
    let (rule, threshold) = ("io_bound".to_owned(), "bytes_per_second_per_core".to_owned());
    ThresholdsSet { thresholds: vec![ThresholdSetting { rule, threshold, value: 3e6 }] }
        .emit(&telemetry);
    KubernetesSeen {
        cluster: "c".to_owned(),
        counts: KubernetesCounts {
            up: [("driver_pods", true)].into(),
            objects: [("driver_pods", 1)].into(),
            drivers: [("answering", 1)].into(),
        },
    }
    .emit(&telemetry);
    SubmissionTold {
        id: SubmissionId {
            cluster: "c".to_owned(),
            operator: "kubeflow",
            namespace: "etl".to_owned(),
            name: "orders".to_owned(),
        },
        status: Some(SubmissionStatus { state: "submitted", attempts: 1, submitted: Some(at(0)) }),
    }
    .emit(&telemetry);
    ConfigLoaded { at: at(1), sources: None }.emit(&telemetry);
    WebConfigLoaded { at: at(1), tls: true, first: true }.emit(&telemetry);
    OtlpAccepted { signal: "traces", items: 1, bytes: 1, at: at(1) }.emit(&telemetry);
    WebRequestServed { path: "/metrics", code: 200, duration: Duration::ZERO }.emit(&telemetry);
    WebRequestFailed { reason: "limit", message: String::new() }.emit(&telemetry);
    telemetry
}
