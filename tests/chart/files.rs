//! The files of the chart: made anew they are the same, and a package holds
//! them.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::common::real::root;
use crate::common::yaml;
use crate::helm::{cases, chart, part, run};

/// All files under a folder, by their path in it.
fn read(folder: &Path, below: &str, found: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(folder.join(below)).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let path = if below.is_empty() { name } else { format!("{below}/{name}") };
        if entry.file_type().unwrap().is_dir() {
            read(folder, &path, found);
        } else {
            found.insert(path, std::fs::read(entry.path()).unwrap());
        }
    }
}

#[test]
fn made_again_they_are_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let python = part("python-tools", &[]).join("bin/python");
    let made = Command::new(python)
        .arg("-B")
        .arg(root().join("helm/compile"))
        .arg("--to")
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let (mut made, mut own) = (BTreeMap::new(), BTreeMap::new());
    read(folder.path(), "", &mut made);
    read(&chart(), "", &mut own);
    own.retain(|path, _| {
        path.starts_with("files/") || matches!(path.as_str(), "README.md" | "values.schema.json")
    });
    assert_eq!(made.keys().collect::<Vec<_>>(), own.keys().collect::<Vec<_>>(), "make chart");
    for (path, bytes) in made {
        assert!(own[&path] == bytes, "{path} is not current: make chart");
    }
}

#[test]
fn alerts_and_dashboards_are_the_projects_own() {
    let mut own = BTreeMap::new();
    read(&chart().join("files"), "", &mut own);
    assert_eq!(own.len(), 9, "{:?}", own.keys());
    for (path, bytes) in own {
        assert!(std::fs::read(root().join(&path)).unwrap() == bytes, "{path}: make chart");
    }
}

#[test]
fn the_chart_is_of_this_version() {
    let chart = yaml(&chart().join("Chart.yaml"));
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(chart["appVersion"], version);
    let images = chart["annotations"]["artifacthub.io/images"].as_str().unwrap();
    assert!(images.contains(&format!("ghcr.io/spark-exporter/spark-exporter:{version}")));
    assert_eq!(chart["apiVersion"], "v2");
    let icon = chart["icon"].as_str().unwrap();
    let (_, path) = icon.split_once("/main/").unwrap();
    assert!(root().join(path).is_file(), "{icon}");
    let links = chart["annotations"]["artifacthub.io/links"].as_str().unwrap();
    for line in links.lines().filter_map(|line| line.split_once("/main/")) {
        assert!(root().join(line.1).exists(), "{}", line.1);
    }
}

#[test]
fn a_package_holds_what_an_installation_needs() {
    for version in ["3", "4"] {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().to_str().unwrap();
        let made = run(version, &["package", "helm/spark-exporter", "--destination", to]);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        assert!(!String::from_utf8_lossy(&made.stderr).contains("symbolic"));
        let package = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        let listed = Command::new("tar").arg("-tzf").arg(&package).output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        let mut expected = BTreeMap::new();
        read(&chart(), "", &mut expected);
        for path in expected.keys() {
            let inside = listed.lines().any(|line| line == format!("spark-exporter/{path}"));
            let wanted = !path.starts_with("ci/") && path != ".helmignore";
            assert_eq!(inside, wanted || inside && path == ".helmignore", "{path}");
        }
        // What is packed renders as what is not.
        let rendered = run(version, &["template", "r", package.to_str().unwrap()]);
        let plain = run(version, &["template", "r", "helm/spark-exporter"]);
        assert!(rendered.status.success());
        assert!(rendered.stdout == plain.stdout);
    }
}

#[test]
fn yaml_is_written_as_people_write_it() {
    let python = part("python-tools", &[]).join("bin/python");
    let mut files = vec![chart().join("values.yaml"), chart().join("Chart.yaml")];
    files.extend(cases().into_iter().map(|(_, path)| path));
    files.extend(
        std::fs::read_dir(chart().join("examples")).unwrap().map(|entry| entry.unwrap().path()),
    );
    // Long lines are the `# @schema` of values.yaml, which have to be one line.
    let rules = "{extends: default, rules: {line-length: disable, document-start: disable, \
                 braces: {max-spaces-inside: 1}, comments: {min-spaces-from-content: 1}, \
                 truthy: {check-keys: false}, quoted-strings: disable}}";
    let output =
        Command::new(python).args(["-m", "yamllint", "--strict", "-d", rules]).args(files).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// The README's commands and links lead somewhere.
#[test]
fn the_readme_points_to_what_is_there() {
    let readme = std::fs::read_to_string(chart().join("README.md")).unwrap();
    let mut links = 0;
    for link in readme.split("](").skip(1).filter_map(|rest| rest.split_once(')')) {
        let target = link.0.split('#').next().unwrap();
        let path = match target.split_once("github.com/spark-exporter/spark-exporter/") {
            Some((_, rest)) => {
                let (_, path) = rest.split_once("/main/").unwrap_or_default();
                root().join(path)
            }
            None if target.contains("://") || target.is_empty() => continue,
            None => chart().join(target),
        };
        assert!(path.exists(), "{target}");
        links += 1;
    }
    assert!(links >= 5, "{links}");
    for (name, _) in cases() {
        let known = readme.contains(&format!("{name}-values.yaml"));
        assert!(
            known || matches!(name.as_str(), "default" | "everything" | "persistence"),
            "{name}"
        );
    }
}
