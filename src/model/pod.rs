//! What Kubernetes tells of a run: its driver's pod, its executors' pods, and
//! the custom resource it was submitted by. Plain data, whoever watched them
//! ([`crate::discover`]); who the run is comes from Spark itself.

use std::collections::BTreeMap;

use jiff::Timestamp;

/// Which pod.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PodName {
    pub namespace: String,
    pub name: String,
    /// Another pod of the same name has another one.
    pub uid: String,
}

/// `status.phase` of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PodPhase {
    Pending,
    Running,
    Succeeded,
    Failed,
    /// The kubelet's node does not answer.
    Unknown,
}

impl PodPhase {
    /// Whether its containers have ended for good.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// How a container ended (`state.terminated`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerEnd {
    pub exit_code: i32,
    /// `OOMKilled`, `Error`, `Completed`, `ContainerStatusUnknown` …
    pub reason: Option<String>,
    pub finished: Option<Timestamp>,
}

/// A pod with a container of Spark's in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    pub name: PodName,
    pub node: Option<String>,
    pub phase: PodPhase,
    /// Why the whole pod ended, where that is told: `Evicted`, `Preempting`,
    /// `NodeLost`, `DeadlineExceeded` … (`status.reason`, or the reason of its
    /// `DisruptionTarget` condition).
    pub reason: Option<String>,
    /// Of Spark's own container, whatever its sidecars did.
    pub end: Option<ContainerEnd>,
    /// When somebody asked for its deletion: `metadata.deletionTimestamp` less
    /// `deletionGracePeriodSeconds`, since the API server writes there when
    /// the pod has to be gone.
    pub deletion: Option<Timestamp>,
    /// Whether it is not there any more.
    pub deleted: bool,
}

/// The pod of a driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverPod {
    pub pod: Pod,
    /// Spark's id of the application (`spark-app-selector`); in client mode
    /// only the driver itself tells it.
    pub app_id: Option<String>,
    /// Those of the pod's labels that the operator's list allows, by their
    /// own names.
    pub labels: BTreeMap<String, String>,
}

/// The pod of an executor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutorPod {
    pub pod: Pod,
    /// `spark-app-selector`.
    pub app_id: String,
    /// `spark-exec-id`.
    pub executor_id: String,
}

/// Whose custom resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operator {
    /// `sparkoperator.k8s.io`, the Kubeflow Spark Operator.
    Kubeflow,
    /// `spark.apache.org`, the Apache Spark Kubernetes Operator.
    Apache,
}

impl Operator {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kubeflow => "kubeflow",
            Self::Apache => "apache",
        }
    }
}

/// What the custom resource says has become of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SubmissionState {
    /// Not yet submitted, or its driver is not yet up.
    Submitted,
    Running,
    Succeeded,
    Failed,
    /// It could not be submitted at all: no driver ever ran.
    SubmissionFailed,
    /// Between two attempts.
    Restarting,
    Unknown,
}

impl SubmissionState {
    pub const ALL: [Self; 7] = [
        Self::Submitted,
        Self::Running,
        Self::Succeeded,
        Self::Failed,
        Self::SubmissionFailed,
        Self::Restarting,
        Self::Unknown,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Submitted => "submitted",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::SubmissionFailed => "submission_failed",
            Self::Restarting => "restarting",
            Self::Unknown => "unknown",
        }
    }
}

/// A `SparkApplication`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submission {
    pub operator: Operator,
    pub namespace: String,
    pub name: String,
    pub uid: String,
    /// Spark's id of the newest attempt.
    pub app_id: Option<String>,
    /// Name of its driver's pod.
    pub driver_pod: Option<String>,
    pub state: SubmissionState,
    /// How often the driver was started, all attempts together.
    pub attempts: u32,
    pub submitted: Option<Timestamp>,
    pub ended: Option<Timestamp>,
    /// In the operator's words. Text of users may be in it.
    pub message: Option<String>,
    pub deleted: bool,
}
