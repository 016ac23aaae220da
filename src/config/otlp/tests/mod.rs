//! Each variable, each key, and which of them counts.

mod wrong;

use std::ffi::OsString;
use std::time::Duration;

use super::*;
use crate::config::Config;

type Variables<'a> = &'a [(&'a str, &'a str)];

fn read(yaml: &str, variables: Variables<'_>) -> Result<Resolved, String> {
    let text = format!("otlp: {yaml}\n");
    let config = Config::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
    resolve(&config.otlp, &|name| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| OsString::from(value))
    })
}

/// Without anything that is warned of.
fn settings(yaml: &str, variables: Variables<'_>) -> OtlpSettings {
    let resolved = read(yaml, variables).unwrap_or_else(|error| panic!("{yaml}: {error}"));
    assert_eq!(resolved.warnings, Vec::<String>::new(), "{yaml} {variables:?}");
    resolved.settings
}

fn destinations(settings: &OtlpSettings) -> [Option<&Destination>; 3] {
    [
        settings.metrics.as_ref().map(|metrics| &metrics.destination),
        settings.traces.as_ref().map(|traces| &traces.destination),
        settings.logs.as_ref().map(|logs| &logs.destination),
    ]
}

fn endpoints(settings: &OtlpSettings) -> [Option<&str>; 3] {
    destinations(settings).map(|to| to.map(|to| to.endpoint.as_str()))
}

fn of_traces(settings: OtlpSettings) -> Destination {
    settings.traces.expect("traces").destination
}

const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");
const SECURE: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector:4318");

#[test]
fn nothing_is_sent_unless_somebody_says_so() {
    for variables in [
        &[] as Variables<'_>,
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", "")],
        &[("OTEL_EXPORTER_OTLP_HEADERS", "a=b"), ("OTEL_SERVICE_NAME", "x")],
        &[("OTEL_TRACES_EXPORTER", "none"), ENDPOINT, ("OTEL_SDK_DISABLED", "true")],
    ] {
        let settings = settings("{}", variables);
        assert_eq!(endpoints(&settings), [None; 3], "{variables:?}");
    }
}

