//! What the daemon's pages show.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Web {
    /// Whether reports show what users wrote: SQL, tables, paths,
    /// descriptions, error messages, values of properties. What looks like a
    /// password or a token is cut out all the same. Everybody who reaches the
    /// port sees it.
    pub show_sql: bool,
}
