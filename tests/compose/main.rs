//! `examples/compose`: what it mounts is what the tools of its kind accept, at
//! the places where the containers look for it; and its parts together, run
//! here as plain programs on its own files, show a failure in Alertmanager.
//! The containers themselves are not run: there is no container engine here.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod opentelemetry;
mod together;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use common::real::{part, root};
use common::yaml;
use serde_json::Value;

fn folder() -> PathBuf {
    root().join("examples/compose")
}

fn text_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// What a command prints; it must succeed.
fn succeeds(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?} says:\n{}", text_of(&output));
    text_of(&output)
}

fn load_compose(files: &[PathBuf]) -> Output {
    let mut command = Command::new(part(&["compose-spec"]));
    command.args(["--format", "json"]).args(files).current_dir(files[0].parent().unwrap());
    command.output().unwrap()
}

/// The compose file as the loader of Docker Compose reads it: paths resolved,
/// short forms written out.
fn compose() -> &'static Value {
    static COMPOSE: LazyLock<Value> = LazyLock::new(|| {
        let output = load_compose(&[folder().join("compose.yaml")]);
        assert!(output.status.success(), "{}", text_of(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    });
    &COMPOSE
}

fn services() -> impl Iterator<Item = (&'static String, &'static Value)> {
    compose()["services"].as_object().unwrap().iter()
}

fn list(value: &'static Value) -> impl Iterator<Item = &'static Value> {
    value.as_array().into_iter().flatten()
}

fn string(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

/// The files of a container, as its mounts make them: copies, so that a file
/// finds its neighbours only where they are mounted.
fn tree(service: &str) -> tempfile::TempDir {
    let tree = tempfile::tempdir().unwrap();
    for volume in list(&compose()["services"][service]["volumes"]) {
        let place = tree.path().join(string(&volume["target"]).trim_start_matches('/'));
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        match string(&volume["type"]) {
            "volume" => std::fs::create_dir_all(&place).unwrap(),
            "bind" => {
                succeeds(Command::new("cp").arg("-R").arg(string(&volume["source"])).arg(&place));
            }
            other => panic!("{service}: a mount of type {other}"),
        }
    }
    tree
}

fn arguments(service: &str) -> Vec<&'static str> {
    list(&compose()["services"][service]["command"]).map(string).collect()
}

/// A path of a container, after `flag=`, in the tree that stands for it.
fn inside(tree: &tempfile::TempDir, service: &str, flag: &str) -> PathBuf {
    let given = arguments(service).into_iter().find_map(|argument| argument.strip_prefix(flag));
    let path = given.unwrap_or_else(|| panic!("{service} is not given {flag}"));
    tree.path().join(path.trim_start_matches('/'))
}

#[test]
fn the_compose_file_is_one_and_says_what_it_should() {
    let names: BTreeSet<&str> = services().map(|(name, _)| name.as_str()).collect();
    let expected = ["alertmanager", "grafana", "prometheus", "replay", "spark-exporter"];
    assert_eq!(names, BTreeSet::from(expected));
    for (name, service) in services() {
        let image = string(&service["image"]);
        let tag = image.rsplit_once(':').map(|(_, tag)| tag);
        let built_here = service.get("build").is_some();
        assert!(
            built_here || tag.is_some_and(|tag| tag.contains(|c: char| c.is_ascii_digit())),
            "{name}: {image} names no version"
        );
        assert!(service["healthcheck"]["test"].is_array(), "{name} has no health check");
        for port in list(&service["ports"]) {
            assert_eq!(port["host_ip"], "127.0.0.1", "{name}: {port} is open to the network");
        }
        for volume in list(&service["volumes"]) {
            let source = string(&volume["source"]);
            if volume["type"] == "bind" {
                assert_eq!(volume["read_only"], true, "{name}: {volume} can be written");
                assert!(Path::new(source).exists(), "{name} mounts {source}, which is not there");
                assert!(Path::new(source).starts_with(root()), "{name} mounts {source}");
            } else {
                assert!(!compose()["volumes"][source].is_null(), "{name}: no volume {source}");
            }
        }
        let all = service.to_string().to_lowercase();
        assert!(!all.contains("password") && !all.contains("secret"), "{name}: {all}");
    }
    // Only the exporter's own folder is written by one and read by another.
    let writes = |name: &str| {
        list(&compose()["services"][name]["volumes"])
            .any(|volume| volume["source"] == "spark-events" && volume["read_only"] != true)
    };
    assert!(writes("replay") && !writes("spark-exporter"));
}

#[test]
fn a_wrong_compose_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(self::folder().join("compose.yaml")).unwrap();
    let file = folder.path().join("compose.yaml");
    std::fs::write(&file, text.replace("    healthcheck:", "    healthchek:")).unwrap();
    let output = load_compose(&[file]);
    assert!(!output.status.success());
    assert!(text_of(&output).contains("healthchek"), "{}", text_of(&output));
}

#[test]
fn prometheus_accepts_its_configuration_and_finds_the_rules() {
    let tree = tree("prometheus");
    let file = inside(&tree, "prometheus", "--config.file=");
    for promtool in [part(&["prometheus"]), part(&["prometheus-3"])] {
        let said =
            succeeds(Command::new(promtool.join("promtool")).args(["check", "config"]).arg(&file));
        // One line a file of rules: "SUCCESS: 12 rules found".
        let found: Vec<u32> = said
            .lines()
            .filter_map(|line| line.split_once(" rules found")?.0.rsplit(' ').next()?.parse().ok())
            .collect();
        assert!(found.len() == 3 && found.iter().all(|rules| *rules > 0), "{said}");
    }
    // It scrapes the exporter's service and tells the Alertmanager's, at the
    // ports where they listen.
    let config = yaml(&file).to_string();
    assert!(config.contains("\"spark-exporter:10404\""), "{config}");
    assert!(config.contains("\"alertmanager:9093\""), "{config}");
}

#[test]
fn alertmanager_accepts_its_configuration() {
    let tree = tree("alertmanager");
    let file = inside(&tree, "alertmanager", "--config.file=");
    let amtool = part(&["alertmanager"]).join("amtool");
    succeeds(Command::new(amtool).arg("check-config").arg(&file));
    // It tells nobody, and else does as the example of alerts/.
    let (here, example) = (yaml(&file), yaml(&root().join("alerts/alertmanager.yml")));
    assert_eq!(
        here["inhibit_rules"], example["inhibit_rules"],
        "copy them from alerts/alertmanager.yml"
    );
    assert_eq!(here["route"]["group_by"], example["route"]["group_by"]);
}

/// Keys that Grafana's documentation names:
/// <https://grafana.com/docs/grafana/latest/administration/provisioning/>.
fn only_known_keys(place: &str, value: &Value, known: &[&str]) {
    for key in value.as_object().unwrap_or_else(|| panic!("{place} is no map")).keys() {
        assert!(known.contains(&key.as_str()), "{place}: {key} is not one of {known:?}");
    }
}

/// The one file of a folder of provisioning.
fn provisioned(tree: &tempfile::TempDir, kind: &str) -> Value {
    let folder = tree.path().join("etc/grafana/provisioning").join(kind);
    let files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() == 1 && files[0].extension().unwrap() == "yaml", "{files:?}");
    yaml(&files[0])
}

