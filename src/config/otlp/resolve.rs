//! Lays flags over the file over the environment over defaults, key by key.

use std::ffi::OsString;
use std::time::Duration;

use super::checks;
use super::endpoint::{self, Fault};
use super::environment::{self, Environment};
use super::file::Otlp;
use super::layer::{Layers, Place, Said};
use super::settings::{
    Compression, Destination, LogsSettings, MetricsSettings, OtlpResource, OtlpSettings, Protocol,
    Sampling, Signal, Temporality, TracesSettings,
};
use crate::config::{Size, Span, TlsConfig};

const TIMEOUT: Duration = Duration::from_secs(10);
/// Below the 4 MiB that gRPC servers take by default.
const REQUEST_SIZE: Size = Size::mib(3);
const INTERVAL: Duration = Duration::from_mins(1);
/// As far back as a History Server is read by default. Back ends refuse what
/// is much older: a trace that begins a week ago is in no block any more.
const TRACES_MAX_AGE: Duration = Duration::from_hours(24);
/// That of traces: a finding's record names its trace.
const LOGS_MAX_AGE: Duration = TRACES_MAX_AGE;
const TASKS_PER_STAGE: usize = 5;
const SPANS_PER_TRACE: usize = 10_000;
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// What flags, file and environment come to together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Resolved {
    pub settings: OtlpSettings,
    /// What the environment says and cannot be used, by the name of its
    /// variable.
    pub warnings: Vec<String>,
}

/// `file` with the flags already laid over it. `environment` gives a variable
/// by its name. An error is something that the file or a flag says and that
/// cannot be.
pub fn resolve(
    file: &Otlp,
    environment: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Resolved, String> {
    checks::file(file)?;
    let environment = environment::read(environment);
    let mut merge = Merge {
        general: file.said(),
        signals: [file.metrics.said(), file.traces.said(), file.logs.said()],
        enabled: [file.metrics.enabled, file.traces.enabled, file.logs.enabled],
        warnings: environment.warnings.clone(),
        environment: &environment,
        tls_used: false,
    };
    let mut settings = OtlpSettings {
        metrics: merge.destination(Signal::Metrics)?.map(|to| metrics(file, &environment, to)),
        traces: merge.destination(Signal::Traces)?.map(|to| traces(file, &environment, to)),
        logs: merge.destination(Signal::Logs)?.map(|destination| LogsSettings {
            destination,
            max_age: file.logs.max_age.map_or(LOGS_MAX_AGE, Span::get),
        }),
        resource: resource(file, &environment),
        own_logs: file.own.logs,
        own_traces: file.own.traces,
        shutdown_timeout: file.shutdown_timeout.map_or(SHUTDOWN_TIMEOUT, Span::get),
    };
    merge.unused_tls(&settings)?;
    let Merge { mut warnings, enabled, .. } = merge;
    for (signal, own, sent) in [
        (Signal::Logs, &mut settings.own_logs, settings.logs.is_some()),
        (Signal::Traces, &mut settings.own_traces, settings.traces.is_some()),
    ] {
        if *own && !sent {
            let name = signal.as_str();
            let place = signal as usize;
            if !environment.disabled && environment.exporter[place] != Some(false)
                || enabled[place] == Some(false)
            {
                return Err(format!(
                    "otlp.own.{name} go where otlp.{name} go, which are not sent: give \
                     otlp.endpoint or otlp.{name}.endpoint"
                ));
            }
            warnings.push(format!("otlp.own.{name} are not sent: the environment forbids it"));
            *own = false;
        }
    }
    Ok(Resolved { settings, warnings })
}

impl Otlp {
    /// What cannot be, whatever the environment of the daemon will say.
    pub fn validate(&self) -> Result<(), String> {
        checks::file(self)
    }
}

struct Merge<'a> {
    general: Said,
    signals: [Said; 3],
    enabled: [Option<bool>; 3],
    environment: &'a Environment,
    warnings: Vec<String>,
    /// Whether some signal goes over TLS with `otlp.tls_config`.
    tls_used: bool,
}

