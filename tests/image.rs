//! The image and the release: `Dockerfile`, `.ci/build` and the workflows say
//! the same as Cargo.toml and the chart, and nothing in them floats. (No
//! container engine runs here: that the image builds is seen where it is
//! released. hadolint reads the Dockerfile in `compose/`.)

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use common::real::{part, root};
use common::yaml;
use serde_json::Value;

fn text(path: &str) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn workflows() -> Vec<PathBuf> {
    let files = std::fs::read_dir(root().join(".github/workflows")).unwrap();
    let files: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
    assert!(!files.is_empty(), "no workflow");
    files
}

/// `KEY = "value"` of Cargo.toml's package, or of the toolchain's file.
fn toml(file: &str, key: &str) -> String {
    let text = text(file);
    let line = text.lines().find(|line| line.starts_with(&format!("{key} = "))).unwrap();
    line.split('"').nth(1).unwrap().to_owned()
}

/// The lines of the Dockerfile's instructions, those of one word for word.
fn instructions(word: &str) -> Vec<String> {
    let joined = text("Dockerfile").replace("\\\n", " ");
    let found = joined.lines().filter_map(|line| line.strip_prefix(word)?.strip_prefix(' '));
    found.map(|rest| rest.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn nothing_that_the_image_is_made_of_floats() {
    let bases = instructions("FROM");
    assert_eq!(bases.len(), 2, "{bases:?}");
    for base in &bases {
        let image = base.split(' ').next().unwrap();
        let (_, tag) = image.rsplit_once(':').unwrap_or_else(|| panic!("{base} has no tag"));
        assert_ne!(tag, "latest", "{base}");
    }
    // The compiler is the one that the tests run with.
    let rust = toml("rust-toolchain.toml", "channel");
    assert!(bases[0].starts_with(&format!("rust:{rust}-")), "{} is not Rust {rust}", bases[0]);
    assert!(bases[1].contains("distroless") && bases[1].ends_with(":nonroot"), "{}", bases[1]);
    // Debian of the one is Debian of the other, or its glibc is too new.
    assert!(bases[0].contains("trixie") == bases[1].contains("debian13"), "{bases:?}");
    for run in instructions("RUN").iter().filter(|run| run.contains("cargo install")) {
        assert!(run.contains("--locked") && run.contains('@'), "{run} floats");
    }
    assert!(instructions("ADD").is_empty(), "COPY copies; ADD fetches and unpacks as well");
}

#[test]
fn the_program_in_it_has_every_feature() {
    let build = text(".ci/build");
    let line = build.lines().find(|line| line.starts_with("cargo ")).unwrap();
    assert!(line.contains("--all-features") && line.contains("--locked"), "{line}");
    assert!(line.contains("--release"), "{line}");
    assert!(instructions("RUN").iter().any(|run| run.starts_with(".ci/build ")));
    // Of the two who install it, the same version.
    let version_of = |text: &str| -> Vec<String> {
        let found = text.split("cargo-auditable@").skip(1);
        found.map(|rest| rest.split_whitespace().next().unwrap().to_owned()).collect()
    };
    let mut versions = version_of(&text("Dockerfile"));
    for workflow in workflows() {
        versions.extend(version_of(&std::fs::read_to_string(workflow).unwrap()));
    }
    assert!(versions.len() >= 2, "{versions:?}");
    versions.dedup();
    assert_eq!(versions.len(), 1, "{versions:?}");
}

/// The chart runs it as who it is, reaches it where it listens, and names the
/// image that is released, of this version.
#[test]
fn it_is_what_the_chart_runs() {
    let chart = yaml(&root().join("helm/spark-exporter/Chart.yaml"));
    let values = yaml(&root().join("helm/spark-exporter/values.yaml"));
    assert_eq!(chart["appVersion"], toml("Cargo.toml", "version").as_str());

    let user = instructions("USER");
    let pod = &values["podSecurityContext"];
    assert_eq!(user, [format!("{}:{}", pod["runAsUser"], pod["runAsGroup"])]);
    let port = values["web"]["port"].to_string();
    assert_eq!(instructions("EXPOSE"), std::slice::from_ref(&port));
    let help = Command::new(env!("CARGO_BIN_EXE_spark-exporter")).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    assert!(help.contains(&format!(":{port}")), "it listens on another port unless it is told");

    let entry = instructions("ENTRYPOINT");
    assert_eq!(entry, ["[\"/usr/local/bin/spark-exporter\"]"], "probes call it by this name");
    assert!(instructions("CMD").is_empty());

    // ghcr.io/OWNER/NAME, as the workflow has it of the repository.
    let source = chart["sources"][0].as_str().unwrap();
    let repository = source.strip_prefix("https://github.com/").unwrap();
    let image = &values["image"];
    assert_eq!(image["registry"], "ghcr.io");
    assert_eq!(image["repository"], repository);
    assert!(
        text(".github/workflows/release.yml").contains("IMAGE: ghcr.io/${{ github.repository }}\n")
    );
    let labels = instructions("LABEL").join(" ");
    for (label, value) in
        [("source", source), ("licenses", "Apache-2.0"), ("title", "spark-exporter")]
    {
        let label = format!("org.opencontainers.image.{label}=\"{value}\"");
        assert!(labels.contains(&label), "{label} is missing: {labels}");
    }
}

#[test]
fn workflows_are_sound() {
    let output = Command::new(part(&["actionlint"]))
        .args(["-no-color", "-shellcheck=", "-pyflakes="])
        .args(workflows())
        .current_dir(root())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");

    let mut pinned: BTreeMap<String, String> = BTreeMap::new();
    for file in workflows() {
        let name = file.display();
        let workflow = yaml(&file);
        assert_eq!(
            workflow["permissions"],
            serde_json::json!({}),
            "{name}: jobs say what they need"
        );
        for (job, what) in workflow["jobs"].as_object().unwrap() {
            assert!(what["timeout-minutes"].is_u64(), "{name}: {job} may run for six hours");
            assert!(what["permissions"].is_object(), "{name}: {job} does not say what it may");
            for step in what["steps"].as_array().unwrap() {
                let Some(uses) = step["uses"].as_str() else { continue };
                let (action, commit) = uses.split_once('@').unwrap();
                let hexadecimal = commit.chars().all(|c| c.is_ascii_hexdigit());
                assert!(commit.len() == 40 && hexadecimal, "{name}: {uses} can be moved");
                let before = pinned.insert(action.to_owned(), commit.to_owned());
                assert!(before.is_none_or(|it| it == commit), "{name}: two versions of {action}");
                if action == "actions/checkout" {
                    assert_eq!(
                        step["with"]["persist-credentials"],
                        Value::Bool(false),
                        "{name}: {job}"
                    );
                }
            }
        }
        // A reader sees which version a commit is.
        for line in std::fs::read_to_string(&file).unwrap().lines() {
            let uses = line.contains("uses: ");
            assert!(!uses || line.contains(" # v"), "{name}: {line} does not say which version");
        }
    }
    assert!(pinned.len() >= 5, "{pinned:?}");
}
