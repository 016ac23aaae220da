//! Where the program may write.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Storage {
    /// Folder in which downloads of History Servers lie, without names, while
    /// they are read; the system's temporary folder where not set.
    pub temp_path: Option<PathBuf>,
}

impl Storage {
    /// The folder for what does not outlive its reading.
    pub fn temp_path(&self) -> PathBuf {
        self.temp_path.clone().unwrap_or_else(std::env::temp_dir)
    }
}