impl Merge<'_> {
    fn is_sent(&mut self, signal: Signal, protocol: Protocol) -> bool {
        let place = signal as usize;
        let environment = self.environment;
        let in_file = self.general.endpoint.is_some() || self.signals[place].endpoint.is_some();
        let in_environment = [&environment.general, &environment.signals[place]]
            .into_iter()
            .filter_map(|said| said.endpoint.as_ref())
            // Ignored: as if it were not there.
            .any(|written| protocol == Protocol::Grpc || !written.bare);
        let sent = self.enabled[place]
            .or(environment.exporter[place])
            .unwrap_or(in_file || in_environment);
        if sent && environment.disabled {
            if self.enabled[place] == Some(true) || in_file {
                self.warnings.push(format!(
                    "OTEL_SDK_DISABLED is true: no {} are sent, although the configuration says \
                     where to",
                    signal.as_str()
                ));
            }
            return false;
        }
        sent
    }

    /// Where a signal goes; `None` where it is not sent.
    fn destination(&mut self, signal: Signal) -> Result<Option<Destination>, String> {
        let place = signal as usize;
        let environment = self.environment;
        let (general, own) = (self.general.clone(), self.signals[place].clone());
        let layers = Layers([
            (Place::FileSignal, &own),
            (Place::File, &general),
            (Place::EnvironmentSignal, &environment.signals[place]),
            (Place::Environment, &environment.general),
        ]);
        let protocol = layers.value(|said| said.protocol).unwrap_or(Protocol::HttpProtobuf);
        let sent = self.is_sent(signal, protocol);
        let endpoint = self.endpoint(signal, protocol, &layers)?;
        if !sent {
            return Ok(None);
        }
        let tls = self.tls(signal, protocol, &endpoint, &layers)?;
        let (headers, header_files) = layers.headers();
        Ok(Some(Destination {
            protocol,
            endpoint,
            headers,
            header_files,
            timeout: layers.value(|said| said.timeout).unwrap_or(TIMEOUT),
            compression: layers.value(|said| said.compression).unwrap_or(Compression::None),
            tls,
            request_size: layers.value(|said| said.request_size).unwrap_or(REQUEST_SIZE.bytes())
                as usize,
        }))
    }

    fn endpoint(
        &mut self,
        signal: Signal,
        protocol: Protocol,
        layers: &Layers<'_>,
    ) -> Result<String, String> {
        let insecure = layers.value(|said| said.insecure).unwrap_or(false);
        for (place, said) in &layers.0 {
            let Some(written) = &said.endpoint else { continue };
            let name = place.name(signal, "endpoint");
            if written.bare && protocol == Protocol::HttpProtobuf {
                self.warn(&format!("{name} {}: ignored", Fault::NoScheme.say()));
                continue;
            }
            // It was checked where it was read.
            let text = endpoint::with_scheme(&written.text, insecure);
            let mut url =
                endpoint::parse(&text).map_err(|fault| format!("{name} {}", fault.say()))?;
            if protocol == Protocol::Grpc && url.path() != "/" {
                if place.is_file() {
                    let says = layers.first(|said| said.protocol).map(|(place, _)| place);
                    let says = says.map(|place| place.name(signal, "protocol"));
                    return Err(format!(
                        "{name} {} (grpc is what {} says)",
                        Fault::Path.say(),
                        says.unwrap_or_default()
                    ));
                }
                self.warn(&format!("{name} has a path, which gRPC does not: left out"));
                url.set_path("/");
            }
            return endpoint::target(url, protocol, signal, place.is_general())
                .map_err(|fault| format!("{name} {}", fault.say()));
        }
        Ok(endpoint::default_target(protocol, signal))
    }

    fn tls(
        &mut self,
        signal: Signal,
        protocol: Protocol,
        endpoint: &str,
        layers: &Layers<'_>,
    ) -> Result<TlsConfig, String> {
        let secure = endpoint.starts_with("https:");
        let in_file = layers.first(|said| said.tls.as_ref());
        let Some((place, tls)) = in_file.filter(|(place, _)| place.is_file()) else {
            return Ok(self.environment_tls(signal, secure, layers));
        };
        let name = place.name(signal, "tls_config");
        if secure {
            self.tls_used |= place == Place::File;
        } else if place == Place::FileSignal {
            return Err(format!(
                "{name} belongs to an endpoint with https://, which that of {} is not",
                signal.as_str()
            ));
        }
        if tls.insecure_skip_verify && protocol == Protocol::Grpc && secure {
            return Err(format!(
                "{name}.insecure_skip_verify is not there for grpc, whose client always checks \
                 who answers: give the authority of the server's certificate as ca_file, or use \
                 http/protobuf"
            ));
        }
        Ok(tls.clone())
    }

    /// Each file for itself, as the specification has it.
    fn environment_tls(&mut self, signal: Signal, secure: bool, layers: &Layers<'_>) -> TlsConfig {
        let file = |key: fn(&TlsConfig) -> &Option<std::path::PathBuf>| {
            layers.first(|said| key(said.tls.as_ref()?).clone())
        };
        let (ca, certificate, key) =
            (file(|tls| &tls.ca_file), file(|tls| &tls.cert_file), file(|tls| &tls.key_file));
        if !secure {
            for (found, what) in
                [(&ca, "certificate"), (&certificate, "client_certificate"), (&key, "client_key")]
            {
                if let Some((place, _)) = found {
                    let name = place.name(signal, what);
                    self.warn(&format!("{name} is not used: the endpoint is not https://"));
                }
            }
            return TlsConfig::default();
        }
        let pair = match (certificate, key) {
            (Some((_, certificate)), Some((_, key))) => Some((certificate, key)),
            (Some((place, _)), None) => {
                let name = place.name(signal, "client_certificate");
                self.warn(&format!("{name} is ignored: its CLIENT_KEY is not given"));
                None
            }
            (None, Some((place, _))) => {
                let name = place.name(signal, "client_key");
                self.warn(&format!("{name} is ignored: its CLIENT_CERTIFICATE is not given"));
                None
            }
            (None, None) => None,
        };
        let (cert_file, key_file) = pair.unzip();
        TlsConfig { ca_file: ca.map(|(_, path)| path), cert_file, key_file, ..TlsConfig::default() }
    }

    /// Once: what holds for all signals would be said three times.
    fn warn(&mut self, text: &str) {
        if !self.warnings.iter().any(|said| said == text) {
            self.warnings.push(text.to_owned());
        }
    }

    fn unused_tls(&self, settings: &OtlpSettings) -> Result<(), String> {
        let something =
            settings.metrics.is_some() || settings.traces.is_some() || settings.logs.is_some();
        if something && self.general.tls.is_some() && !self.tls_used {
            return Err("otlp.tls_config belongs to an endpoint with https://, and none of those \
                        that it would be used for has it"
                .to_owned());
        }
        Ok(())
    }
}