#[test]
fn grafana_is_given_data_sources_that_are_there() {
    let tree = tree("grafana");
    let file = provisioned(&tree, "datasources");
    only_known_keys("datasources", &file, &["apiVersion", "prune", "datasources"]);
    assert_eq!(file["apiVersion"], 1);
    let sources = file["datasources"].as_array().unwrap();
    for source in sources {
        let name = string(&source["name"]);
        only_known_keys(
            name,
            source,
            &["name", "type", "uid", "access", "url", "isDefault", "editable", "jsonData"],
        );
        let known: &[&str] = match string(&source["type"]) {
            "prometheus" => {
                &["httpMethod", "timeInterval", "prometheusType", "manageAlerts", "alertmanagerUid"]
            }
            "alertmanager" => &["implementation", "handleGrafanaManagedAlerts"],
            "tempo" => &["httpMethod"],
            other => panic!("{name} is a {other}"),
        };
        only_known_keys(name, &source["jsonData"], known);
        // http://SERVICE:PORT of a service whose port is published as well.
        let (service, port) =
            string(&source["url"]).trim_start_matches("http://").split_once(':').unwrap();
        let ports = &opentelemetry::both()["services"][service]["ports"];
        assert!(
            list(ports).any(|given| given["target"].as_u64() == port.parse().ok()),
            "{name}: no service answers at {}",
            source["url"]
        );
    }
    let uid = &sources[0]["jsonData"]["alertmanagerUid"];
    assert!(sources.iter().any(|source| source["uid"] == *uid), "no data source {uid}");
    assert_eq!(sources.iter().filter(|source| source["isDefault"] == true).count(), 1);
    // What $__rate_interval is made of is how often Prometheus scrapes.
    let prometheus = yaml(&folder().join("prometheus.yml"));
    assert_eq!(sources[0]["jsonData"]["timeInterval"], prometheus["global"]["scrape_interval"]);
}

