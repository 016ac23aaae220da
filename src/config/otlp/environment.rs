//! OpenTelemetry's environment variables, as its specification reads them:
//! empty is unset, words are in any case, times are milliseconds. What cannot
//! be used is ignored with a warning that names the variable, and never
//! repeats a value: whoever mixes variables up has a secret in the wrong one.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::checks::{self, LONGEST_SPAN};
use super::endpoint;
use super::layer::{Said, Written};
use super::list;
use super::settings::{Compression, OtlpResource, Protocol, Signal, Temporality};
use crate::config::{Secret, TlsConfig};

/// Everything that it says.
#[derive(Debug, Default)]
pub(super) struct Environment {
    /// `OTEL_SDK_DISABLED`
    pub(super) disabled: bool,
    pub(super) general: Said,
    pub(super) signals: [Said; 3],
    /// `OTEL_*_EXPORTER`: whether it names OTLP.
    pub(super) exporter: [Option<bool>; 3],
    pub(super) interval: Option<Duration>,
    pub(super) export_timeout: Option<Duration>,
    pub(super) temporality: Option<Temporality>,
    /// `OTEL_TRACES_SAMPLER`: the share of traces that is kept.
    pub(super) ratio: Option<f64>,
    pub(super) resource: OtlpResource,
    pub(super) warnings: Vec<String>,
}

pub(super) fn read(variables: &dyn Fn(&str) -> Option<OsString>) -> Environment {
    let reader = Reader { variables, warnings: RefCell::default() };
    let mut read = Environment {
        disabled: reader.boolean("OTEL_SDK_DISABLED").unwrap_or(false),
        general: reader.destination(""),
        signals: Signal::ALL.map(|signal| reader.destination(&upper(signal))),
        exporter: Signal::ALL.map(|signal| reader.exporter(signal)),
        interval: reader.millis("OTEL_METRIC_EXPORT_INTERVAL", Zero::Refused),
        export_timeout: reader.millis("OTEL_METRIC_EXPORT_TIMEOUT", Zero::NoLimit),
        temporality: reader.word("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", |word| {
            Some(match word {
                // What we send of counters and histograms stands as it is
                // read, like an asynchronous instrument: for those lowmemory
                // means cumulative.
                "cumulative" | "lowmemory" => Temporality::Cumulative,
                "delta" => Temporality::Delta,
                _ => return None,
            })
        }),
        ratio: reader.sampler(),
        resource: reader.resource(),
        warnings: Vec::new(),
    };
    reader.unsupported();
    read.warnings = reader.warnings.into_inner();
    read
}

/// `METRICS_`
fn upper(signal: Signal) -> String {
    format!("{}_", signal.as_str().to_ascii_uppercase())
}

/// What a time of 0 means.
#[derive(Clone, Copy)]
enum Zero {
    Refused,
    NoLimit,
}

struct Reader<'a> {
    variables: &'a dyn Fn(&str) -> Option<OsString>,
    warnings: RefCell<Vec<String>>,
}

