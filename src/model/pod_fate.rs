//! What became of a pod of Spark's, from its phase, the end of Spark's own
//! container in it, and what the cluster says of the pod as a whole.

use super::{ContainerEnd, Pod, PodPhase};

/// The JVM's heap was used up (`SparkExitCode.OOM`): the process says so
/// itself, whatever was done to its pod meanwhile.
const HEAP_OOM: i32 = 52;
/// 128 and the number of SIGKILL, of SIGTERM: ended from outside.
const SIGNALS: [i32; 2] = [137, 143];

/// How a pod ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodFate {
    /// Spark's container ended with exit code 0.
    Completed,
    /// Spark's container went over its memory limit.
    OutOfMemory,
    /// Its node ran short of something, was drained, or was shut down in
    /// order.
    Evicted,
    /// Taken away for a pod of higher priority.
    Preempted,
    /// Its node does not answer, or is gone.
    NodeLost,
    /// It ran for longer than it may (`activeDeadlineSeconds`).
    Deadline,
    /// Somebody deleted it while it ran.
    Deleted,
    /// Spark's container ended with this code, which is not 0.
    Exited(i32),
    /// The phase says that it failed, and nothing says how.
    Failed,
    /// It is not there any more, and nothing says why: its labels may have
    /// changed, or it went while nobody looked.
    Vanished,
}

impl PodFate {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::OutOfMemory => "out_of_memory",
            Self::Evicted => "evicted",
            Self::Preempted => "preempted",
            Self::NodeLost => "node_lost",
            Self::Deadline => "deadline",
            Self::Deleted => "deleted",
            Self::Exited(_) => "exited",
            Self::Failed => "failed",
            Self::Vanished => "vanished",
        }
    }

    /// Whether somebody else than the program ended it.
    pub fn is_from_outside(self) -> bool {
        match self {
            Self::Evicted
            | Self::Preempted
            | Self::NodeLost
            | Self::Deadline
            | Self::Deleted
            | Self::Vanished => true,
            Self::Exited(code) => SIGNALS.contains(&code),
            Self::Completed | Self::OutOfMemory | Self::Failed => false,
        }
    }
}

impl Pod {
    /// What became of it; `None` while it lives, as far as can be told: one
    /// whose deletion was asked for may still end by itself.
    pub fn fate(&self) -> Option<PodFate> {
        if let Some(end) = &self.end {
            return Some(self.fate_of(end));
        }
        if let Some(word) = self.reason.as_deref().and_then(of_reason)
            && (self.deleted || self.phase == PodPhase::Failed)
        {
            return Some(word);
        }
        match self.phase {
            PodPhase::Succeeded => Some(PodFate::Completed),
            PodPhase::Failed => Some(PodFate::Failed),
            PodPhase::Pending | PodPhase::Running | PodPhase::Unknown if self.deleted => {
                Some(if self.deletion.is_some() { PodFate::Deleted } else { PodFate::Vanished })
            }
            PodPhase::Pending | PodPhase::Running | PodPhase::Unknown => None,
        }
    }

    fn fate_of(&self, end: &ContainerEnd) -> PodFate {
        let reason = end.reason.as_deref().unwrap_or_default();
        // The kubelet lost sight of the container, and made the code up.
        let is_known = reason != "ContainerStatusUnknown";
        if is_known && end.exit_code == 0 {
            return PodFate::Completed;
        }
        if reason == "OOMKilled" {
            return PodFate::OutOfMemory;
        }
        if end.exit_code == HEAP_OOM {
            return PodFate::Exited(HEAP_OOM);
        }
        // What was done to the pod explains how its container ended, if it was
        // done before.
        if !is_known || SIGNALS.contains(&end.exit_code) || self.was_asked_to_go(end) {
            if let Some(word) = self.reason.as_deref().and_then(of_reason) {
                return word;
            }
            if self.was_asked_to_go(end) {
                return PodFate::Deleted;
            }
        }
        if is_known { PodFate::Exited(end.exit_code) } else { PodFate::Failed }
    }

    fn was_asked_to_go(&self, end: &ContainerEnd) -> bool {
        match (self.deletion, end.finished) {
            (Some(asked), Some(finished)) => asked <= finished,
            (Some(_), None) => SIGNALS.contains(&end.exit_code),
            (None, _) => false,
        }
    }
}

