//! What can be said of OTLP and cannot be done, by the place of the file that
//! says it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::endpoint;
use super::file::Otlp;
use super::layer::Said;
use crate::config::{Secret, Size, Span};

/// Stands for "no limit".
pub(super) const LONGEST_SPAN: Duration = Duration::from_millis(u32::MAX as u64);

/// Put on each resource, of which a request may have thousands.
const ATTRIBUTES: usize = 64;
const ATTRIBUTE_LENGTH: usize = 1_024;

/// Below it a single resource with its attributes would not fit.
const LEAST_REQUEST: Size = Size::kib(64);
/// What the specification recommends as the most a server takes.
const LARGEST_REQUEST: Size = Size::mib(64);

/// Headers that the client sets itself.
const RESERVED: [&str; 13] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];

/// Whether this header can be sent. Only the name is repeated, and only where
/// it is one.
pub(super) fn header(name: &str, value: Option<&Secret>) -> Result<(), String> {
    if http::HeaderName::from_bytes(name.as_bytes()).is_err() {
        return Err("has something that is not the name of a header before a =".to_owned());
    }
    let lower = name.to_ascii_lowercase();
    if RESERVED.contains(&&*lower) || lower.starts_with("grpc-") {
        return Err(format!("cannot set {name}, which spark-exporter sets itself"));
    }
    if lower.ends_with("-bin") {
        return Err(format!("cannot set {name}: names that end in -bin are binary in gRPC"));
    }
    if value.is_some_and(|value| http::HeaderValue::from_str(value.expose()).is_err()) {
        return Err(format!("gives {name} a value that is not one line of visible text"));
    }
    Ok(())
}

/// Whether these can be put on each resource.
pub(super) fn attributes(attributes: &BTreeMap<String, String>) -> Result<(), String> {
    if attributes.len() > ATTRIBUTES {
        return Err(format!("has {} attributes, more than {ATTRIBUTES}", attributes.len()));
    }
    for (place, (key, value)) in attributes.iter().enumerate() {
        if key.is_empty() || key.len() > ATTRIBUTE_LENGTH || value.len() > ATTRIBUTE_LENGTH {
            return Err(format!(
                "has an attribute (number {}, by name) whose name is empty, or name or value \
                 longer than {ATTRIBUTE_LENGTH} bytes",
                place + 1
            ));
        }
    }
    Ok(())
}

/// What contradicts itself in the file whatever the environment says.
pub(super) fn file(otlp: &Otlp) -> Result<(), String> {
    let sections = [
        ("otlp", otlp.said()),
        ("otlp.metrics", otlp.metrics.said()),
        ("otlp.traces", otlp.traces.said()),
        ("otlp.logs", otlp.logs.said()),
    ];
    for (section, said) in &sections {
        destination(section, said)?;
    }
    attributes(&otlp.resource_attributes)
        .map_err(|why| format!("otlp.resource_attributes {why}"))?;
    if otlp.service_name.as_ref().is_some_and(|name| name.trim().is_empty()) {
        return Err("otlp.service_name is empty: leave it out".to_owned());
    }
    if otlp.service_name.is_some() && otlp.resource_attributes.contains_key("service.name") {
        return Err("otlp.service_name and service.name of otlp.resource_attributes exclude each \
                    other; leave one out"
            .to_owned());
    }
    for (key, span, least) in [
        ("shutdown_timeout", otlp.shutdown_timeout, Span::millis(0)),
        ("metrics.interval", otlp.metrics.interval, Span::seconds(1)),
        ("metrics.export_timeout", otlp.metrics.export_timeout, Span::millis(1)),
        ("traces.max_age", otlp.traces.max_age, Span::seconds(60)),
        ("logs.max_age", otlp.logs.max_age, Span::seconds(60)),
    ] {
        if let Some(span) = span.filter(|span| *span < least) {
            return Err(format!("otlp.{key} is {span}: the least is {least}"));
        }
    }
    let traces = &otlp.traces;
    if traces.sampling.ratio.is_some_and(|ratio| !(0.0..=1.0).contains(&ratio)) {
        return Err("otlp.traces.sampling.ratio is a number from 0 to 1".to_owned());
    }
    if traces.tasks_per_stage.is_some_and(|tasks| tasks > 1_000) {
        return Err(
            "otlp.traces.tasks_per_stage is 0 to 1000: more belongs into the event log".to_owned()
        );
    }
    if traces.spans_per_trace.is_some_and(|spans| !(10..=1_000_000).contains(&spans)) {
        return Err("otlp.traces.spans_per_trace is 10 to 1000000".to_owned());
    }
    Ok(())
}

fn destination(section: &str, said: &Said) -> Result<(), String> {
    if let Some(written) = &said.endpoint {
        endpoint::parse(&written.text)
            .map_err(|fault| format!("{section}.endpoint {}", fault.say()))?;
    }
    for (name, value) in &said.headers {
        header(name, Some(value)).map_err(|why| format!("{section}.headers {why}"))?;
    }
    for (name, path) in &said.header_files {
        header(name, None).map_err(|why| format!("{section}.header_files {why}"))?;
        if said.headers.keys().any(|other| other.eq_ignore_ascii_case(name)) {
            return Err(format!(
                "{section}.headers and {section}.header_files both have {name}; leave one out"
            ));
        }
        if path.as_path() == Path::new("") {
            return Err(format!("{section}.header_files.{name} is empty: name a file"));
        }
    }
    twice(said.headers.keys()).map_err(|name| format!("{section}.headers has {name} twice"))?;
    twice(said.header_files.keys())
        .map_err(|name| format!("{section}.header_files has {name} twice"))?;
    if said.timeout.is_some_and(|timeout| timeout.is_zero()) {
        return Err(format!("{section}.timeout is 0s: nothing could be sent"));
    }
    if let Some(tls) = &said.tls {
        tls.validate().map_err(|why| format!("{section}.{why}"))?;
    }
    if let Some(size) = said.request_size
        && !(LEAST_REQUEST.bytes()..=LARGEST_REQUEST.bytes()).contains(&size)
    {
        return Err(format!(
            "{section}.request_size is {LEAST_REQUEST} to {LARGEST_REQUEST}, before compression"
        ));
    }
    Ok(())
}

/// Names that are the same but for their case.
fn twice<'a>(names: impl Iterator<Item = &'a String>) -> Result<(), &'a str> {
    let mut seen = std::collections::BTreeSet::new();
    for name in names {
        if !seen.insert(name.to_ascii_lowercase()) {
            return Err(name);
        }
    }
    Ok(())
}