#[test]
fn grafana_is_given_every_dashboard() {
    let tree = tree("grafana");
    let file = provisioned(&tree, "dashboards");
    only_known_keys("dashboards", &file, &["apiVersion", "providers"]);
    assert_eq!(file["apiVersion"], 1);
    let provider = &file["providers"][0];
    only_known_keys(
        "the provider",
        provider,
        &[
            "name",
            "orgId",
            "folder",
            "folderUid",
            "type",
            "disableDeletion",
            "allowUiUpdates",
            "updateIntervalSeconds",
            "options",
        ],
    );
    only_known_keys("its options", &provider["options"], &["path", "foldersFromFilesStructure"]);
    let place = tree.path().join(string(&provider["options"]["path"]).trim_start_matches('/'));
    // Grafana looks below folders as well: no other JSON lies there.
    assert_eq!(
        dashboards(&place),
        ["application", "exporter", "fleet", "job", "stage", "streaming"]
            .map(|name| PathBuf::from(format!("{name}.json")))
            .into()
    );
    let home = &compose()["services"]["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"];
    let home = tree.path().join(string(home).trim_start_matches('/'));
    let home: Value = serde_json::from_str(&std::fs::read_to_string(home).unwrap()).unwrap();
    assert_eq!(home["uid"], "spark-exporter-fleet");
}

/// The JSON files of a folder and of those below it.
fn dashboards(folder: &Path) -> BTreeSet<PathBuf> {
    let said = succeeds(
        Command::new("find").args([".", "-name", "*.json", "-printf", "%P\\n"]).current_dir(folder),
    );
    said.lines().map(PathBuf::from).collect()
}

#[test]
fn the_image_is_built_of_what_it_is_given() {
    let build = &compose()["services"]["spark-exporter"]["build"];
    assert_eq!(Path::new(string(&build["context"])), root());
    let dockerfile = root().join(build["dockerfile"].as_str().unwrap_or("Dockerfile"));
    succeeds(Command::new(part(&["compose-tools"]).join("bin/hadolint")).arg(&dockerfile));

    // The context holds only what .dockerignore lets through, and
    // all that the Dockerfile copies; with that much, cargo accepts the package.
    let context = tempfile::tempdir().unwrap();
    let ignore = std::fs::read_to_string(root().join(".dockerignore")).unwrap();
    let mut rules = ignore.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    assert_eq!(rules.next(), Some("*"));
    for kept in rules {
        let kept = kept.strip_prefix('!').unwrap();
        let place = context.path().join(kept);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        succeeds(Command::new("cp").arg("-R").arg(root().join(kept)).arg(&place));
    }
    for line in std::fs::read_to_string(&dockerfile).unwrap().lines() {
        let Some(copied) = line.strip_prefix("COPY ").filter(|copied| !copied.starts_with("--"))
        else {
            continue;
        };
        let words: Vec<&str> = copied.split(' ').collect();
        for source in &words[..words.len() - 1] {
            assert!(context.path().join(source).exists(), "{source} is left out of the context");
        }
    }
    let said = succeeds(
        Command::new(env!("CARGO"))
            .args(["metadata", "--locked", "--offline", "--no-deps", "--format-version", "1"])
            .current_dir(context.path()),
    );
    assert!(said.contains("\"spark-exporter\""));
    // The compiler of the image is that of rust-toolchain.toml.
    let toolchain = std::fs::read_to_string(root().join("rust-toolchain.toml")).unwrap();
    let channel = toolchain.split("channel = \"").nth(1).unwrap().split('"').next().unwrap();
    let text = std::fs::read_to_string(&dockerfile).unwrap();
    assert!(text.contains(&format!("FROM rust:{channel}-")), "{channel}");
}

#[test]
fn the_exporter_accepts_its_configuration() {
    let tree = tree("spark-exporter");
    let file = inside(&tree, "spark-exporter", "--config.file=");
    let said =
        succeeds(Command::new(env!("CARGO_BIN_EXE_spark-exporter")).arg("check-config").arg(&file));
    assert!(said.contains("/var/log/spark-events"), "{said}");
    // Where the replay writes.
    assert_eq!(arguments("replay").last(), Some(&"/var/log/spark-events"));
    assert!(tree.path().join("var/log/spark-events").is_dir());
}
