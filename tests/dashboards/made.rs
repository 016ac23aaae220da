//! The committed files are what the source makes, and Grafana's own types of
//! several versions know everything that is in them.

use std::path::Path;
use std::process::Command;

use crate::read::{NAMES, folder};

/// The Python of an environment with the SDK for this version of Grafana.
fn python(grafana: &str) -> String {
    let part = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parts/grafana-sdk");
    let output = Command::new(part).arg(grafana).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "tests/parts/grafana-sdk {grafana}: {errors}");
    format!("{}/bin/python", String::from_utf8(output.stdout).unwrap().trim())
}

#[test]
fn the_files_are_what_their_source_makes() {
    let source = folder().join("source/main.py");
    let output =
        Command::new(python("10.1")).arg("-B").arg(source).arg("--check").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// From the oldest supported Grafana to the newest. A field that a version's
/// types do not know, or know in another form, would be lost on the way.
#[test]
fn types_of_each_grafana_keep_every_field() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dashboards/round_trip.py");
    let files = NAMES.map(|name| folder().join(format!("{name}.json")));
    for grafana in ["10.1", "11.6", "newest"] {
        let output =
            Command::new(python(grafana)).arg("-B").arg(&script).args(&files).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success(),
            "Grafana {grafana}: {said}{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    // The check itself: a field that nobody knows, and one of another type.
    let text = std::fs::read_to_string(&files[0]).unwrap();
    let broken = text.replacen("\"editable\": false", "\"editable\": false, \"edible\": true", 1);
    assert_ne!(text, broken);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), broken).unwrap();
    let output =
        Command::new(python("newest")).arg("-B").arg(&script).arg(file.path()).output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("$.edible: not known"));
}
