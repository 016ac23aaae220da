//! Why an executor went away, from Spark's words about it, and from its pod
//! where Kubernetes told how that ended.
//!
//! The words come from Standalone's master ("Command exited with code 137"),
//! YARN ("Container killed by YARN for exceeding physical memory limits"),
//! Kubernetes ("The executor with id 3 exited with exit code 52(JVM OOM)",
//! followed by the statuses of all containers of the pod) and Spark's own
//! driver ("Executor heartbeat timed out after 125000 ms").
//!
//! Spark's word decides whether an executor was sent away: what its pod does
//! then is its end, not a loss. Else the pod knows better what it knows for
//! sure: that the memory limit was passed, that its node went, and the exit
//! code of Spark's own container, which Spark may take from a sidecar.

use super::Cause;
use crate::model::{Application, Executor, PodFate};

/// The container of an executor's pod that runs Spark.
const SPARK_CONTAINER: &str = "spark-kubernetes-executor";

/// Executors that go within this before the application's end go with it.
const MOMENTS_MS: i64 = 2_000;

/// The cause of a loss; `None` where the executor was not lost: still there,
/// given back idle, killed by its driver on purpose, or gone with the end of
/// the application.
pub(super) fn cause(application: &Application, executor: &Executor) -> Option<Cause> {
    let fate = executor.pod.as_ref().and_then(|pod| pod.fate());
    let Some(removed) = executor.removed else {
        // Spark did not come to notice it.
        let is_over = application.end.is_some();
        return (is_over && fate == Some(PodFate::OutOfMemory)).then_some(Cause::ContainerMemory);
    };
    let reason = executor.removed_reason.as_deref().unwrap_or_default();
    let cause = cause_with_pod(reason, fate)?;
    let at_the_end = application.end.is_some_and(|end| {
        removed.as_millisecond() >= end.as_millisecond().saturating_sub(MOMENTS_MS)
    });
    // At the end only what cannot be the end's own doing is a loss: Spark
    // deletes the pods of executors that are left, and some have to be killed.
    let certain = matches!(cause, Cause::HeapOom | Cause::ContainerMemory)
        || (exit_code(reason) == Some(137) && fate != Some(PodFate::Deleted));
    (!at_the_end || certain).then_some(cause)
}

/// `None`: on purpose, or ended well.
fn cause_with_pod(reason: &str, fate: Option<PodFate>) -> Option<Cause> {
    if is_on_purpose(reason) {
        return None;
    }
    let told = cause_of_text(reason);
    let Some(fate) = fate else { return told };
    let vague = matches!(told, None | Some(Cause::Unknown | Cause::Killed));
    // From a number alone, which may be a sidecar's.
    let of_number = told.is_some() && told == exit_code(reason).map(|code| of_code(Some(code)));
    match fate {
        PodFate::OutOfMemory => Some(Cause::ContainerMemory),
        PodFate::NodeLost => Some(Cause::NodeLost),
        PodFate::Evicted | PodFate::Preempted => Some(Cause::Preempted),
        PodFate::Exited(code @ (52 | 56)) => Some(of_code(Some(code.into()))),
        // The container was not out of its memory: a sidecar was.
        PodFate::Exited(code) if vague || of_number || told == Some(Cause::ContainerMemory) => {
            Some(of_code(Some(code.into())))
        }
        PodFate::Completed if vague || of_number => None,
        // Not by Spark, which would say so.
        PodFate::Deleted if told == Some(Cause::Unknown) => Some(Cause::Killed),
        PodFate::Completed
        | PodFate::Deleted
        | PodFate::Exited(_)
        | PodFate::Deadline
        | PodFate::Failed
        | PodFate::Vanished => told,
    }
}

/// Whether the driver sent it away.
fn is_on_purpose(reason: &str) -> bool {
    let lower = reason.to_ascii_lowercase();
    [
        "executor killed by driver",
        "idle for",
        "spark scale down",
        "requested by driver to be killed",
    ]
    .iter()
    .any(|part| lower.contains(part))
}

