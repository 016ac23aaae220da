//! What Kubernetes tells of a run, in the JSON document.

use serde::Serialize;

use crate::model::OnKubernetes;

#[derive(Serialize)]
pub(super) struct KubernetesJson<'a> {
    driver_pod: Option<PodJson<'a>>,
    spark_application: Option<SubmissionJson<'a>>,
    /// Whether the run's state is Kubernetes' word.
    proves_state: bool,
}

#[derive(Serialize)]
struct PodJson<'a> {
    namespace: &'a str,
    name: &'a str,
    uid: &'a str,
    node: Option<&'a str>,
    /// `null` while it lives.
    fate: Option<&'static str>,
    /// Of Spark's own container.
    exit_code: Option<i32>,
    reason: Option<&'a str>,
}

#[derive(Serialize)]
struct SubmissionJson<'a> {
    operator: &'static str,
    namespace: &'a str,
    name: &'a str,
    state: &'static str,
    attempts: u32,
}

impl<'a> From<&'a OnKubernetes> for KubernetesJson<'a> {
    fn from(known: &'a OnKubernetes) -> Self {
        let driver_pod = known.driver.as_ref().map(|driver| {
            let pod = &driver.pod;
            let end = pod.end.as_ref();
            PodJson {
                namespace: &pod.name.namespace,
                name: &pod.name.name,
                uid: &pod.name.uid,
                node: pod.node.as_deref(),
                fate: pod.fate().map(crate::model::PodFate::as_str),
                exit_code: end.map(|end| end.exit_code),
                reason: end.and_then(|end| end.reason.as_deref()).or(pod.reason.as_deref()),
            }
        });
        let spark_application = known.submission.as_ref().map(|told| SubmissionJson {
            operator: told.operator.as_str(),
            namespace: &told.namespace,
            name: &told.name,
            state: told.state.as_str(),
            attempts: told.attempts,
        });
        Self { driver_pod, spark_application, proves_state: known.proves_state }
    }
}
