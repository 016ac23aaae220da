//! The key `otlp` of the configuration file. Names are those of
//! OpenTelemetry's own configuration and of the Collector's exporters where
//! they have one, those of Prometheus for TLS.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::layer::{Said, Written};
use super::settings::{Compression, Protocol, Temporality};
use crate::config::{Secret, Size, Span, TlsConfig};

/// A section that says where telemetry goes: all of it, or one signal.
macro_rules! section_with_destination {
    ($(#[$about:meta])* $name:ident { $($(#[$field_about:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            /// `http://…` or `https://…`. For HTTP, `/v1/metrics` and the like
            /// are added to the one for all signals; one for a single signal
            /// is taken as it is.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub endpoint: Option<String>,
            /// `http/protobuf` or `grpc`.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub protocol: Option<Protocol>,
            /// Sent with every request. Values are taken for secrets.
            #[serde(skip_serializing_if = "BTreeMap::is_empty")]
            pub headers: BTreeMap<String, Secret>,
            /// Files with the values of more headers, read anew for each
            /// request; a line end after it is left out.
            #[serde(skip_serializing_if = "BTreeMap::is_empty")]
            pub header_files: BTreeMap<String, PathBuf>,
            /// Of one request; tries again come on top.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub timeout: Option<Span>,
            /// `none` or `gzip`.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub compression: Option<Compression>,
            /// For `https://`. Its files are read again when they change.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub tls_config: Option<TlsConfig>,
            /// The most that one request may have, before compression.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub request_size: Option<Size>,
            $($(#[$field_about])* pub $field: $type,)*
        }

        impl $name {
            pub(super) fn said(&self) -> Said {
                Said {
                    // Without a scheme it is refused, so nothing has to say
                    // what that means.
                    endpoint: self.endpoint.clone().map(|text| Written { text, bare: false }),
                    insecure: None,
                    protocol: self.protocol,
                    headers: self.headers.clone(),
                    header_files: self.header_files.clone(),
                    timeout: self.timeout.map(Span::get),
                    compression: self.compression,
                    tls: self.tls_config.clone(),
                    request_size: self.request_size.map(Size::bytes),
                }
            }
        }
    };
}

section_with_destination! {
    /// What is sent by OTLP, and where: nothing, unless an endpoint is given.
    Otlp {
        /// Put on every resource, the exporter's and each application's.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        resource_attributes: BTreeMap<String, String>,
        /// The exporter's own `service.name`; an application's is its name.
        #[serde(skip_serializing_if = "Option::is_none")]
        service_name: Option<String>,
        /// How long the end of the daemon waits for what is still to be sent.
        #[serde(skip_serializing_if = "Option::is_none")]
        shutdown_timeout: Option<Span>,
        metrics: OtlpMetrics,
        traces: OtlpTraces,
        logs: OtlpLogs,
        own: OtlpOwn,
    }
}

section_with_destination! {
    /// What `/metrics` shows, sent.
    OtlpMetrics {
        /// Whether it is sent: where an endpoint is given, if not said.
        #[serde(skip_serializing_if = "Option::is_none")]
        enabled: Option<bool>,
        /// How often.
        #[serde(skip_serializing_if = "Option::is_none")]
        interval: Option<Span>,
        /// After so long the points of one interval are given up for those of
        /// the next, where that is sooner than the next interval.
        #[serde(skip_serializing_if = "Option::is_none")]
        export_timeout: Option<Span>,
        /// `cumulative` or `delta`, of counters and histograms.
        #[serde(skip_serializing_if = "Option::is_none")]
        temporality: Option<Temporality>,
    }
}

section_with_destination! {
    /// Applications as traces.
    OtlpTraces {
        /// Whether they are sent: where an endpoint is given, if not said.
        #[serde(skip_serializing_if = "Option::is_none")]
        enabled: Option<bool>,
        /// Runs that ended longer ago are not sent.
        #[serde(skip_serializing_if = "Option::is_none")]
        max_age: Option<Span>,
        sampling: OtlpSampling,
        /// The slowest tasks of a stage attempt that get spans.
        #[serde(skip_serializing_if = "Option::is_none")]
        tasks_per_stage: Option<usize>,
        /// The most spans of one trace.
        #[serde(skip_serializing_if = "Option::is_none")]
        spans_per_trace: Option<usize>,
    }
}

section_with_destination! {
    /// New and cleared findings as log records.
    OtlpLogs {
        /// Whether they are sent: where an endpoint is given, if not said.
        #[serde(skip_serializing_if = "Option::is_none")]
        enabled: Option<bool>,
        /// Findings of runs that ended longer ago are not sent.
        #[serde(skip_serializing_if = "Option::is_none")]
        max_age: Option<Span>,
    }
}

/// Which runs become traces. All, unless something is said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OtlpSampling {
    /// Of all, chosen by trace id: 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Those that did not end well in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_failed: Option<bool>,
    /// Those that took longer in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_longer_than: Option<Span>,
}

/// The daemon's own telemetry, beside its metrics, which are always among
/// `metrics`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OtlpOwn {
    /// Its log lines, to where `logs` go.
    pub logs: bool,
    /// Spans of its work, to where `traces` go.
    pub traces: bool,
}