/// `None`: on purpose.
fn cause_of_text(reason: &str) -> Option<Cause> {
    let lower = reason.to_ascii_lowercase();
    let has = |part: &str| lower.contains(part);
    if is_on_purpose(reason) {
        return None;
    }
    let code = exit_code(reason);
    if has("oomkilled")
        || has("exceeding memory limits")
        || has("exceeding physical memory limits")
        || has("exceeding virtual memory limits")
        || has("beyond the 'physical' memory limit")
        || has("beyond the 'virtual' memory limit")
    {
        // The word may be a sidecar's: with several containers Spark's own
        // status decides.
        return Some(match spark_container(reason) {
            Some(own) if !own.to_ascii_lowercase().contains("oomkilled") => of_code(code),
            _ => Cause::ContainerMemory,
        });
    }
    if has("outofmemoryerror") || code == Some(52) {
        Some(Cause::HeapOom)
    } else if has("heartbeat timed out") || has("no recent heartbeats") || code == Some(56) {
        Some(Cause::Heartbeat)
    } else if has("preempt") || has("evict") || code == Some(-102) {
        Some(Cause::Preempted)
    } else if has("decommission") {
        Some(Cause::Decommissioned)
    } else if has("lost node")
        || has("*lost* node")
        || has("worker lost")
        || has("worker shutting down")
        || has("host lost")
        || has("node lost")
        || has("slave lost")
        || has("bad node")
        || code == Some(-100)
    {
        Some(Cause::NodeLost)
    } else if code == Some(0) {
        None
    } else {
        Some(of_code(code))
    }
}

fn of_code(code: Option<i64>) -> Cause {
    match code {
        Some(52) => Cause::HeapOom,
        Some(56) => Cause::Heartbeat,
        // SIGKILL and SIGTERM, from whomever.
        Some(137 | 143) => Cause::Killed,
        _ => Cause::Unknown,
    }
}

/// The status of the Spark container among those of its pod. The name is the
/// first line of each status.
fn spark_container(reason: &str) -> Option<&str> {
    let from = reason.find(SPARK_CONTAINER)?;
    let own = reason.get(from..)?;
    let end = own.find("container name:").unwrap_or(own.len());
    own.get(..end)
}

/// The exit code: of the pod's own word where there is one, else of the text.
pub(super) fn exit_code_of(executor: &Executor) -> Option<i64> {
    let of_pod = executor.pod.as_ref().and_then(|pod| pod.end.as_ref());
    let of_pod = of_pod.map(|end| i64::from(end.exit_code));
    of_pod.or_else(|| executor.removed_reason.as_deref().and_then(exit_code))
}

/// The exit code in the text; of several containers the Spark container's.
fn exit_code(reason: &str) -> Option<i64> {
    let own = spark_container(reason).and_then(number_after_code);
    own.or_else(|| number_after_code(reason))
}

