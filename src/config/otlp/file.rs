//! The key `otlp` of the configuration file.

use serde::{Deserialize, Serialize};

/// What is sent by OTLP, and where.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Otlp {
    /// Where all three signals go: `http://collector:4318` (HTTP; `/v1/traces`
    /// and the like are added) or `http://collector:4317` with `protocol:
    /// grpc`. Where it is given, everything is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
}
