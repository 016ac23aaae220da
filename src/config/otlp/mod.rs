//! What is sent by OTLP, and where: flags over the file over OpenTelemetry's
//! environment variables (`OTEL_*`) over defaults.

mod file;
mod resolve;
mod settings;

pub use file::Otlp;
pub use resolve::{Resolved, resolve};
pub use settings::{
    Compression, Destination, LogsSettings, MetricsSettings, OtlpResource, OtlpSettings, Protocol,
    Sampling, Signal, Temporality, TracesSettings,
};
