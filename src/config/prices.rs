//! What computing costs, where the operator says so.

use serde::{Deserialize, Serialize};

/// Prices of what executors are given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Prices {
    /// Of a core for an hour.
    pub core_hour: Option<f64>,
    /// Of a GiB of memory for an hour.
    pub gib_hour: Option<f64>,
    /// The label of the metrics, and what reports write beside amounts.
    pub currency: String,
}
