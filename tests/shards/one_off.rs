//! `diagnose --shard`, as the pods of an indexed Job call it; and what is
//! refused.

use std::collections::BTreeMap;
use std::process::{Command, Output};

use crate::divided::{Divided, copy, own, sharding};

fn exporter(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_spark-exporter")).args(arguments).output().unwrap()
}

fn errors(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn the_parts_of_a_directory_are_all_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    std::fs::create_dir(&logs).unwrap();
    for run in ["healthy", "healthy_short", "hot_key", "spill", "cold_start", "application_failed"]
    {
        copy(&format!("{run}/4.3.0"), &logs);
    }
    // None of them can say whose this is: one says that it cannot be read.
    std::fs::write(logs.join("app-garbage"), "this is not an event log\n").unwrap();
    let logs = logs.to_str().unwrap();
    let diagnosed = |more: &[&str]| {
        let output = exporter(
            &[&["diagnose", logs, "--format", "json", "--fail-on", "never"], more].concat(),
        );
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let applications = report["applications"].as_array().unwrap().clone();
        let by_id: BTreeMap<String, serde_json::Value> = applications
            .into_iter()
            .map(|one| (one["app_id"].as_str().unwrap().to_owned(), one))
            .collect();
        (by_id, output.status.code().unwrap(), errors(&output))
    };
    let (whole, code, said) = diagnosed(&[]);
    assert_eq!((whole.len(), code), (6, 2), "{said}");
    let mut together = BTreeMap::new();
    for shard in 0..3 {
        let number = shard.to_string();
        let (part, code, said) = diagnosed(&["--shard", &number, "--total-shards", "3"]);
        let nameless = sharding(0, 3).owner_of("default", "_unnamed").0 == shard;
        assert_eq!(code, if nameless { 2 } else { 0 }, "{said}");
        assert_eq!(said.contains("app-garbage"), nameless, "{said}");
        let line = format!("shard {shard} of 3: {} of ", part.len());
        assert!(said.contains(&line), "{line}: {said}");
        for (id, application) in part {
            let name = application["app_name"].as_str().unwrap();
            assert_eq!(sharding(0, 3).owner_of("default", name).0, shard, "{name}");
            assert!(together.insert(id, application).is_none());
        }
    }
    assert_eq!(together, whole);
}

#[test]
fn what_cannot_be_is_refused() {
    for (arguments, parts) in [
        (vec!["--shard", "0"], vec!["--total-shards"]),
        (vec!["--total-shards", "3"], vec!["--shard"]),
        (
            vec!["--shard", "3", "--total-shards", "3"],
            vec!["shard 3 of 3 does not exist", "the last one is 2"],
        ),
        (vec!["--shard", "0", "--total-shards", "0"], vec!["the least is 1"]),
        (
            vec!["--shard", "spark-exporter-7d9f8b6c5-x2x4z", "--total-shards", "3"],
            vec!["StatefulSet", "x2x4z"],
        ),
        (vec!["--shard", "one", "--total-shards", "3"], vec!["ends in -N"]),
    ] {
        for command in [vec!["--event-log.dir", "."], vec!["diagnose", "."]] {
            let output = exporter(&[&command[..], &arguments[..]].concat());
            assert_ne!(output.status.code(), Some(0), "{arguments:?}");
            for part in &parts {
                assert!(errors(&output).contains(part), "{arguments:?}: {}", errors(&output));
            }
        }
    }
}

/// Whoever starts it reads what a resize will do, and once it was one, what it
/// did.
#[tokio::test]
async fn start_up_says_what_a_resize_does() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    std::fs::create_dir(&logs).unwrap();
    copy("healthy_short/4.3.0", &logs);
    let arguments = |path: &str| {
        let logs = logs.display().to_string();
        let store = folder.path().join(path).display().to_string();
        vec!["--event-log.dir".to_owned(), logs, "--storage.path".to_owned(), store]
    };
    let one = Divided::start(1, |_| arguments("0.redb"));
    one.shown(|texts| own(&texts[0], "storage_runs") == 1.0).await;
    let said = one.programs[0].said().join("\n");
    assert!(!said.contains("this daemon covers one shard"), "{said}");
    drop(one);
    let two = Divided::start(2, |shard| arguments(&format!("{shard}.redb")));
    two.shown(|texts| texts.iter().all(|text| own(text, "storage_up") == 1.0)).await;
    for (shard, program) in two.programs.iter().enumerate() {
        let said = program.said().join("\n");
        let changed = said.contains("the number of shards changed");
        assert_eq!(changed, shard == 0, "the second has a new store: {said}");
    }
}
