//! A directory of recorded runs, divided by different numbers of shards.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use crate::common::{ended_now, log_text, now_ms};
use crate::divided::{Divided, copy, elsewhere, labels, own, series, sharding};

/// Some with several runs of a name, in logs of every layout.
const RUNS: [&str; 24] = [
    "application_failed/4.3.0",
    "cache_evicted/4.3.0",
    "cartesian/4.3.0",
    "cold_start/4.3.0",
    "count_distinct/4.3.0",
    "driver_gap/4.3.0",
    "executor_killed/4.3.0",
    "gc_pressure/4.3.0",
    "healthy/4.3.0",
    "healthy/3.5.9",
    "healthy/3.4.4",
    "healthy/3.3.4",
    "healthy_short/4.3.0",
    "hot_key/4.3.0",
    "hot_key/3.5.9",
    "hot_key-healthy/4.3.0",
    "job_failed/4.3.0",
    "large_broadcast-small/4.3.0",
    "left_running/4.3.0",
    "partial_aggregation/4.3.0",
    "python_udf/4.3.0",
    "spill/4.3.0",
    "spill/3.5.9",
    "stage_retries/4.3.0",
];

/// Those that there are: not every workload was recorded with every release.
fn fill(logs: &Path) -> usize {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/logs");
    let there: Vec<&str> = RUNS.into_iter().filter(|run| examples.join(run).is_dir()).collect();
    assert!(there.len() >= 20, "{there:?}");
    for run in &there {
        copy(run, logs);
    }
    there.len()
}

fn totals(store: &Path) -> BTreeMap<String, serde_json::Value> {
    let output = Command::new(env!("CARGO_BIN_EXE_spark-exporter"))
        .args(["store", "export", "--storage.path"])
        .arg(store)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    let totals = lines.lines().filter_map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let total = line.get("totals")?;
        let mut sums = total["totals"].clone();
        // When a name was first seen is each daemon's own.
        let times = ["since_ms", "counted_at_ms"];
        sums.as_object_mut().unwrap().retain(|key, _| !times.contains(&key.as_str()));
        sums["findings"] = serde_json::Value::Null;
        Some((total["app_name"].as_str().unwrap().to_owned(), sums))
    });
    totals.collect()
}

/// All series of runs and names, their values too, whatever the number of
/// shards; and who has what is who should.
#[tokio::test]
async fn together_they_show_what_one_shows() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    std::fs::create_dir(&logs).unwrap();
    let mut count = fill(&logs);
    let config = folder.path().join("config.yml");
    let text = format!(
        "clusters: [{{name: c, event_log_dirs: ['{}']}}]\nintervals: {{event_log_dir: 1s}}\n\
         retention: 1d\nnames:\n  expected: [{{app_name: nightly, within: 26h}}]\n  rules:\n  \
         - {{pattern: 'orders-.*', replacement: 'orders'}}\n",
        logs.display()
    );
    std::fs::write(&config, text).unwrap();
    let store = |total: u32, shard: u32| folder.path().join(format!("{total}-{shard}.redb"));
    let arguments = |total: u32, shard: u32| {
        let store = store(total, shard).display().to_string();
        vec![
            "--config.file".to_owned(),
            config.display().to_string(),
            "--storage.path".to_owned(),
            store,
        ]
    };
    // Stores that are there before the runs end, or nothing would be counted.
    let all: Vec<(u32, Divided)> = [1, 2, 3, 5]
        .into_iter()
        .map(|total| (total, Divided::start(total, |shard| arguments(total, shard))))
        .collect();
    for (_, divided) in &all {
        divided.shown(|texts| texts.iter().all(|text| own(text, "storage_up") == 1.0)).await;
    }
    for (number, run) in
        ["application_failed/4.3.0", "healthy_short/4.3.0", "hot_key/4.3.0"].iter().enumerate()
    {
        std::fs::write(
            logs.join(format!("app-new-{number}")),
            ended_now(run, &format!("app-new-{number}")),
        )
        .unwrap();
        count += 1;
    }
    // One of them was left without an end: it is shown, and not stored yet.
    let count = count as f64;
    let mut one: BTreeSet<String> = BTreeSet::new();
    for (total, divided) in all {
        let texts = divided
            .shown(|texts| {
                let all = |text: &String| own(text, "applications") + elsewhere(text, "c") == count;
                let written = |text: &String| own(text, "storage_pending_runs") == 0.0;
                let runs: f64 = texts.iter().map(|text| own(text, "storage_runs")).sum();
                texts.iter().all(|text| all(text) && written(text)) && runs == count - 1.0
            })
            .await;
        // Totals and baselines are looked at between two expositions.
        let texts = if total == 1 {
            one = texts.iter().flat_map(|text| series(text)).collect();
            let again = divided.shown(|texts| {
                let now: BTreeSet<String> = texts.iter().flat_map(|text| series(text)).collect();
                now == one || {
                    one = now;
                    false
                }
            });
            again.await
        } else {
            divided
                .shown(|texts| {
                    texts.iter().map(|text| series(text).len()).sum::<usize>() >= one.len()
                })
                .await
        };
        let mut together = BTreeSet::new();
        let mut number = 0;
        for text in &texts {
            number += series(text).len();
            together.extend(series(text));
        }
        let (missing, more): (Vec<_>, Vec<_>) =
            (one.difference(&together).collect(), together.difference(&one).collect());
        assert!(
            missing.is_empty() && more.is_empty(),
            "{total} shards: without {missing:#?}, but with {more:#?}"
        );
        assert_eq!(number, one.len(), "{total} shards: no series twice");
        for (shard, text) in (0..).zip(&texts) {
            assert_eq!(
                (own(text, "shard_ordinal"), own(text, "shards")),
                (f64::from(shard), f64::from(total))
            );
            for family in ["spark_application_info", "spark_application_runs_total"] {
                for name in labels(text, family, "app_name") {
                    assert_eq!(sharding(shard, total).owner_of("c", &name).0, shard, "{name}");
                }
            }
            assert_eq!(text.matches("spark_exporter_applications_skipped{").count(), 6);
            let skipped = text
                .lines()
                .filter(|line| line.starts_with("spark_exporter_applications_skipped{"));
            assert!(
                skipped.clone().all(|line| line.ends_with(" 0")),
                "{:?}",
                skipped.collect::<Vec<_>>()
            );
        }
        let names: BTreeSet<String> = texts
            .iter()
            .flat_map(|text| labels(text, "spark_application_runs_total", "app_name"))
            .collect();
        assert!(names.contains("nightly") && names.contains("orders"), "{names:?}");
        // As many logs were read whole as there are runs, by all together.
        let reads: f64 = texts.iter().map(|text| own(text, "event_log_reads_total")).sum();
        assert!(reads >= count && reads <= count + 2.0, "{reads} reads of {count} runs");
        drop(divided);
        let mut sums = BTreeMap::new();
        for shard in 0..total {
            for (name, total) in totals(&store(total, shard)) {
                assert!(sums.insert(name.clone(), total).is_none(), "{name} is in two stores");
            }
        }
        assert!(sums.len() >= 10, "{sums:?}");
        assert_eq!(sums, totals_of_one(&sums, total, &store(1, 0)), "{total} shards");
        let counted: u64 = sums
            .values()
            .flat_map(|total| total["runs"].as_array().unwrap().clone())
            .map(|runs| runs.as_u64().unwrap())
            .sum();
        assert_eq!(counted, 3, "those that ended while the stores were there");
    }
}

