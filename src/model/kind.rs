//! What sort of application a run is: rules about idleness depend on it.

use serde::{Deserialize, Serialize};

/// Streaming, interactive, or neither.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, Default,
)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    #[default]
    Batch,
    /// A streaming query or a DStream ran.
    Streaming,
    /// The main class is a shell or a server that people send statements to.
    Interactive,
}

/// Parts of `sun.java.command` that name a program people talk to.
/// `pyspark-shell` is *not* among them: `python job.py` starts its JVM with
/// that very word.
const INTERACTIVE_COMMANDS: [&str; 7] = [
    "org.apache.spark.repl.Main",
    "org.apache.spark.sql.hive.thriftserver",
    "org.apache.spark.sql.connect.service.SparkConnectServer",
    "org.apache.kyuubi",
    "org.apache.livy",
    "com.cloudera.livy",
    "org.apache.zeppelin",
];

/// Names that Spark's own shells give themselves.
const INTERACTIVE_NAMES: [&str; 3] = ["PySparkShell", "Spark shell", "SparkR"];

impl Kind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Batch => "batch",
            Self::Streaming => "streaming",
            Self::Interactive => "interactive",
        }
    }

    /// The kind, from whether a stream ran, the JVM's command line
    /// (`sun.java.command`) and the application's name.
    pub fn of(streamed: bool, java_command: Option<&str>, app_name: &str) -> Self {
        let interactive = java_command
            .is_some_and(|command| INTERACTIVE_COMMANDS.iter().any(|part| command.contains(part)))
            || INTERACTIVE_NAMES.contains(&app_name);
        match (streamed, interactive) {
            (true, _) => Self::Streaming,
            (false, true) => Self::Interactive,
            (false, false) => Self::Batch,
        }
    }

    /// Whether a job description is one that Structured Streaming writes for
    /// its micro-batches (the only trace of a stream in the REST API).
    pub fn is_stream_description(description: &str) -> bool {
        description.contains("runId = ") && description.contains("batch = ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_python_job_is_not_a_shell() {
        let command = "org.apache.spark.deploy.SparkSubmit --conf a=b pyspark-shell";
        assert_eq!(Kind::of(false, Some(command), "orders"), Kind::Batch);
        assert_eq!(Kind::of(false, Some(command), "PySparkShell"), Kind::Interactive);
        assert_eq!(Kind::of(true, None, "PySparkShell"), Kind::Streaming);
    }
}
