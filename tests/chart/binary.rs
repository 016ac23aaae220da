//! What the chart hands to the program is what the program takes.

use std::process::Command;

use serde_json::Value;

use crate::common::yaml;
use crate::helm::{chart, config, container, kind, rendered_cases};

fn exporter(arguments: &[&str]) -> (bool, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_spark-exporter")).args(arguments).output().unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (output.status.success(), said)
}

/// `check-config` finds every configuration sound. A build without the cargo
/// features of the image may refuse what it lacks, and nothing else.
#[test]
fn every_configuration_is_valid() {
    let all = cfg!(all(feature = "kubernetes", feature = "s3", feature = "postgres"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.yml");
    let mut checked = 0;
    for (name, objects) in rendered_cases() {
        let Some(config) = config(objects) else { continue };
        std::fs::write(&file, &config).unwrap();
        let (valid, said) = exporter(&["check-config", file.to_str().unwrap()]);
        let lacks = !all && said.contains("built without");
        assert!(valid || lacks, "{name}: {said}\n{config}");
        checked += 1;
    }
    assert!(checked > 10);
}

fn flags(value: &Value) -> Vec<String> {
    let texts = value.as_array().into_iter().flatten().map(|text| text.as_str().unwrap());
    let flags = texts.filter(|text| text.starts_with("--"));
    flags.map(|text| text.split('=').next().unwrap().to_owned()).collect()
}

fn known(help: &str, flag: &str) -> bool {
    help.split_whitespace().any(|word| word.trim_end_matches([',', ']']) == flag)
}

#[test]
fn every_flag_is_known_to_the_program() {
    let (_, daemon) = exporter(&["--help"]);
    let (_, check) = exporter(&["check-ready", "--help"]);
    let (_, diagnose) = exporter(&["diagnose", "--help"]);
    for (name, objects) in rendered_cases() {
        for flag in flags(&container(objects)["args"]) {
            assert!(known(&daemon, &flag), "{name}: the daemon has no {flag}");
        }
        let probes = ["livenessProbe", "readinessProbe"];
        let asked = probes.map(|probe| flags(&container(objects)[probe]["exec"]["command"]));
        for flag in asked.concat() {
            assert!(known(&check, &flag), "{name}: check-ready has no {flag}");
        }
        for pod in kind(objects, "Pod") {
            let arguments = &pod["spec"]["containers"][0]["args"];
            assert_eq!(arguments[0], "check-ready");
            for flag in flags(arguments) {
                assert!(known(&check, &flag), "{name}: check-ready has no {flag}");
            }
        }
    }
    let job = yaml(&chart().join("examples/diagnose-job.yaml"));
    let pod = &job["spec"]["template"]["spec"];
    let arguments = &pod["containers"][0]["args"];
    assert_eq!(arguments[0], "diagnose");
    for flag in flags(arguments) {
        assert!(known(&diagnose, &flag), "diagnose has no {flag}");
    }
    // As many parts as there are pods.
    let parts = format!("--total-shards={}", job["spec"]["completions"]);
    assert!(arguments.as_array().unwrap().iter().any(|one| *one == *parts), "{parts}");
    assert_eq!(job["spec"]["completionMode"], "Indexed");
}
