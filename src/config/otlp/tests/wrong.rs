//! What cannot be used: a warning by the name of the variable, an error by the
//! key of the file, and never a value.

use super::*;

#[test]
fn what_the_environment_says_wrongly_is_named_and_ignored() {
    let as_if_unset = settings("{}", &[SECURE]);
    for (name, value, part) in [
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json", "http/json"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "hunter2", "neither grpc"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "hunter2", "milliseconds"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "-5", "milliseconds"),
        ("OTEL_EXPORTER_OTLP_LOGS_TIMEOUT", "10s", "milliseconds"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "hunter2", "no word"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "hunter2", "entry 1"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "hunter 2=x", "not the name of a header"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-a=hunter2%0A", "x-a"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "content-type=hunter2", "content-type"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-bin=hunter2", "x-bin"),
        ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "hunter2:80:90", "not a URL"),
        ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://u:hunter2@c", "credentials"),
        ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://c/?key=hunter2", "query"),
        ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "ftp://hunter2", "http://"),
        ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "hunter2", "http://"),
        ("OTEL_EXPORTER_OTLP_INSECURE", "hunter2", "neither true nor false"),
        ("OTEL_EXPORTER_OTLP_CLIENT_KEY", "/hunter2", "CLIENT_CERTIFICATE"),
        ("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "/hunter2", "CLIENT_KEY"),
        ("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "hunter2", "no word"),
        (
            "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION",
            "base2_exponential_bucket_histogram",
            "explicit bounds",
        ),
        ("OTEL_METRIC_EXPORT_INTERVAL", "0", "milliseconds"),
        ("OTEL_METRIC_EXPORT_TIMEOUT", "hunter2", "milliseconds"),
        ("OTEL_RESOURCE_ATTRIBUTES", "a=1,hunter2", "entry 2"),
        ("OTEL_TRACES_SAMPLER", "hunter2", "no sampler"),
        ("OTEL_TRACES_SAMPLER", "xray", "asks a server"),
        ("OTEL_SDK_DISABLED", "hunter2", "neither true nor false"),
        ("OTEL_LOGS_EXPORTER", "hunter2", "neither otlp nor none"),
        ("OTEL_CONFIG_FILE", "/hunter2", "--config.file"),
    ] {
        let found = read("{}", &[SECURE, (name, value)]).expect(name);
        assert_eq!(found.settings, as_if_unset, "{name}={value}");
        assert_eq!(found.warnings.len(), 1, "{name}={value}: {:?}", found.warnings);
        let warning = &found.warnings[0];
        assert!(warning.contains(name) && warning.contains(part), "{name}={value}: {warning}");
        assert!(!format!("{found:?}").contains("hunter2"), "{warning}");
    }
}

