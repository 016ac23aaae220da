//! Where the driver ran on Kubernetes and how its pod ended, in a line.

use std::fmt::Write;

use crate::model::{Application, PodFate};
use crate::report::privacy;

/// Characters of a name: as many as an object of Kubernetes may have.
const NAME: usize = 253;

pub(super) fn fact(application: &Application) -> Option<String> {
    let known = application.kubernetes.as_ref()?;
    let Some(driver) = &known.driver else {
        let told = known.submission.as_ref()?;
        return Some(format!(
            "SparkApplication {}/{}",
            privacy::cut(&told.namespace, NAME),
            privacy::cut(&told.name, NAME)
        ));
    };
    let pod = &driver.pod;
    let mut line = format!(
        "pod {}/{}",
        privacy::cut(&pod.name.namespace, NAME),
        privacy::cut(&pod.name.name, NAME)
    );
    if let Some(node) = &pod.node {
        let _ = write!(line, " on {}", privacy::cut(node, NAME));
    }
    if let Some(fate) = known.driver_fate() {
        let _ = write!(line, ", {}", words(fate));
    }
    Some(line)
}

fn words(fate: PodFate) -> String {
    match fate {
        PodFate::Completed => "which ended well".to_owned(),
        PodFate::OutOfMemory => "OOMKilled".to_owned(),
        PodFate::Evicted => "which was evicted".to_owned(),
        PodFate::Preempted => "which was preempted".to_owned(),
        PodFate::NodeLost => "which was lost with its node".to_owned(),
        PodFate::Deadline => "which ran for longer than it may".to_owned(),
        PodFate::Deleted => "which was deleted while it ran".to_owned(),
        PodFate::Exited(code) => format!("which ended with exit code {code}"),
        PodFate::Failed => "which failed".to_owned(),
        PodFate::Vanished => "which is not there any more".to_owned(),
    }
}
