//! What is kept of a diagnosed run so that later runs of the same name can be
//! compared with it.
//!
//! Small (a few KiB), without text of users and without values of properties
//! beyond a short list, since it is stored.

use serde::{Deserialize, Serialize};

use super::Diagnosis;
use crate::model::Application;

/// A run in short.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunSummary {
    pub spark_version: Option<String>,
    pub duration_ms: Option<u64>,
}

impl RunSummary {
    pub fn of(application: &Application, diagnosis: &Diagnosis) -> Self {
        let _ = diagnosis;
        Self {
            spark_version: application.spark_version.clone(),
            duration_ms: application.duration().map(|duration| duration.as_millis() as u64),
        }
    }
}