#[test]
fn other_warnings() {
    // Another exporter is a decision against ours, even if it is not there.
    let found = read("{}", &[ENDPOINT, ("OTEL_TRACES_EXPORTER", "zipkin")]).expect("a warning");
    assert!(found.settings.traces.is_none() && found.settings.logs.is_some());
    assert!(found.warnings[0].starts_with("OTEL_TRACES_EXPORTER "), "{:?}", found.warnings);
    // A wrong argument is as good as none.
    let variables =
        [ENDPOINT, ("OTEL_TRACES_SAMPLER", "traceidratio"), ("OTEL_TRACES_SAMPLER_ARG", "2")];
    let found = read("{}", &variables).expect("a warning");
    assert!((found.settings.traces.expect("traces").sampling.ratio - 1.0).abs() < 1e-9);
    assert!(found.warnings[0].starts_with("OTEL_TRACES_SAMPLER_ARG "), "{:?}", found.warnings);
    // Certificates for a connection without TLS; said once for all signals.
    let found = read("{}", &[ENDPOINT, ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem")]);
    let found = found.expect("a warning");
    assert_eq!(found.warnings.len(), 1, "{:?}", found.warnings);
    assert_eq!(found.settings.logs.expect("logs").destination.tls.ca_file, None);
    // Without a scheme, for HTTP: as if it were not there, so nothing is sent.
    let found =
        read("{}", &[("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318")]).expect("a warning");
    assert_eq!(endpoints(&found.settings), [None; 3]);
    assert_eq!(found.warnings.len(), 1, "{:?}", found.warnings);
    // The switch for everything is stronger than the file.
    let found = read("{endpoint: 'http://c'}", &[("OTEL_SDK_DISABLED", "TRUE")]);
    let found = found.expect("a warning");
    assert_eq!(endpoints(&found.settings), [None; 3]);
    assert!(found.warnings[0].starts_with("OTEL_SDK_DISABLED "), "{:?}", found.warnings);
}

#[cfg(unix)]
#[test]
fn what_is_not_utf8_is_ignored() {
    use std::os::unix::ffi::OsStringExt;
    let file = Otlp::default();
    let found = resolve(&file, &|name| {
        (name == "OTEL_EXPORTER_OTLP_ENDPOINT").then(|| OsString::from_vec(vec![b'h', 0xff]))
    })
    .expect("a warning");
    assert_eq!(endpoints(&found.settings), [None; 3]);
    assert_eq!(found.warnings, ["OTEL_EXPORTER_OTLP_ENDPOINT is not UTF-8: ignored"]);
}

#[test]
fn what_the_file_says_wrongly_is_refused_by_its_key() {
    for (yaml, part) in [
        ("{endpoint: 'collector:4318'}", "otlp.endpoint does not start"),
        ("{endpoint: 'http://u:hunter2@c'}", "otlp.endpoint holds credentials"),
        ("{endpoint: 'http://c?k=hunter2'}", "otlp.endpoint has a query"),
        ("{logs: {endpoint: 'http://'}}", "otlp.logs.endpoint is not a URL"),
        ("{protocol: grpc, endpoint: 'http://c/x'}", "otlp.endpoint has a path"),
        ("{headers: {host: hunter2}}", "otlp.headers cannot set host"),
        ("{headers: {'a b': hunter2}}", "otlp.headers has something"),
        ("{headers: {a: \"hunter2\\n\"}}", "otlp.headers gives a"),
        ("{headers: {a: hunter2, A: b}}", "twice"),
        ("{headers: {a: hunter2}, header_files: {A: /x}}", "both have"),
        ("{traces: {header_files: {grpc-x: /x}}}", "otlp.traces.header_files"),
        ("{timeout: 0s}", "otlp.timeout is 0s"),
        ("{request_size: 1KiB}", "otlp.request_size"),
        ("{request_size: 1GiB}", "otlp.request_size"),
        ("{tls_config: {cert_file: /c}}", "otlp.tls_config.cert_file"),
        (
            "{endpoint: 'http://c', tls_config: {ca_file: /c}}",
            "otlp.tls_config belongs to an endpoint with https://",
        ),
        (
            "{endpoint: 'http://c', logs: {tls_config: {ca_file: /c}}}",
            "otlp.logs.tls_config belongs",
        ),
        (
            "{endpoint: 'https://c', protocol: grpc, tls_config: {insecure_skip_verify: true}}",
            "not there for grpc",
        ),
        ("{metrics: {interval: 10ms}}", "otlp.metrics.interval"),
        ("{traces: {sampling: {ratio: 1.5}}}", "sampling.ratio"),
        ("{traces: {spans_per_trace: 0}}", "spans_per_trace"),
        ("{service_name: a, resource_attributes: {service.name: b}}", "exclude each other"),
        ("{own: {logs: true}}", "otlp.own.logs go where otlp.logs go"),
        (
            "{endpoint: 'http://c', traces: {enabled: false}, own: {traces: true}}",
            "otlp.own.traces go",
        ),
    ] {
        let error = read(yaml, &[]).expect_err(yaml);
        assert!(error.contains(part), "{yaml}: {error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[test]
fn unknown_keys_and_words_are_refused() {
    for yaml in
        ["{endpint: x}", "{protocol: http/json}", "{compression: zstd}", "{own: {metrics: true}}"]
    {
        Config::parse(&format!("otlp: {yaml}\n")).expect_err(yaml);
    }
}