fn totals_of_one(
    sums: &BTreeMap<String, serde_json::Value>,
    total: u32,
    one: &Path,
) -> BTreeMap<String, serde_json::Value> {
    if total == 1 { sums.clone() } else { totals(one) }
}

/// What never gets a name is told of by one shard; a name that comes late
/// decides when it comes.
#[tokio::test]
async fn what_has_no_name_is_told_of_once() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    std::fs::create_dir(&logs).unwrap();
    std::fs::write(logs.join("app-garbage"), "this is not an event log\n").unwrap();
    // Without its start it is known by the name of its log.
    let text = log_text("healthy_short/4.3.0");
    let headless: String = text
        .lines()
        .filter(|line| !line.contains("SparkListenerApplicationStart"))
        .flat_map(|line| [line, "\n"])
        .collect();
    std::fs::write(logs.join("headless log"), headless).unwrap();
    // It runs, and Spark has only written out what comes before its start.
    let growing = crate::common::moved(&text, now_ms() - 1_796_000_000_000);
    let start = growing.find("{\"Event\":\"SparkListenerApplicationStart\"").unwrap();
    let late = logs.join("app-late.inprogress");
    std::fs::write(&late, &growing[..start]).unwrap();
    let config = folder.path().join("config.yml");
    let text = format!(
        "clusters: [{{name: c, event_log_dirs: ['{}']}}]\nintervals: {{event_log_dir: 1s}}\n\
         retention: 1d\n",
        logs.display()
    );
    std::fs::write(&config, text).unwrap();
    let divided =
        Divided::start(3, |_| vec!["--config.file".to_owned(), config.display().to_string()]);
    let sum =
        |texts: &[String], series: &str| texts.iter().map(|text| own(text, series)).sum::<f64>();
    let skipped = |reason: &str| format!("applications_skipped{{reason=\"{reason}\"}}");
    let texts = divided
        .shown(|texts| {
            let held = sum(texts, "applications") == 1.0;
            held && sum(texts, &skipped("unreadable")) == 1.0
                && sum(texts, &skipped("in_progress")) == 1.0
        })
        .await;
    let nameless = sharding(0, 3).owner_of("c", "_unnamed").0 as usize;
    assert_eq!(own(&texts[nameless], &skipped("unreadable")), 1.0);
    assert_eq!(own(&texts[nameless], &skipped("in_progress")), 1.0);
    let name = labels(&texts.concat(), "spark_application_info", "app_name").pop_first().unwrap();
    let owner = sharding(0, 3).owner_of("c", &name).0 as usize;
    assert_eq!(own(&texts[owner], "applications"), 1.0, "{name}");
    // Its name comes.
    let middle = start + (growing.len() - start) / 2;
    let cut = growing[..middle].rfind('\n').unwrap() + 1;
    std::fs::write(&late, &growing[..cut]).unwrap();
    let texts = divided
        .shown(|texts| {
            sum(texts, "applications") == 2.0
                && texts.iter().map(|text| elsewhere(text, "c")).sum::<f64>() == 4.0
        })
        .await;
    assert_eq!(sum(&texts, &skipped("in_progress")), 0.0);
    let owner = sharding(0, 3).owner_of("c", "ping").0 as usize;
    let followed = |text: &String| {
        text.lines().any(|line| {
            line.starts_with("spark_exporter_target_event_logs_followed{") && line.ends_with(" 1")
        })
    };
    for (shard, text) in texts.iter().enumerate() {
        assert_eq!(followed(text), shard == owner, "{shard} of {owner}\n{text}");
    }
    assert_eq!(divided.programs.len(), 3);
}
