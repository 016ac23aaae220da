//! Why an executor went away, from Spark's words about it.
//!
//! The words come from Standalone's master ("Command exited with code 137"),
//! YARN ("Container killed by YARN for exceeding physical memory limits"),
//! Kubernetes ("The executor with id 3 exited with exit code 52(JVM OOM)",
//! followed by the statuses of all containers of the pod) and Spark's own
//! driver ("Executor heartbeat timed out after 125000 ms").

use super::Cause;
use crate::model::{Application, Executor};

/// The container of an executor's pod that runs Spark.
const SPARK_CONTAINER: &str = "spark-kubernetes-executor";

/// Executors that go within this before the application's end go with it.
const MOMENTS_MS: i64 = 2_000;

/// The cause of a loss; `None` where the executor was not lost: still there,
/// given back idle, killed by its driver on purpose, or gone with the end of
/// the application.
pub(super) fn cause(application: &Application, executor: &Executor) -> Option<Cause> {
    let removed = executor.removed?;
    let reason = executor.removed_reason.as_deref().unwrap_or_default();
    let cause = cause_of_text(reason)?;
    let at_the_end = application.end.is_some_and(|end| {
        removed.as_millisecond() >= end.as_millisecond().saturating_sub(MOMENTS_MS)
    });
    // At the end only what cannot be the end's own doing is a loss.
    let certain =
        matches!(cause, Cause::HeapOom | Cause::ContainerMemory) || exit_code(reason) == Some(137);
    (!at_the_end || certain).then_some(cause)
}

/// `None`: on purpose.
pub(super) fn cause_of_text(reason: &str) -> Option<Cause> {
    let lower = reason.to_ascii_lowercase();
    let has = |part: &str| lower.contains(part);
    if has("executor killed by driver")
        || has("idle for")
        || has("spark scale down")
        || has("requested by driver to be killed")
    {
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

/// The exit code in the text; of several containers the Spark container's.
pub(super) fn exit_code(reason: &str) -> Option<i64> {
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
}