#[test]
fn endpoints_by_place() {
    let metrics = "http://collector:4318/v1/metrics";
    let traces = "http://collector:4318/v1/traces";
    let logs = "http://collector:4318/v1/logs";
    let all = [Some(metrics), Some(traces), Some(logs)];
    let cases: &[(&str, Variables<'_>, [Option<&str>; 3])] = &[
        ("{endpoint: 'http://collector:4318'}", &[], all),
        ("{endpoint: 'http://collector:4318/'}", &[], all),
        ("{}", &[ENDPOINT], all),
        ("{}", &[("OTEL_EXPORTER_OTLP_ENDPOINT", "HTTP://collector:4318")], all),
        // Each signal by itself, as it is.
        ("{traces: {endpoint: 'http://t:1/x'}}", &[], [None, Some("http://t:1/x"), None]),
        (
            "{}",
            &[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t:1")],
            [None, Some("http://t:1/"), None],
        ),
        (
            "{}",
            &[ENDPOINT, ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "https://m/v1/metrics/")],
            [Some("https://m/v1/metrics/"), Some(traces), Some(logs)],
        ),
        // A prefix of the general one stays.
        (
            "{}",
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c/otlp/")],
            [
                Some("http://c/otlp/v1/metrics"),
                Some("http://c/otlp/v1/traces"),
                Some("http://c/otlp/v1/logs"),
            ],
        ),
        // The file counts more than the environment, also where that says
        // something about the signal alone.
        (
            "{endpoint: 'http://collector:4318'}",
            &[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t:1")],
            all,
        ),
        // OpenTelemetry's own place where only the exporter is named.
        (
            "{}",
            &[("OTEL_LOGS_EXPORTER", "otlp")],
            [None, None, Some("http://localhost:4318/v1/logs")],
        ),
        (
            "{metrics: {enabled: true, protocol: grpc}}",
            &[],
            [Some("http://localhost:4317"), None, None],
        ),
        // What is not wanted is not sent.
        (
            "{endpoint: 'http://collector:4318', logs: {enabled: false}}",
            &[("OTEL_LOGS_EXPORTER", "otlp")],
            [Some(metrics), Some(traces), None],
        ),
        (
            "{endpoint: 'http://collector:4318', logs: {enabled: true}}",
            &[("OTEL_LOGS_EXPORTER", "none"), ("OTEL_TRACES_EXPORTER", "None")],
            [Some(metrics), None, Some(logs)],
        ),
        // Served for Prometheus they are in any case.
        (
            "{}",
            &[ENDPOINT, ("OTEL_METRICS_EXPORTER", "prometheus")],
            [None, Some(traces), Some(logs)],
        ),
        ("{}", &[ENDPOINT, ("OTEL_METRICS_EXPORTER", "prometheus,otlp")], all),
    ];
    for (yaml, variables, expected) in cases {
        assert_eq!(endpoints(&settings(yaml, variables)), *expected, "{yaml} {variables:?}");
    }
}

#[test]
fn grpc_endpoints() {
    let grpc = ("OTEL_EXPORTER_OTLP_PROTOCOL", "gRPC");
    let cases: &[(Variables<'_>, &str)] = &[
        (&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4317")], "http://c:4317"),
        (&[("OTEL_EXPORTER_OTLP_ENDPOINT", "c:4317")], "https://c:4317"),
        (
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", "c:4317"), ("OTEL_EXPORTER_OTLP_INSECURE", "True")],
            "http://c:4317",
        ),
        (
            &[
                ("OTEL_EXPORTER_OTLP_ENDPOINT", "c:4317"),
                ("OTEL_EXPORTER_OTLP_TRACES_INSECURE", "true"),
            ],
            "http://c:4317",
        ),
        (
            &[
                ("OTEL_EXPORTER_OTLP_ENDPOINT", "c:4317"),
                ("OTEL_EXPORTER_OTLP_TRACES_INSECURE", "false"),
                ("OTEL_EXPORTER_OTLP_INSECURE", "true"),
            ],
            "https://c:4317",
        ),
        // A scheme counts more.
        (
            &[
                ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://c:4317"),
                ("OTEL_EXPORTER_OTLP_INSECURE", "true"),
            ],
            "https://c:4317",
        ),
    ];
    for (variables, expected) in cases {
        let variables = [*variables, &[grpc]].concat();
        let to = of_traces(settings("{}", &variables));
        assert_eq!((to.endpoint.as_str(), to.protocol), (*expected, Protocol::Grpc));
    }
    let resolved =
        read("{}", &[grpc, ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://c:4317/v1/traces")])
            .expect("a warning only");
    assert_eq!(of_traces(resolved.settings).endpoint, "http://c:4317");
    assert!(resolved.warnings[0].starts_with("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT has a path"));
}

#[test]
fn every_key_of_a_destination_and_what_beats_what() {
    /// What a key comes to, as text.
    type Shown = fn(&Destination) -> String;
    let cases: &[(&str, &str, &str, &str, &str, &str, Shown)] = &[
        // Variable, general and own value; key in the file, general and own.
        ("TIMEOUT", "1000", "2000", "timeout", "3s", "4s", |to| {
            format!("{:?}", to.timeout.as_secs())
        }),
        ("COMPRESSION", "GZIP", "none", "compression", "gzip", "none", |to| {
            format!("{}", to.compression == Compression::Gzip)
        }),
        ("PROTOCOL", "grpc", "http/protobuf", "protocol", "grpc", "http/protobuf", |to| {
            to.protocol.as_str().to_owned()
        }),
        ("HEADERS", "a=1", "b=2", "headers", "{c: '3'}", "{d: '4'}", |to| {
            let shown = to.headers.iter().map(|(name, value)| format!("{name}{}", value.expose()));
            shown.collect::<Vec<_>>().join(",")
        }),
        ("CERTIFICATE", "/1", "/2", "tls_config", "{ca_file: /3}", "{ca_file: /4}", |to| {
            format!("{:?}", to.tls.ca_file)
        }),
    ];
    for (variable, general, own, key, in_file, own_in_file, shown) in cases {
        let general_name = format!("OTEL_EXPORTER_OTLP_{variable}");
        let own_name = format!("OTEL_EXPORTER_OTLP_TRACES_{variable}");
        let general = (&*general_name, *general);
        let own = (&*own_name, *own);
        let file = format!("{{{key}: {in_file}}}");
        let both = format!("{{{key}: {in_file}, traces: {{{key}: {own_in_file}}}}}");
        let see = |yaml: &str, variables: Variables<'_>| {
            shown(&of_traces(settings(yaml, &[variables, &[SECURE]].concat())))
        };
        let nothing = see("{}", &[]);
        let from_general = see("{}", &[general]);
        let from_own = see("{}", &[own]);
        let from_file = see(&file, &[]);
        let from_own_in_file = see(&both, &[]);
        assert_ne!(nothing, from_general, "{variable}");
        assert_ne!(from_general, from_own, "{variable}");
        assert_ne!(from_file, from_own_in_file, "{variable}");
        assert_eq!(see("{}", &[own, general]), from_own, "{variable}: own beats general");
        assert_eq!(see(&file, &[own, general]), from_file, "{variable}: file beats environment");
        assert_eq!(see(&both, &[own, general]), from_own_in_file, "{variable}: own in the file");
        // Empty is unset.
        assert_eq!(see("{}", &[(own.0, ""), general]), from_general, "{variable}");
        // And another signal hears nothing of it.
        let logs = settings("{}", &[own, SECURE]).logs.expect("logs").destination;
        assert_eq!(shown(&logs), nothing, "{variable}");
    }
}

#[test]
fn defaults() {
    let settings = settings("{}", &[ENDPOINT]);
    let metrics = settings.metrics.expect("metrics");
    assert_eq!(metrics.interval, Duration::from_mins(1));
    assert_eq!(metrics.export_timeout, metrics.interval);
    assert_eq!(metrics.temporality, Temporality::Cumulative);
    let to = metrics.destination;
    assert_eq!((to.protocol, to.compression), (Protocol::HttpProtobuf, Compression::None));
    assert_eq!((to.timeout, to.request_size), (Duration::from_secs(10), 3 << 20));
    let traces = settings.traces.expect("traces");
    let all = Sampling { ratio: 1.0, keep_failed: true, keep_longer_than: None };
    assert_eq!((traces.sampling, traces.tasks_per_stage), (all, 5));
    assert!(!settings.own_logs && !settings.own_traces);
}

#[test]
fn pace_and_temporality_of_metrics() {
    const PREFERENCE: &str = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE";
    let metrics = |yaml: &str, variables: Variables<'_>| {
        let all = [variables, &[ENDPOINT]].concat();
        settings(yaml, &all).metrics.expect("metrics")
    };
    let interval = ("OTEL_METRIC_EXPORT_INTERVAL", "15000");
    assert_eq!(metrics("{}", &[interval]).interval, Duration::from_secs(15));
    assert_eq!(metrics("{}", &[interval]).export_timeout, Duration::from_secs(15));
    assert_eq!(
        metrics("{metrics: {interval: 30s}}", &[interval]).interval,
        Duration::from_secs(30)
    );
    for (timeout, expected) in [("5000", 5), ("0", 15), ("99000", 15)] {
        let variables = [interval, ("OTEL_METRIC_EXPORT_TIMEOUT", timeout)];
        assert_eq!(metrics("{}", &variables).export_timeout, Duration::from_secs(expected));
    }
    for (word, expected) in [
        ("Delta", Temporality::Delta),
        ("CUMULATIVE", Temporality::Cumulative),
        ("LowMemory", Temporality::Cumulative),
    ] {
        assert_eq!(metrics("{}", &[(PREFERENCE, word)]).temporality, expected, "{word}");
    }
    let file = "{metrics: {temporality: cumulative}}";
    assert_eq!(metrics(file, &[(PREFERENCE, "delta")]).temporality, Temporality::Cumulative);
}

#[test]
fn sampling() {
    let sampling = |yaml: &str, variables: Variables<'_>| {
        let all = [variables, &[ENDPOINT]].concat();
        settings(yaml, &all).traces.expect("traces").sampling
    };
    let name = "OTEL_TRACES_SAMPLER";
    for (word, ratio, keep_failed) in [
        ("always_on", 1.0, true),
        ("parentbased_always_on", 1.0, true),
        ("always_off", 0.0, false),
        ("parentbased_traceidratio", 0.25, true),
        ("TraceIdRatio", 0.25, true),
    ] {
        let found = sampling("{}", &[(name, word), ("OTEL_TRACES_SAMPLER_ARG", "0.25")]);
        assert_eq!((found.ratio, found.keep_failed), (ratio, keep_failed), "{word}");
    }
    // An argument without its sampler says nothing.
    assert!((sampling("{}", &[("OTEL_TRACES_SAMPLER_ARG", "0.25")]).ratio - 1.0).abs() < 1e-9);
    let yaml = "{traces: {sampling: {ratio: 0.5, keep_longer_than: 10m, keep_failed: false}}}";
    let found = sampling(yaml, &[(name, "always_off")]);
    let longer = Some(Duration::from_mins(10));
    assert_eq!(found, Sampling { ratio: 0.5, keep_failed: false, keep_longer_than: longer });
}

#[test]
fn resource() {
    let attributes = ("OTEL_RESOURCE_ATTRIBUTES", "service.name=a,team=x%2Cy,zone=1");
    let found = settings("{}", &[attributes]).resource;
    assert_eq!(found.service_name.as_deref(), Some("a"));
    assert_eq!(found.attributes.get("team").map(String::as_str), Some("x,y"));
    assert!(!found.attributes.contains_key("service.name"));
    let name = ("OTEL_SERVICE_NAME", "b");
    assert_eq!(settings("{}", &[attributes, name]).resource.service_name.as_deref(), Some("b"));
    let yaml = "{service_name: c, resource_attributes: {team: z}}";
    let found = settings(yaml, &[attributes, name]).resource;
    assert_eq!(found.service_name.as_deref(), Some("c"));
    let found: Vec<_> = found.attributes.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(found, [("team", "z"), ("zone", "1")]);
    let yaml = "{resource_attributes: {service.name: d}}";
    assert_eq!(settings(yaml, &[name]).resource.service_name.as_deref(), Some("d"));
}

#[test]
fn own_telemetry_follows_its_signal() {
    let yaml = "{endpoint: 'http://c', own: {logs: true, traces: true}}";
    let found = settings(yaml, &[]);
    assert!(found.own_logs && found.own_traces);
    let found = read(yaml, &[("OTEL_LOGS_EXPORTER", "none")]).expect("a warning");
    assert!(!found.settings.own_logs && found.settings.own_traces);
    assert_eq!(found.warnings.len(), 1);
}

#[test]
fn secrets_are_in_no_output() {
    let text = "otlp: {endpoint: 'http://c', headers: {authorization: Bearer hunter2}}\n";
    let config = Config::parse(text).expect("readable");
    let resolved = resolve(&config.otlp, &|_| None).expect("sound");
    assert_eq!(of_traces(resolved.settings.clone()).headers[0].1.expose(), "Bearer hunter2");
    assert!(!format!("{config:?} {resolved:?}").contains("hunter2"));
    let json = serde_json::to_string(&config.otlp).expect("serializable");
    assert!(!json.contains("hunter2") && json.contains("<secret>"), "{json}");
}