/// Words of a pod's `status.reason`, and of its `DisruptionTarget` condition.
fn of_reason(word: &str) -> Option<PodFate> {
    Some(match word {
        "Evicted" | "EvictionByEvictionAPI" | "TerminationByKubelet" => PodFate::Evicted,
        "Preempting" | "Preempted" | "PreemptionByScheduler" | "PreemptionByKubeScheduler" => {
            PodFate::Preempted
        }
        "NodeLost"
        | "NodeShutdown"
        | "Shutdown"
        | "Terminated"
        | "DeletionByTaintManager"
        | "DeletionByPodGC" => PodFate::NodeLost,
        "DeadlineExceeded" => PodFate::Deadline,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::model::PodName;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn pod() -> Pod {
        Pod {
            name: PodName { namespace: "etl".into(), name: "driver".into(), uid: "1".into() },
            node: None,
            phase: PodPhase::Running,
            reason: None,
            end: None,
            deletion: None,
            deleted: false,
        }
    }

    fn ended(code: i32, reason: &str) -> Pod {
        let reason = Some(reason.to_owned());
        Pod { end: Some(ContainerEnd { exit_code: code, reason, finished: Some(at(60)) }), ..pod() }
    }

    fn because(pod: Pod, reason: &str) -> Pod {
        Pod { reason: Some(reason.to_owned()), ..pod }
    }

    fn asked(pod: Pod, second: i64) -> Pod {
        Pod { deletion: Some(at(second)), ..pod }
    }

    fn gone(pod: Pod) -> Pod {
        Pod { deleted: true, ..pod }
    }

    #[test]
    fn a_pod_that_lives_has_no_fate() {
        assert_eq!(pod().fate(), None);
        assert_eq!(asked(pod(), 5).fate(), None, "it may still end by itself");
        assert_eq!(because(pod(), "PreemptionByScheduler").fate(), None, "announced, not done");
        assert_eq!(Pod { phase: PodPhase::Unknown, ..pod() }.fate(), None, "it may come back");
    }

    #[test]
    fn spark_s_own_container_says_how_it_ended() {
        use PodFate::{Completed, Exited, OutOfMemory};
        assert_eq!(ended(0, "Completed").fate(), Some(Completed));
        assert_eq!(ended(137, "OOMKilled").fate(), Some(OutOfMemory));
        assert_eq!(ended(1, "Error").fate(), Some(Exited(1)));
        assert_eq!(ended(137, "Error").fate(), Some(Exited(137)), "by whom is not proven");
        // A sidecar failed, and with it the pod.
        let pod = Pod { phase: PodPhase::Failed, ..ended(0, "Completed") };
        assert_eq!(pod.fate(), Some(Completed));
    }

    #[test]
    fn what_was_done_to_the_pod_explains_a_signal() {
        use PodFate::{
            Completed, Deleted, Evicted, Exited, Failed, NodeLost, OutOfMemory, Preempted,
        };
        assert_eq!(asked(ended(143, "Error"), 50).fate(), Some(Deleted));
        assert_eq!(asked(ended(1, "Error"), 50).fate(), Some(Deleted));
        assert_eq!(asked(ended(143, "Error"), 70).fate(), Some(Exited(143)), "cleared away later");
        assert_eq!(asked(ended(1, "Error"), 70).fate(), Some(Exited(1)));
        assert_eq!(asked(ended(0, "Completed"), 50).fate(), Some(Completed));
        assert_eq!(asked(ended(52, "Error"), 50).fate(), Some(Exited(52)));
        assert_eq!(asked(ended(137, "OOMKilled"), 50).fate(), Some(OutOfMemory));
        assert_eq!(because(ended(137, "Error"), "Evicted").fate(), Some(Evicted));
        let drained = because(asked(ended(143, "Error"), 50), "EvictionByEvictionAPI");
        assert_eq!(drained.fate(), Some(Evicted), "not somebody's wish to end it");
        let preempted = because(ended(143, "Error"), "PreemptionByScheduler");
        assert_eq!(preempted.fate(), Some(Preempted));
        assert_eq!(because(ended(1, "Error"), "TerminationByKubelet").fate(), Some(Exited(1)));
        let unknown = ended(137, "ContainerStatusUnknown");
        assert_eq!(unknown.fate(), Some(Failed));
        assert_eq!(because(unknown, "DeletionByPodGC").fate(), Some(NodeLost));
    }

    #[test]
    fn a_pod_that_is_gone_without_a_word() {
        use PodFate::{Completed, Deleted, Evicted, Failed, Vanished};
        assert_eq!(gone(pod()).fate(), Some(Vanished));
        assert_eq!(gone(asked(pod(), 5)).fate(), Some(Deleted));
        assert_eq!(gone(because(pod(), "Evicted")).fate(), Some(Evicted));
        let of_phase = |phase| Pod { phase, ..pod() }.fate();
        assert_eq!(of_phase(PodPhase::Succeeded), Some(Completed));
        assert_eq!(of_phase(PodPhase::Failed), Some(Failed));
    }
}
