//! What is sent by OTLP, and where: flags over the file over OpenTelemetry's
//! environment variables (`OTEL_*`) over defaults, each key for itself.
//! [`resolve()`] makes [`OtlpSettings`] of it, which is all that the rest of
//! the program reads.

mod checks;
mod endpoint;
mod environment;
mod file;
mod layer;
mod list;
mod resolve;
mod settings;
#[cfg(test)]
mod tests;

pub use file::{Otlp, OtlpLogs, OtlpMetrics, OtlpOwn, OtlpSampling, OtlpTraces};
pub use resolve::{Resolved, resolve};
pub use settings::{
    Compression, Destination, LogsSettings, MetricsSettings, OtlpResource, OtlpSettings, Protocol,
    Sampling, Signal, Temporality, TracesSettings,
};
