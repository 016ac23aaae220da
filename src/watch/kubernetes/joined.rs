//! Which driver's pod belongs to which `SparkApplication`: the pod carries
//! the application's name. Apache's operator tells neither Spark's id nor the
//! pod's name of its applications: the pod does.

use std::collections::HashMap;

use crate::discover::kubernetes::{FoundDriver, FoundSubmission};
use crate::model::{PodName, Submission};

/// By namespace and name.
type Key = (String, String);

#[derive(Debug)]
struct Runs {
    pod: PodName,
    app_id: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct Joined {
    submissions: HashMap<Key, FoundSubmission>,
    /// The newest driver that was seen of each.
    drivers: HashMap<Key, Runs>,
}

impl Joined {
    /// A `SparkApplication` as it is now, with what its driver's pod adds;
    /// and whether it tells another port than it did.
    pub(super) fn submission(&mut self, found: FoundSubmission) -> (Submission, bool) {
        let key = (found.submission.namespace.clone(), found.submission.name.clone());
        let submission = self.filled(&key, found.submission.clone());
        let port = found.ui_port;
        let before = if found.submission.deleted {
            self.submissions.remove(&key)
        } else {
            self.submissions.insert(key, found)
        };
        (submission, before.and_then(|before| before.ui_port) != port)
    }

    /// A driver's pod as it is now; its `SparkApplication` again, where the
    /// pod tells something new of it.
    pub(super) fn driver(&mut self, found: &FoundDriver) -> Option<Submission> {
        let key = key(found)?;
        let pod = &found.pod.pod;
        if pod.deleted {
            self.forget(found);
            return None;
        }
        let known = self.drivers.get(&key).is_some_and(|runs| runs.pod == pod.name);
        if known {
            return None;
        }
        let runs = Runs { pod: pod.name.clone(), app_id: found.pod.app_id.clone() };
        self.drivers.insert(key.clone(), runs);
        let submission = self.submissions.get(&key)?.submission.clone();
        let filled = self.filled(&key, submission.clone());
        (filled != submission).then_some(filled)
    }

    /// A driver's pod that is none any more.
    pub(super) fn forget(&mut self, found: &FoundDriver) {
        if let Some(key) = key(found)
            && self.drivers.get(&key).is_some_and(|runs| runs.pod == found.pod.pod.name)
        {
            self.drivers.remove(&key);
        }
    }

    /// Of the driver's UI, as its `SparkApplication` tells it.
    pub(super) fn port(&self, found: &FoundDriver) -> Option<u16> {
        self.submissions.get(&key(found)?)?.ui_port
    }

    fn filled(&self, key: &Key, mut submission: Submission) -> Submission {
        // Where the operator tells them, an older pod of the same name has
        // nothing to say.
        if let (None, None) = (&submission.app_id, &submission.driver_pod)
            && let Some(runs) = self.drivers.get(key)
        {
            submission.app_id.clone_from(&runs.app_id);
            submission.driver_pod = Some(runs.pod.name.clone());
        }
        submission
    }
}

fn key(found: &FoundDriver) -> Option<Key> {
    Some((found.pod.pod.name.namespace.clone(), found.submitted_by.clone()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{DriverPod, Operator, Pod, PodPhase, SubmissionState};

    fn submission(port: Option<u16>) -> FoundSubmission {
        let submission = Submission {
            operator: Operator::Apache,
            namespace: "jobs".to_owned(),
            name: "nightly".to_owned(),
            uid: "s".to_owned(),
            app_id: None,
            driver_pod: None,
            state: SubmissionState::Running,
            attempts: 1,
            submitted: None,
            ended: None,
            message: None,
            deleted: false,
        };
        FoundSubmission { submission, ui_port: port }
    }

    fn driver(name: &str, deleted: bool) -> FoundDriver {
        let name = PodName {
            namespace: "jobs".to_owned(),
            name: name.to_owned(),
            uid: format!("uid of {name}"),
        };
        let pod = Pod {
            name,
            node: None,
            phase: PodPhase::Running,
            reason: None,
            end: None,
            deletion: None,
            deleted,
        };
        let app_id = Some("spark-1".to_owned());
        FoundDriver {
            pod: DriverPod { pod, app_id, labels: std::collections::BTreeMap::new() },
            ui: None,
            client_mode: false,
            submitted_by: Some("nightly".to_owned()),
        }
    }

    #[test]
    fn whichever_comes_first_the_submission_knows_its_driver() {
        let mut joined = Joined::default();
        assert_eq!(joined.driver(&driver("a", false)), None);
        let (filled, _) = joined.submission(submission(None));
        assert_eq!(
            (filled.app_id.as_deref(), filled.driver_pod.as_deref()),
            (Some("spark-1"), Some("a"))
        );

        let mut joined = Joined::default();
        assert_eq!(joined.submission(submission(None)).0.app_id, None);
        let told = joined.driver(&driver("a", false)).unwrap();
        assert_eq!(told.driver_pod.as_deref(), Some("a"));
        assert_eq!(joined.driver(&driver("a", false)), None, "told once");
        assert_eq!(joined.driver(&driver("b", false)).unwrap().driver_pod.as_deref(), Some("b"));
        assert_eq!(joined.driver(&driver("a", true)), None);
        assert_eq!(joined.submission(submission(None)).0.driver_pod.as_deref(), Some("b"));
        joined.driver(&driver("b", true));
        assert_eq!(joined.submission(submission(None)).0.driver_pod, None);
    }

    #[test]
    fn a_port_is_told_by_the_submission_of_the_pod() {
        let mut joined = Joined::default();
        assert_eq!(joined.port(&driver("a", false)), None);
        assert!(joined.submission(submission(Some(4050))).1);
        assert!(!joined.submission(submission(Some(4050))).1);
        assert_eq!(joined.port(&driver("a", false)), Some(4050));
        let mut gone = submission(Some(4050));
        gone.submission.deleted = true;
        joined.submission(gone);
        assert_eq!(joined.port(&driver("a", false)), None);
    }
}
