//! The daemon's own log lines, and the spans of its own work, to where `logs`
//! and `traces` go: collected by OpenTelemetry's SDK, written by its OTLP
//! exporters, delivered as everything else ([`super::deliver`]).
//!
//! Off unless asked for (`otlp.own`): both are about the daemon, and who looks
//! after Spark does not miss them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request as HttpRequest, Response};
use opentelemetry::logs::LogRecord;
use opentelemetry::trace::TracerProvider;
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_appender_tracing::layer::OpenTelemetryTracingBridge;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{
    ExporterBuildError, LogExporter, Protocol, RetryPolicy, SpanExporter, WithExportConfig,
    WithHttpConfig,
};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::logs::{LogProcessor, SdkLogRecord, SdkLoggerProvider};
use opentelemetry_sdk::trace::SdkTracerProvider;
use prost::Message;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::deliver::{Request, Sender, SenderError, Sent};
use super::resource;
use crate::config::otlp::{Destination, OtlpSettings, Signal};
use crate::telemetry::Telemetry;
use crate::telemetry::logging::{Listener, LoggingError, listen_to_lines, listen_to_spans};

/// A batch is tried for so many of its destination's time-outs: the next ones
/// wait meanwhile, in a queue that has an end.
const TIMEOUTS: u32 = 3;

/// Who listens to the daemon itself.
#[derive(Debug, Default)]
pub struct Own {
    lines: Option<SdkLoggerProvider>,
    spans: Option<SdkTracerProvider>,
}

/// Why the daemon's own telemetry cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum OwnError {
    #[error(transparent)]
    Sender(#[from] SenderError),
    #[error("the daemon's own telemetry cannot be sent: {0}")]
    Exporter(#[from] ExporterBuildError),
}

impl Own {
    /// To be called within the runtime that is to send.
    ///
    /// # Errors
    /// When a certificate cannot be read, for instance.
    pub fn new(
        settings: &OtlpSettings,
        instance: &str,
        telemetry: &Arc<Telemetry>,
    ) -> Result<Self, OwnError> {
        let of = resource::of_exporter(&settings.resource, instance);
        let told: Vec<KeyValue> = of
            .attributes
            .iter()
            .filter_map(|attribute| {
                let value = resource::text_of(&of, &attribute.key)?;
                Some(KeyValue::new(attribute.key.clone(), value.to_owned()))
            })
            .collect();
        let of = Resource::builder_empty().with_attributes(told).build();
        let mut own = Self::default();
        if let Some(logs) = settings.logs.as_ref().filter(|_| settings.own_logs) {
            let exporter = LogExporter::builder()
                .with_http()
                .with_protocol(Protocol::HttpBinary)
                .with_endpoint(&logs.destination.endpoint)
                // Trying again is up to the delivery.
                .with_retry_policy(RetryPolicy::disabled())
                .with_http_client(Delivery::new(Signal::Logs, &logs.destination, telemetry)?)
                .build()?;
            let provider = SdkLoggerProvider::builder().with_resource(of.clone());
            let provider = provider.with_log_processor(Plain).with_batch_exporter(exporter);
            own.lines = Some(provider.build());
        }
        if let Some(traces) = settings.traces.as_ref().filter(|_| settings.own_traces) {
            let exporter = SpanExporter::builder()
                .with_http()
                .with_protocol(Protocol::HttpBinary)
                .with_endpoint(&traces.destination.endpoint)
                // Trying again is up to the delivery.
                .with_retry_policy(RetryPolicy::disabled())
                .with_http_client(Delivery::new(Signal::Traces, &traces.destination, telemetry)?)
                .build()?;
            let provider = SdkTracerProvider::builder().with_resource(of);
            own.spans = Some(provider.with_batch_exporter(exporter).build());
        }
        Ok(own)
    }

    /// What log lines from `level` on, and spans, are handed to.
    pub fn listeners(&self, level: &str) -> Result<Vec<Listener>, LoggingError> {
        let mut listeners = Vec::new();
        if let Some(provider) = &self.lines {
            listeners.push(listen_to_lines(level, OpenTelemetryTracingBridge::new(provider))?);
        }
        if let Some(provider) = &self.spans {
            let scope = InstrumentationScope::builder(resource::SERVICE_NAME)
                .with_version(env!("CARGO_PKG_VERSION"))
                .build();
            let layer = tracing_opentelemetry::layer()
                .with_tracer(provider.tracer_with_scope(scope))
                // Where in the source a span begins helps nobody.
                .with_location(false)
                .with_threads(false)
                .with_target(false)
                .with_tracked_inactivity(false);
            listeners.push(listen_to_spans(layer));
        }
        Ok(listeners)
    }

    /// Sends what is still to be sent. Blocks.
    pub fn end(&self, within: Duration) {
        // What does not get through in time is lost, as the rest of a log
        // whose reader went away.
        if let Some(provider) = &self.lines {
            let _ = provider.shutdown_with_timeout(within);
        }
        if let Some(provider) = &self.spans {
            let _ = provider.shutdown_with_timeout(within);
        }
    }
}

/// A line as a record without what `tracing` makes of its place in the source:
/// a name of the event that changes with each release.
#[derive(Debug)]
struct Plain;

impl LogProcessor for Plain {
    fn emit(&self, record: &mut SdkLogRecord, _: &InstrumentationScope) {
        record.set_event_name("");
        // It is observed as it happens.
        if let Some(at) = record.observed_timestamp() {
            record.set_timestamp(at);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// What the SDK's exporters take for an HTTP client. It looks at nothing but
/// the body: where it goes, with which headers, over which protocol and how
/// often is the destination's, as for all other telemetry.
#[derive(Debug)]
struct Delivery {
    sender: Arc<Sender>,
    patience: Duration,
    /// The SDK exports from a thread of its own.
    runtime: Handle,
}

impl Delivery {
    fn new(
        signal: Signal,
        destination: &Destination,
        telemetry: &Arc<Telemetry>,
    ) -> Result<Self, SenderError> {
        let sender = Sender::new(signal, destination, Arc::clone(telemetry))?;
        let patience = destination.timeout * TIMEOUTS;
        Ok(Self { sender: Arc::new(sender), patience, runtime: Handle::current() })
    }
}

#[async_trait::async_trait]
impl HttpClient for Delivery {
    async fn send_bytes(&self, request: HttpRequest<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let body = request.into_body();
        let request = Request { items: items(self.sender.signal(), &body)?, body };
        let (sender, until) = (Arc::clone(&self.sender), Instant::now() + self.patience);
        let sent = self.runtime.spawn(async move { sender.send(&request, until).await }).await?;
        match sent {
            Sent::Accepted { .. } => Ok(Response::new(Bytes::new())),
            // The sender has said why, and counted it.
            Sent::Refused => Err("refused".into()),
            Sent::GivenUp => Err("given up".into()),
        }
    }
}

/// How many spans or log records there are.
fn items(signal: Signal, body: &Bytes) -> Result<u64, prost::DecodeError> {
    let count = match signal {
        Signal::Traces => {
            let request = ExportTraceServiceRequest::decode(&**body)?;
            let scopes = request.resource_spans.iter().flat_map(|resource| &resource.scope_spans);
            scopes.map(|scope| scope.spans.len()).sum::<usize>()
        }
        Signal::Logs => {
            let request = ExportLogsServiceRequest::decode(&**body)?;
            let scopes = request.resource_logs.iter().flat_map(|resource| &resource.scope_logs);
            scopes.map(|scope| scope.log_records.len()).sum()
        }
        Signal::Metrics => 0,
    };
    Ok(count as u64)
}
