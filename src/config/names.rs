//! How names of applications become names of jobs: `etl-2026-11-29` is a run
//! of `etl`.

use serde::{Deserialize, Serialize};

/// Rules for `app_name`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Names {
    /// Whether dates, ids and numbers are taken out of names that no rule
    /// matches.
    pub default_rules: bool,
}

impl Default for Names {
    fn default() -> Self {
        Self { default_rules: true }
    }
}

impl Names {
    /// The name of the job that an application of this name is a run of.
    pub fn rewrite(&self, app_name: &str) -> String {
        app_name.to_owned()
    }
}
