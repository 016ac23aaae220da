//! What a back end answers, whichever way it came.

use std::time::Duration;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceResponse;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceResponse;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message;

use crate::config::otlp::Signal;

/// The outcome of one attempt.
#[derive(Debug)]
pub(super) enum Answer {
    Taken(Taken),
    Failed(Failure),
}

/// The request arrived.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    /// Items that were not taken.
    pub(super) rejected: u64,
    /// What the back end says about it, or what is wrong with its answer;
    /// empty where all is well.
    pub(super) said: String,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) reason: Reason,
    pub(super) again: Again,
    /// Without secrets.
    pub(super) message: String,
}

impl Failure {
    /// No answer came. `port`: what its number says of the protocol; `stale`:
    /// why an old client was used.
    pub(super) fn unreachable(cause: &str, port: Option<&str>, stale: Option<String>) -> Self {
        let certificate = cause.contains("certificate").then_some(
            "give the authority that signed the server's certificate as tls_config.ca_file \
             (OTEL_EXPORTER_OTLP_CERTIFICATE)",
        );
        let mut message = format!("no answer: {cause}");
        if let Some(hint) = certificate.or(port) {
            message = format!("{message}; {hint}");
        }
        if let Some(why) = stale {
            message = format!("{message}; and {why}");
        }
        Self { reason: Reason::Unreachable, again: Again::Backoff, message }
    }
}

/// What a back end answered, with what there is to say about it.
pub(super) fn answered(status: &str, parts: [&str; 2]) -> String {
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    parts.fold(format!("answered {status}"), |message, part| format!("{message}: {part}"))
}

/// The classes that are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    Unreachable,
    Timeout,
    Unavailable,
    Unauthorized,
    TooLarge,
    Refused,
    Settings,
}

impl Reason {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Timeout => "timeout",
            Self::Unavailable => "unavailable",
            Self::Unauthorized => "unauthorized",
            Self::TooLarge => "too_large",
            Self::Refused => "refused",
            Self::Settings => "settings",
        }
    }
}

/// Whether the same request may be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    Never,
    /// When we think fit.
    Backoff,
    /// Not sooner, as the back end asks.
    After(Duration),
}

/// A response message of a signal. `None` where it is none.
pub(super) fn response(signal: Signal, body: &[u8]) -> Option<Taken> {
    let (rejected, said) = match signal {
        Signal::Metrics => ExportMetricsServiceResponse::decode(body)
            .ok()?
            .partial_success
            .map(|partial| (partial.rejected_data_points, partial.error_message)),
        Signal::Traces => ExportTraceServiceResponse::decode(body)
            .ok()?
            .partial_success
            .map(|partial| (partial.rejected_spans, partial.error_message)),
        Signal::Logs => ExportLogsServiceResponse::decode(body)
            .ok()?
            .partial_success
            .map(|partial| (partial.rejected_log_records, partial.error_message)),
    }
    .unwrap_or_default();
    Some(Taken { rejected: u64::try_from(rejected).unwrap_or(0), said })
}

/// The same as JSON, which some answer whatever they were asked.
pub(super) fn json_response(signal: Signal, body: &[u8]) -> Option<Taken> {
    let answer: serde_json::Value = serde_json::from_slice(body).ok()?;
    let partial = &answer.as_object()?.get("partialSuccess");
    let Some(partial) = partial else { return Some(Taken::default()) };
    let rejected = &partial[match signal {
        Signal::Metrics => "rejectedDataPoints",
        Signal::Traces => "rejectedSpans",
        Signal::Logs => "rejectedLogRecords",
    }];
    // JSON of protobuf writes 64-bit numbers as texts.
    let rejected = rejected.as_u64().or_else(|| rejected.as_str()?.parse().ok()).unwrap_or(0);
    let said = partial["errorMessage"].as_str().unwrap_or_default().to_owned();
    Some(Taken { rejected, said })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partial_success_of_each_signal() {
        // Field 1: a message with the number 3 in its field 1, "no" in 2.
        let body = [0x0a, 0x06, 0x08, 0x03, 0x12, 0x02, b'n', b'o'];
        let expected = Some(Taken { rejected: 3, said: "no".to_owned() });
        for signal in Signal::ALL {
            assert_eq!(response(signal, &body), expected);
            assert_eq!(response(signal, &[]), Some(Taken::default()));
            assert_eq!(response(signal, b"<html>"), None);
        }
        // A number below zero is nonsense, not many.
        let body = [&[0x0a, 0x0b, 0x08][..], &[0xff; 9], &[0x01]].concat();
        assert_eq!(response(Signal::Logs, &body), Some(Taken::default()));
    }

    #[test]
    fn every_reason_has_its_series() {
        let words = [
            Reason::Unreachable,
            Reason::Timeout,
            Reason::Unavailable,
            Reason::Unauthorized,
            Reason::TooLarge,
            Reason::Refused,
            Reason::Settings,
        ];
        assert_eq!(words.map(Reason::as_str), crate::telemetry::OTLP_FAILURES);
    }

    #[test]
    fn answers_in_json() {
        let body = br#"{"partialSuccess":{"rejectedSpans":"2","errorMessage":"old"}}"#;
        let expected = Some(Taken { rejected: 2, said: "old".to_owned() });
        assert_eq!(json_response(Signal::Traces, body), expected);
        assert_eq!(json_response(Signal::Traces, b"{}"), Some(Taken::default()));
        let body = br#"{"partialSuccess":{}}"#;
        assert_eq!(json_response(Signal::Traces, body), Some(Taken::default()));
        assert_eq!(json_response(Signal::Traces, b"\"fine\""), None);
    }
}
