//! `opentelemetry.yaml` beside `compose.yaml`: a Collector and a place for
//! traces, so that the exporter's own words reach both.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use serde_json::Value;

use crate::common::real::{part, root};
use crate::common::yaml;
use crate::{folder, list, load_compose, string, succeeds, text_of};

/// Both files as the loader of Docker Compose lays them over each other.
pub(crate) fn both() -> &'static Value {
    static BOTH: LazyLock<Value> = LazyLock::new(|| {
        let files = ["compose.yaml", "opentelemetry.yaml"].map(|file| folder().join(file));
        let output = load_compose(&files);
        assert!(output.status.success(), "{}", text_of(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    });
    &BOTH
}

fn service(name: &str) -> &'static Value {
    &both()["services"][name]
}

#[test]
fn a_collector_and_tempo_come_beside_the_rest() {
    let names: BTreeSet<&str> =
        both()["services"].as_object().unwrap().keys().map(String::as_str).collect();
    assert!(names.contains("prometheus") && names.contains("grafana"), "{names:?}");
    for name in ["collector", "tempo"] {
        let service = service(name);
        let (_, tag) = string(&service["image"]).rsplit_once(':').unwrap();
        assert!(tag.starts_with(|c: char| c.is_ascii_digit()), "{name} names no version");
        assert_eq!(service["read_only"], true, "{name}");
        for port in list(&service["ports"]) {
            assert_eq!(port["host_ip"], "127.0.0.1", "{name}: {port} is open to the network");
        }
        for volume in list(&service["volumes"]) {
            let source = Path::new(string(&volume["source"]));
            assert_eq!(volume["read_only"], true, "{name}: {volume} can be written");
            assert!(source.is_file() && source.starts_with(root()), "{name} mounts {volume}");
        }
    }
    // What compose.yaml says of the exporter is still there.
    assert!(list(&service("spark-exporter")["ports"]).next().is_some());
}

/// The file that a service is started with.
fn configuration(name: &str, flag: &str) -> std::path::PathBuf {
    let given = list(&service(name)["command"])
        .find_map(|argument| string(argument).strip_prefix(flag))
        .unwrap_or_else(|| panic!("{name} is not given {flag}"));
    let volume = list(&service(name)["volumes"]).find(|volume| volume["target"] == given);
    string(&volume.unwrap_or_else(|| panic!("{name}: nothing is at {given}"))["source"]).into()
}

/// `host:port` names a service that listens there.
fn is_heard_by(endpoint: &str, name: &str, listens: &Value) {
    let (host, port) = endpoint.trim_start_matches("http://").split_once(':').unwrap();
    assert_eq!(host, name);
    let (_, listening) = string(listens).rsplit_once(':').unwrap();
    assert_eq!(port, listening, "{name} does not listen where {endpoint} says");
}

#[test]
fn the_collector_accepts_its_configuration() {
    let file = configuration("collector", "--config=");
    let collector = part(&["collector"]).join("otelcol");
    let validate = |file: &Path| {
        Command::new(&collector).arg("validate").arg("--config").arg(file).output().unwrap()
    };
    let output = validate(&file);
    assert!(output.status.success(), "{}", text_of(&output));
    // The version of the image is the one that judged.
    let said = succeeds(Command::new(&collector).arg("--version"));
    let image = string(&service("collector")["image"]);
    assert!(said.trim().ends_with(image.rsplit_once(':').unwrap().1), "{said} is not {image}");
    // And it refuses what is wrong.
    let wrong = tempfile::NamedTempFile::new().unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(wrong.path(), text.replace("exporters: [debug]", "exporters: [nothing]"))
        .unwrap();
    assert!(!validate(wrong.path()).status.success());
}

#[test]
fn each_sends_to_where_the_next_listens() {
    let environment = &service("spark-exporter")["environment"];
    let collector = yaml(&configuration("collector", "--config="));
    let listens = &collector["receivers"]["otlp"]["protocols"];
    let endpoint = string(&environment["OTEL_EXPORTER_OTLP_ENDPOINT"]);
    is_heard_by(endpoint, "collector", &listens["http"]["endpoint"]);
    // What Prometheus scrapes is not stored twice.
    assert_eq!(environment["OTEL_METRICS_EXPORTER"], "none");
    let tempo = yaml(&configuration("tempo", "-config.file="));
    let listens = &tempo["distributor"]["receivers"]["otlp"]["protocols"]["grpc"]["endpoint"];
    let exporter = &collector["exporters"]["otlp_grpc/tempo"];
    is_heard_by(string(&exporter["endpoint"]), "tempo", listens);
    // Everything it stores is where it may write.
    let storage = &tempo["storage"]["trace"];
    for place in [&storage["wal"]["path"], &storage["local"]["path"]] {
        assert!(string(place).starts_with("/var/tempo/"), "{place}");
    }
    assert!(list(&service("tempo")["tmpfs"]).any(|tmpfs| string(tmpfs).starts_with("/var/tempo")));
    // Grafana asks where it answers: a test beside this one looks at the port.
    assert_eq!(tempo["server"]["http_listen_port"], 3200);
}
