//! The chart as a part of somebody's own: under another name, with values in the
//! place that Helm gives to parts, switched on and off by a condition.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::helm::{chart, kind, objects_of, one, run, workload};

const CHART: &str = "
apiVersion: v2
name: platform
version: 0.1.0
dependencies:
  - {name: spark-exporter, version: '*', alias: spark-watch, condition: spark-watch.enabled}
";
const VALUES: &str = "
global: {imageRegistry: mirror.example.org, somebodys: own}
spark-watch:
  enabled: true
  dashboards: {enabled: false}
  discovery: {namespaces: [etl]}
  prometheusRule: {enabled: true}
  serviceMonitor: {enabled: true}
";

fn rendered(version: &str, platform: &Path, sets: &[&str]) -> Vec<Value> {
    let mut arguments = vec!["template", "house", platform.to_str().unwrap()];
    arguments.extend(sets);
    let output = run(version, &arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    objects_of(&String::from_utf8(output.stdout).unwrap())
}

#[test]
fn it_is_a_part_of_another_chart() {
    let folder = tempfile::tempdir().unwrap();
    let platform = folder.path();
    std::fs::create_dir(platform.join("charts")).unwrap();
    std::fs::write(platform.join("Chart.yaml"), CHART).unwrap();
    std::fs::write(platform.join("values.yaml"), VALUES).unwrap();
    let copied = Command::new("cp").arg("-r").arg(chart()).arg(platform.join("charts")).status();
    assert!(copied.unwrap().success());
    for version in ["3", "4"] {
        let objects = rendered(version, platform, &[]);
        let name = "house-spark-watch";
        assert_eq!(workload(&objects)["metadata"]["name"], name);
        let pod = &workload(&objects)["spec"]["template"]["spec"];
        let image = pod["containers"][0]["image"].as_str().unwrap();
        assert!(image.starts_with("mirror.example.org/spark-exporter/"), "{image}");
        let role = kind(&objects, "Role");
        assert_eq!(role[0]["metadata"]["namespace"], "etl");
        // Targets and alerts agree on the job, which is the alias.
        let service = one(&objects, "Service");
        let monitor = &one(&objects, "ServiceMonitor")["spec"];
        let label = monitor["jobLabel"].as_str().unwrap();
        assert_eq!(service["metadata"]["labels"][label], "spark-watch");
        for (key, value) in monitor["selector"]["matchLabels"].as_object().unwrap() {
            assert_eq!(service["metadata"]["labels"][key], *value, "{key}");
        }
        let rules = one(&objects, "PrometheusRule").to_string();
        assert!(rules.contains(r#"up{job=\"spark-watch\"}"#));
        assert!(!rules.contains(r#"job=\"spark-exporter\""#));

        let off = rendered(version, platform, &["--set", "spark-watch.enabled=false"]);
        assert_eq!(off, Vec::<Value>::new());
    }
}
