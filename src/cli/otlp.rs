//! What is sent by OTLP: the flags of it, and how `check-config` says it.

use std::io::{self, Write};

use anyhow::anyhow;
use clap::Args;

use crate::config::Secret;
use crate::config::otlp::{
    Compression, Destination, Otlp, OtlpSettings, Protocol, Resolved, Sampling, Temporality,
};

/// Where it goes.
#[derive(Debug, Clone, Args)]
pub(super) struct OtlpFlags {
    /// Where metrics, traces and logs are sent by OTLP, as otlp.endpoint of
    /// the file; OTEL_EXPORTER_OTLP_* are read too [default: not sent]
    // A value that may hold a password: shown by nothing.
    #[arg(long = "otlp.endpoint", value_name = "URL", value_parser = secret)]
    endpoint: Option<Secret>,
    /// http/protobuf or grpc [default: http/protobuf]
    #[arg(long = "otlp.protocol", value_name = "PROTOCOL", value_parser = secret)]
    protocol: Option<Secret>,
}

#[expect(clippy::unnecessary_wraps, reason = "the parser of a flag may fail")]
fn secret(text: &str) -> Result<Secret, std::convert::Infallible> {
    Ok(Secret::new(text))
}

impl OtlpFlags {
    /// Lays them over the file's keys of the same names.
    pub(super) fn add_to(&self, otlp: &mut Otlp) -> anyhow::Result<()> {
        if let Some(endpoint) = &self.endpoint {
            otlp.endpoint = Some(endpoint.expose().to_owned());
        }
        if let Some(protocol) = &self.protocol {
            let known = [Protocol::HttpProtobuf, Protocol::Grpc];
            let found = known.into_iter().find(|known| known.as_str() == protocol.expose());
            otlp.protocol =
                Some(found.ok_or_else(|| anyhow!("--otlp.protocol is http/protobuf or grpc"))?);
        }
        Ok(())
    }
}

/// What goes where, without a secret.
pub(super) fn explain(out: &mut impl Write, resolved: &Resolved) -> io::Result<()> {
    let OtlpSettings { metrics, traces, logs, .. } = &resolved.settings;
    if let Some(metrics) = metrics {
        let temporality = match metrics.temporality {
            Temporality::Cumulative => "cumulative",
            Temporality::Delta => "delta",
        };
        let every = humantime::format_duration(metrics.interval);
        let to = means(&metrics.destination);
        writeln!(out, "  OTLP: metrics every {every}, {temporality}, to {to}")?;
    }
    if let Some(traces) = traces {
        let kept = kept(&traces.sampling);
        let age = humantime::format_duration(traces.max_age);
        let to = means(&traces.destination);
        writeln!(out, "  OTLP: {kept} up to {age} after their end as traces, to {to}")?;
    }
    if let Some(logs) = logs {
        let age = humantime::format_duration(logs.max_age);
        let to = means(&logs.destination);
        writeln!(out, "  OTLP: findings up to {age} after the end of their run as logs, to {to}")?;
    }
    let own: Vec<&str> = [
        (resolved.settings.own_logs, "log lines, with logs"),
        (resolved.settings.own_traces, "spans, with traces"),
    ]
    .into_iter()
    .filter_map(|(sent, what)| sent.then_some(what))
    .collect();
    if !own.is_empty() {
        writeln!(out, "  OTLP: its own {}", own.join("; its own "))?;
    }
    for warning in &resolved.warnings {
        writeln!(out, "  OTLP: environment: {warning}")?;
    }
    Ok(())
}

fn kept(sampling: &Sampling) -> String {
    if sampling.ratio >= 1.0 {
        return "all runs".to_owned();
    }
    let mut kept = vec![format!("{}% of runs", sampling.ratio * 100.0)];
    if sampling.keep_failed {
        kept.push("all that did not end well".to_owned());
    }
    if let Some(longer) = sampling.keep_longer_than {
        kept.push(format!("all longer than {}", humantime::format_duration(longer)));
    }
    kept.join(", ") + if kept.len() > 1 { "," } else { "" }
}

fn means(to: &Destination) -> String {
    let mut said = vec![to.protocol.as_str().to_owned()];
    if to.compression == Compression::Gzip {
        said.push("gzip".to_owned());
    }
    let names: Vec<&str> = to
        .headers
        .iter()
        .map(|(name, _)| name.as_str())
        .chain(to.header_files.iter().map(|(name, _)| name.as_str()))
        .collect();
    if !names.is_empty() {
        said.push(format!("with {}", names.join(", ")));
    }
    if to.endpoint.starts_with("https:") {
        said.push(match (&to.tls.ca_file, to.tls.insecure_skip_verify) {
            (_, true) => "TLS, whoever answers".to_owned(),
            (Some(ca), _) => format!("TLS, trusting {}", ca.display()),
            (None, _) => "TLS".to_owned(),
        });
        if let Some(certificate) = &to.tls.cert_file {
            said.push(format!("as {}", certificate.display()));
        }
    }
    format!("{} ({})", to.endpoint, said.join(", "))
}