impl Reader<'_> {
    fn warn(&self, name: &str, what: &str) {
        self.warnings.borrow_mut().push(format!("{name} {what}"));
    }

    fn text(&self, name: &str) -> Option<String> {
        let Ok(text) = (self.variables)(name)?.into_string() else {
            self.warn(name, "is not UTF-8: ignored");
            return None;
        };
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    fn boolean(&self, name: &str) -> Option<bool> {
        let text = self.text(name)?.to_ascii_lowercase();
        if text != "true" && text != "false" {
            self.warn(name, "is neither true nor false: taken for false");
        }
        Some(text == "true")
    }

    fn millis(&self, name: &str, zero: Zero) -> Option<Duration> {
        let number: Option<u64> = self.text(name)?.parse().ok();
        match (number, zero) {
            (Some(0), Zero::NoLimit) => Some(LONGEST_SPAN),
            (Some(millis), _) if millis > 0 => {
                Some(Duration::from_millis(millis).min(LONGEST_SPAN))
            }
            _ => {
                self.warn(name, "is not a number of milliseconds: ignored");
                None
            }
        }
    }

    /// A word of a closed list, `http/json` and the like not among them.
    fn word<T>(&self, name: &str, known: impl Fn(&str) -> Option<T>) -> Option<T> {
        let found = known(&self.text(name)?.to_ascii_lowercase());
        if found.is_none() {
            self.warn(name, "is no word that is known here: ignored");
        }
        found
    }

    fn destination(&self, signal: &str) -> Said {
        let name = |what: &str| format!("OTEL_EXPORTER_OTLP_{signal}{what}");
        Said {
            endpoint: self.endpoint(&name("ENDPOINT")),
            insecure: self.boolean(&name("INSECURE")),
            protocol: self.protocol(&name("PROTOCOL")),
            headers: self.headers(&name("HEADERS")),
            header_files: BTreeMap::new(),
            timeout: self.millis(&name("TIMEOUT"), Zero::NoLimit),
            compression: self.word(&name("COMPRESSION"), |word| {
                Some(match word {
                    "none" => Compression::None,
                    "gzip" => Compression::Gzip,
                    _ => return None,
                })
            }),
            tls: self.tls(&name),
            request_size: None,
        }
    }

    /// Checked as far as it can be before the protocol is known: without a
    /// scheme it can only be meant for gRPC.
    fn endpoint(&self, name: &str) -> Option<Written> {
        let text = self.text(name)?;
        let bare = !text.contains("://");
        match endpoint::parse(&endpoint::with_scheme(&text, false)) {
            Ok(_) => Some(Written { text, bare }),
            Err(fault) => {
                self.warn(name, &format!("{}: ignored", fault.say()));
                None
            }
        }
    }

    fn protocol(&self, name: &str) -> Option<Protocol> {
        match &*self.text(name)?.to_ascii_lowercase() {
            "grpc" => Some(Protocol::Grpc),
            "http/protobuf" => Some(Protocol::HttpProtobuf),
            "http/json" => {
                self.warn(name, "is http/json, which is not spoken here: ignored");
                None
            }
            _ => {
                self.warn(name, "is neither grpc nor http/protobuf: ignored");
                None
            }
        }
    }

    fn headers(&self, name: &str) -> BTreeMap<String, Secret> {
        let mut found = BTreeMap::new();
        for entry in self.text(name).iter().flat_map(|text| list::headers(text)) {
            match entry {
                Ok((header, value)) => {
                    let value = Secret::new(value);
                    match checks::header(&header, Some(&value)) {
                        Ok(()) => {
                            found.insert(header.to_ascii_lowercase(), value);
                        }
                        Err(why) => self.warn(name, &format!("{why}: this header is left out")),
                    }
                }
                Err(number) => self.warn(
                    name,
                    &format!("has no = in entry {number} (name=value,name=value): left out"),
                ),
            }
        }
        found
    }

    fn tls(&self, name: &dyn Fn(&str) -> String) -> Option<TlsConfig> {
        let file = |what: &str| self.text(&name(what)).map(PathBuf::from);
        let tls = TlsConfig {
            ca_file: file("CERTIFICATE"),
            cert_file: file("CLIENT_CERTIFICATE"),
            key_file: file("CLIENT_KEY"),
            ..TlsConfig::default()
        };
        Some(tls).filter(|tls| *tls != TlsConfig::default())
    }

    /// A list is allowed by the specification; OTLP in it is all we have.
    fn exporter(&self, signal: Signal) -> Option<bool> {
        let name = format!("OTEL_{}EXPORTER", upper(signal));
        let text = self.text(&name)?.to_ascii_lowercase();
        let mut found = None;
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match (word, signal) {
                ("otlp", _) => found = Some(true),
                ("none", _) | ("prometheus", Signal::Metrics) => {
                    found = found.or(Some(false));
                }
                ("console" | "logging", _) | ("zipkin", Signal::Traces) => {
                    self.warn(&name, "names an exporter that is not there, only otlp and none are");
                    found = found.or(Some(false));
                }
                _ => self.warn(&name, "is neither otlp nor none: ignored"),
            }
        }
        found
    }

    fn sampler(&self) -> Option<f64> {
        const NAME: &str = "OTEL_TRACES_SAMPLER";
        match &*self.text(NAME)?.to_ascii_lowercase() {
            "always_on" | "parentbased_always_on" => Some(1.0),
            "always_off" | "parentbased_always_off" => Some(0.0),
            "traceidratio" | "parentbased_traceidratio" => Some(self.sampler_ratio()),
            "jaeger_remote" | "parentbased_jaeger_remote" | "xray" => {
                self.warn(NAME, "names a sampler that asks a server, which is not there: ignored");
                None
            }
            _ => {
                self.warn(NAME, "is no sampler that is known here: ignored");
                None
            }
        }
    }

    fn sampler_ratio(&self) -> f64 {
        const NAME: &str = "OTEL_TRACES_SAMPLER_ARG";
        let Some(text) = self.text(NAME) else { return 1.0 };
        let ratio = text.parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
        ratio.unwrap_or_else(|| {
            self.warn(NAME, "is not a number from 0 to 1: ignored");
            1.0
        })
    }

    fn resource(&self) -> OtlpResource {
        const NAME: &str = "OTEL_RESOURCE_ATTRIBUTES";
        let mut resource = OtlpResource::default();
        if let Some(text) = self.text(NAME) {
            match list::attributes(&text) {
                Ok(attributes) => {
                    let attributes: BTreeMap<_, _> = attributes.into_iter().collect();
                    match checks::attributes(&attributes) {
                        Ok(()) => resource.attributes = attributes,
                        Err(why) => self.warn(NAME, &format!("{why}: all of it is ignored")),
                    }
                }
                Err(number) => self.warn(
                    NAME,
                    &format!(
                        "is wrong in entry {number} (key=value,key=value with %2C for a comma \
                         and %3D for =): all of it is ignored"
                    ),
                ),
            }
        }
        let named = resource.attributes.remove("service.name").filter(|name| !name.is_empty());
        resource.service_name = self.text("OTEL_SERVICE_NAME").or(named);
        resource
    }

    /// Variables that change much where they are heeded.
    fn unsupported(&self) {
        const HISTOGRAM: &str = "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION";
        if self.text("OTEL_CONFIG_FILE").is_some() {
            self.warn("OTEL_CONFIG_FILE", "is not read: give --config.file with the key otlp");
        }
        if self
            .text(HISTOGRAM)
            .is_some_and(|text| !text.eq_ignore_ascii_case("explicit_bucket_histogram"))
        {
            self.warn(HISTOGRAM, "cannot be heeded: histograms have explicit bounds");
        }
    }
}
