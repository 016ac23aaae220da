//! Where the program may write.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::units::{Size, Span};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Storage {
    /// Folder in which downloads of History Servers lie, without names, while
    /// they are read; the system's temporary folder where not set.
    pub temp_path: Option<PathBuf>,
    /// File of the embedded store; in memory where not set.
    pub path: Option<PathBuf>,
    pub retention: StorageRetention,
}

/// How long, and how much, is remembered of runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StorageRetention {
    /// From a run's end, or from when it was read, whichever is later.
    pub time: Span,
    /// Of all runs; beyond it the oldest are forgotten. No limit where not
    /// set.
    pub size: Option<Size>,
}

impl Default for StorageRetention {
    fn default() -> Self {
        Self { time: Span::seconds(30 * 86_400), size: None }
    }
}

impl Storage {
    /// The folder for what does not outlive its reading.
    pub fn temp_path(&self) -> PathBuf {
        self.temp_path.clone().unwrap_or_else(std::env::temp_dir)
    }
}