fn number_after_code(text: &str) -> Option<i64> {
    let lower = text.to_ascii_lowercase();
    let at = ["exit code", "exited with code", "exit status", "exitcode"]
        .iter()
        .filter_map(|words| Some(lower.find(words)? + words.len()))
        .min()?;
    let rest = lower.get(at..)?.trim_start_matches([' ', ':', '=', '\t']);
    let digits = rest
        .char_indices()
        .take_while(|(i, c)| c.is_ascii_digit() || (*i == 0 && *c == '-'))
        .map(|(i, c)| i + c.len_utf8())
        .last()?;
    rest.get(..digits)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words as Spark writes them.
    #[test]
    fn each_word_has_its_cause() {
        for (reason, expected) in [
            ("Executor killed by driver.", None),
            ("Executor decommission: spark scale down", None),
            ("Command exited with code 0", None),
            ("Command exited with code 137", Some(Cause::Killed)),
            ("Command exited with code 143", Some(Cause::Killed)),
            ("Command exited with code 52", Some(Cause::HeapOom)),
            ("Command exited with code 1", Some(Cause::Unknown)),
            ("Executor heartbeat timed out after 125000 ms", Some(Cause::Heartbeat)),
            ("worker lost: Not receiving heartbeat for 60 seconds", Some(Cause::NodeLost)),
            (
                "Container killed by YARN for exceeding physical memory limits. 5.5 GB of 5.5 GB \
                 physical memory used.",
                Some(Cause::ContainerMemory),
            ),
            (
                "Container container_1_0001_01_000002 on host: a was preempted.",
                Some(Cause::Preempted),
            ),
            (
                "Container marked as failed: container_1 on host: a. Exit status: -100. \
                 Diagnostics: Container released on a *lost* node.",
                Some(Cause::NodeLost),
            ),
            (
                "Container from a bad node: container_1 on host: b. Exit status: 137.",
                Some(Cause::NodeLost),
            ),
            (
                "The executor with id 3 exited with exit code 137(SIGKILL, possible container \
                 OOM).",
                Some(Cause::Killed),
            ),
            ("The executor with id 3 exited with exit code 52(JVM OOM).", Some(Cause::HeapOom)),
            ("Executor decommission: worker decommissioned", Some(Cause::Decommissioned)),
            (
                "Remote RPC client disassociated. Likely due to containers exceeding thresholds, \
                 or network issues. Check driver logs for WARN messages.",
                Some(Cause::Unknown),
            ),
            ("", Some(Cause::Unknown)),
        ] {
            assert_eq!(cause_of_text(reason), expected, "{reason}");
        }
    }

    fn pod(sidecar: &str, spark: &str) -> String {
        format!(
            "The executor with id 5 exited with exit code 0(success).\n\n\
             The API gave the following brief reason: N/A\n\
             The API gave the following container statuses:\n\n\
             \t container name: proxy\n\t container state: terminated\n\t {sidecar}\n\n\
             \t container name: spark-kubernetes-executor\n\t container state: terminated\n\t \
             {spark}\n\n\
             \t container name: logs\n\t container state: running\n"
        )
    }

    #[test]
    fn with_sidecars_the_spark_container_speaks() {
        let reason = pod("exit code: 0\n\t termination reason: Completed", "exit code: 52");
        assert_eq!(cause_of_text(&reason), Some(Cause::HeapOom));
        let reason = pod("exit code: 0", "exit code: 137\n\t termination reason: OOMKilled");
        assert_eq!(cause_of_text(&reason), Some(Cause::ContainerMemory));
        let reason = pod("exit code: 137\n\t termination reason: OOMKilled", "exit code: 137");
        assert_eq!(cause_of_text(&reason), Some(Cause::Killed));
    }

    const VAGUE: &str = "Remote RPC client disassociated. Likely due to containers exceeding \
                         thresholds, or network issues.";
    const OF_137: &str =
        "The executor with id 3 exited with exit code 137(SIGKILL, possible container OOM).";

    #[test]
    fn the_pod_knows_what_a_number_does_not() {
        for (reason, fate, expected) in [
            (OF_137, PodFate::OutOfMemory, Some(Cause::ContainerMemory)),
            (VAGUE, PodFate::OutOfMemory, Some(Cause::ContainerMemory)),
            (OF_137, PodFate::Evicted, Some(Cause::Preempted)),
            (OF_137, PodFate::NodeLost, Some(Cause::NodeLost)),
            (VAGUE, PodFate::Exited(52), Some(Cause::HeapOom)),
            (VAGUE, PodFate::Exited(137), Some(Cause::Killed)),
            (VAGUE, PodFate::Deleted, Some(Cause::Killed)),
            (
                "Executor heartbeat timed out after 125000 ms",
                PodFate::OutOfMemory,
                Some(Cause::ContainerMemory),
            ),
        ] {
            assert_eq!(cause_with_pod(reason, Some(fate)), expected, "{reason} {fate:?}");
        }
    }

    /// Where the pod tells nothing better, Spark's word stands.
    #[test]
    fn a_pod_that_only_ended_changes_nothing() {
        let heartbeat = "Executor heartbeat timed out after 125000 ms";
        for (reason, fate, expected) in [
            // Spark itself deletes the pod of an executor it gave up.
            (heartbeat, PodFate::Deleted, Some(Cause::Heartbeat)),
            (heartbeat, PodFate::Exited(143), Some(Cause::Heartbeat)),
            (OF_137, PodFate::Exited(137), Some(Cause::Killed)),
            (OF_137, PodFate::Vanished, Some(Cause::Killed)),
            (
                "Executor decommission: worker decommissioned",
                PodFate::Completed,
                Some(Cause::Decommissioned),
            ),
        ] {
            assert_eq!(cause_with_pod(reason, Some(fate)), expected, "{reason} {fate:?}");
        }
    }

    /// The tempting wrong verdicts: an executor that Spark sent away is none
    /// that was lost, whatever became of its pod; and a sidecar's end is not
    /// Spark's.
    #[test]
    fn what_was_sent_away_or_ended_beside_spark_is_no_loss() {
        for fate in [PodFate::Deleted, PodFate::Exited(137), PodFate::OutOfMemory] {
            assert_eq!(cause_with_pod("Executor killed by driver.", Some(fate)), None, "{fate:?}");
        }
        let sidecar = "The executor with id 5 exited with exit code 137(SIGKILL, possible \
                       container OOM).";
        assert_eq!(cause_with_pod(sidecar, Some(PodFate::Completed)), None);
        assert_eq!(cause_with_pod(sidecar, Some(PodFate::Exited(52))), Some(Cause::HeapOom));
        let killed = "The API gave the following brief reason: OOMKilled";
        assert_eq!(cause_with_pod(killed, Some(PodFate::Exited(1))), Some(Cause::Unknown));
        // The first line is the sidecar's, which ended well.
        let well = "The executor with id 5 exited with exit code 0(success).";
        assert_eq!(cause_with_pod(well, Some(PodFate::Exited(52))), Some(Cause::HeapOom));
        assert_eq!(cause_with_pod(well, Some(PodFate::Completed)), None);
        assert_eq!(cause_with_pod(well, Some(PodFate::Deleted)), None);
    }
}