impl Place {
    /// What a key is called there.
    fn name(self, signal: Signal, key: &str) -> String {
        let upper = |text: &str| text.to_ascii_uppercase();
        match self {
            Self::FileSignal => format!("otlp.{}.{key}", signal.as_str()),
            Self::File => format!("otlp.{key}"),
            Self::EnvironmentSignal => {
                format!("OTEL_EXPORTER_OTLP_{}_{}", upper(signal.as_str()), upper(key))
            }
            Self::Environment => format!("OTEL_EXPORTER_OTLP_{}", upper(key)),
        }
    }
}

fn metrics(file: &Otlp, environment: &Environment, destination: Destination) -> MetricsSettings {
    let said = &file.metrics;
    let interval = said.interval.map(Span::get).or(environment.interval);
    let interval = interval.unwrap_or(INTERVAL);
    let timeout = said.export_timeout.map(Span::get).or(environment.export_timeout);
    MetricsSettings {
        destination,
        interval,
        export_timeout: timeout.unwrap_or(interval).min(interval),
        temporality: said
            .temporality
            .or(environment.temporality)
            .unwrap_or(Temporality::Cumulative),
    }
}

fn traces(file: &Otlp, environment: &Environment, destination: Destination) -> TracesSettings {
    let said = &file.traces;
    // always_off: nothing, not even what failed.
    let nothing = said.sampling.ratio.is_none() && environment.ratio == Some(0.0);
    TracesSettings {
        destination,
        max_age: said.max_age.map_or(TRACES_MAX_AGE, Span::get),
        sampling: Sampling {
            ratio: said.sampling.ratio.or(environment.ratio).unwrap_or(1.0),
            keep_failed: said.sampling.keep_failed.unwrap_or(!nothing),
            keep_longer_than: said.sampling.keep_longer_than.map(Span::get),
        },
        tasks_per_stage: said.tasks_per_stage.unwrap_or(TASKS_PER_STAGE),
        spans_per_trace: said.spans_per_trace.unwrap_or(SPANS_PER_TRACE),
    }
}

fn resource(file: &Otlp, environment: &Environment) -> OtlpResource {
    let mut attributes = environment.resource.attributes.clone();
    attributes.extend(file.resource_attributes.clone());
    let named = attributes.remove("service.name");
    let service_name =
        file.service_name.clone().or(named).or_else(|| environment.resource.service_name.clone());
    OtlpResource { service_name, attributes }
}
