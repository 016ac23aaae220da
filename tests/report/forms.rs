//! What `diagnose` writes: every form of every recorded run, and the file it
//! goes to.

use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use spark_exporter::config::Thresholds;
use spark_exporter::diagnose::diagnose as diagnosed;
use spark_exporter::model::{
    Application, Executor, ExecutorTotals, Job, JobStatus, MemoryPeaks, Plan, PlanNode, RunId,
    Source, SqlExecution, SqlStatus, Stage, StageId, StageStatus, TaskCounts,
};
use spark_exporter::report::{self, Place, Texts, View};

use crate::common::recorded;
use crate::diagnose;

fn newest_of_each() -> Vec<PathBuf> {
    let logs = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/logs");
    let runs = std::fs::read_dir(logs).unwrap().map(|entry| entry.unwrap().path());
    runs.filter_map(|run| {
        let versions = std::fs::read_dir(run).ok()?.map(|entry| entry.unwrap().path());
        versions.max()
    })
    .collect()
}

/// The sections of a report, in their order, in the forms for people. A run
/// without findings has neither findings nor suggestions.
const SECTIONS: [&str; 8] = [
    "Findings",
    "Execution and timeline",
    "Skew and long tails",
    "SQL plans",
    "Configuration and risks",
    "Suggestions, in order",
    "Evidence and limits",
    "To be checked elsewhere",
];

#[test]
fn every_section_stands_where_it_belongs_in_every_form() {
    let log = recorded("hot_key/4.3.0");
    for (form, title) in [("markdown", "## "), ("html", "<h2>")] {
        let report = diagnose(&log, &["--format", form]);
        let places: Vec<usize> = std::iter::once("Conclusion")
            .chain(SECTIONS)
            .map(|section| {
                let title = format!("{title}{section}");
                report.find(&title).unwrap_or_else(|| panic!("{form}: {section} is missing"))
            })
            .collect();
        assert!(places.is_sorted(), "{form}: {places:?}");
    }
    let text = diagnose(&log, &[]);
    let json: serde_json::Value =
        serde_json::from_str(&diagnose(&log, &["--format", "json"])).unwrap();
    let report = &json["applications"][0];
    assert_eq!(report["conclusion"]["slow_layer"], "join");
    assert_eq!(report["conclusion"]["kind"], "data");
    for said in ["Stage 10.0", "join", "Broadcast the smaller side", "7.0 s could be saved"] {
        assert!(text.contains(said), "{said}");
    }
    let parts = report["time"]["parts_seconds"].as_object().unwrap();
    let sum: f64 = parts.values().filter_map(serde_json::Value::as_f64).sum();
    let total = report["time"]["total_seconds"].as_f64().unwrap();
    assert!((sum - total).abs() < 0.01, "{sum} {total}");
}

/// Pages that a person can open anywhere: nothing is loaded, nothing runs,
/// tags are closed, anchors lead somewhere, and size has a bound.
#[test]
fn every_recorded_run_has_a_page_that_is_whole() {
    for log in newest_of_each() {
        let name = log.display().to_string();
        let page = diagnose(&log, &["--format", "html", "--latest", "1"]);
        assert!(page.len() < 400_000, "{name}: {} bytes", page.len());
        for nothing in ["<script", "http://", "https://", "src=", "@import", "url(", "NaN", "inf"] {
            let found = page.find(nothing).map(|at| &page[at.saturating_sub(60)..at + 20]);
            assert!(found.is_none() || nothing == "inf", "{name}: {nothing}: {found:?}");
        }
        for tag in ["section", "article", "table", "figure", "svg", "dl", "ol", "ul", "li", "div"] {
            let opened = page.matches(&format!("<{tag}>")).count()
                + page.matches(&format!("<{tag} ")).count();
            assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{name}: {tag}");
        }
        let ids: Vec<&str> =
            page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        let mut unique = ids.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(ids.len(), unique.len(), "{name}: an id twice");
        for link in page.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
            let to_stage = link.starts_with("stage-");
            assert!(to_stage || ids.contains(&link), "{name}: #{link} leads nowhere");
        }
    }
}

/// Where the operator gives prices, and nowhere else.
#[test]
fn what_a_run_cost_stands_in_every_form() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.yml");
    std::fs::write(&file, "prices: {core_hour: 3600, currency: <b>EUR}\n").unwrap();
    let log = recorded("hot_key/4.3.0");
    let with =
        |form: &str| diagnose(&log, &["--format", form, "--config.file", file.to_str().unwrap()]);
    let json: serde_json::Value = serde_json::from_str(&with("json")).unwrap();
    let application = &json["applications"][0];
    let (cost, bought) = (&application["cost"], &application["time"]);
    // 3600 an hour is 1 a core-second, and the run had 2 cores for some 32 s.
    let amount = cost["amount"].as_f64().unwrap();
    assert!(amount > 40.0 && amount < 2.0 * bought["total_seconds"].as_f64().unwrap(), "{cost}");
    let unused = cost["unused"].as_f64().unwrap();
    assert!(unused > 0.0 && unused < amount, "{cost}");
    assert_eq!(cost["currency"], "<b>EUR");
    let said = format!("{amount:.2} <b>EUR, of it {unused:.2} <b>EUR for cores that no task used");
    let text = with("text");
    assert!(text.contains(&said), "{said} in {text}");
    let markdown = with("markdown").replace('\\', "");
    assert!(markdown.contains("for cores that no task used"), "{markdown}");
    let html = with("html");
    assert!(
        html.contains(&said.replace('<', "&lt;").replace('>', "&gt;")) && !html.contains("<b>EUR")
    );
    assert!(!diagnose(&log, &[]).contains("for cores that no task used"));
}

#[test]
fn a_report_goes_where_it_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.html");
    let path = file.to_str().unwrap();
    let log = recorded("hot_key/4.3.0");
    let printed = diagnose(&log, &["--format", "html", "--output", path]);
    assert_eq!(printed, "");
    let page = std::fs::read_to_string(&file).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));

    let run = |arguments: &[&str]| {
        std::process::Command::new(env!("CARGO_BIN_EXE_spark-exporter"))
            .arg("diagnose")
            .arg(&log)
            .args(arguments)
            .output()
            .unwrap()
    };
    let nowhere = folder.path().join("no/such/folder").display().to_string();
    let output = run(&["--output", &nowhere]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("cannot write to") && error.contains(&nowhere), "{error}");

    // A page is of one application.
    let healthy = recorded("healthy/4.3.0").display().to_string();
    let output = run(&["--format", "html", "--fail-on", "never", &healthy]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("1 more") && error.contains("--app-id"), "{error}");
    let page = String::from_utf8(output.stdout).unwrap();
    assert_eq!(page.matches("<!DOCTYPE").count(), 1);
}

/// From the slow job to its slowest stage, to its tasks, and on: each step with
/// its number, found or ruled out, and where none is it, what comes next.
#[test]
fn the_longest_stage_is_judged_step_by_step() {
    let steps = |run: &str| {
        let text = diagnose(&recorded(run), &[]);
        let (_, rest) = text.split_once("step by step:\n").unwrap();
        rest.lines().take(7).map(str::trim).map(str::to_owned).collect::<Vec<_>>()
    };
    let ill = steps("hot_key/4.3.0");
    for (step, parts) in [
        (0, ["Longest stage: 10.0", "51 % of the run"]),
        (1, ["median 481 ms, longest 15 s", "skew: more data (hot_key)"]),
        (2, ["Garbage collection", "no finding"]),
        (3, ["Spilled to disk: 0 B", "no finding"]),
        (4, ["Shuffle: 50 MiB read", "no finding"]),
        (5, ["I/O per core: 1.3 MB/s of shuffle read", "no finding"]),
        (6, ["Small files, Python, exploding joins", "no finding"]),
    ] {
        assert!(parts.iter().all(|part| ill[step].contains(part)), "{:?}", ill[step]);
    }
    let collected = steps("gc_pressure/4.3.0");
    assert!(collected[2].contains("(found)"), "{collected:?}");
    // The quantiles that a person would look for in Spark's UI.
    let text = diagnose(&recorded("hot_key/4.3.0"), &[]);
    let row = text.lines().find(|line| line.trim_start().starts_with("10.0 ")).unwrap();
    for three in ["481 ms / 15 s / 15 s", "3,982 / 343,779 / 343,779", "492 KiB / 42 MiB / 42 MiB"]
    {
        assert!(row.contains(three), "{row}");
    }
}

#[test]
fn a_run_that_read_from_a_cache_says_so() {
    let cached = diagnose(&recorded("cached/4.3.0"), &[]);
    assert!(cached.contains("read cached tables: compare with runs that did so too"), "{cached}");
    assert!(!diagnose(&recorded("hot_key/4.3.0"), &[]).contains("cached"));
}

/// Depth, join type, exchange kinds and numbers of the operators, those that
/// take the time marked, and what adaptive execution did.
#[test]
fn a_plan_is_a_tree_with_its_numbers() {
    let text = diagnose(&recorded("hot_key/4.3.0"), &[]);
    let (_, plan) = text.split_once("  SQL execution 1,").unwrap();
    let line = |name: &str| plan.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
    let depth = |line: &str| line.len() - line.trim_start().len();
    let (join, sort, exchange) =
        (line("SortMergeJoin (Inner)"), line("Sort:"), line("Exchange (by hash, 16 partitions)"));
    assert!(depth(join) < depth(sort) && depth(sort) < depth(exchange), "{plan}");
    assert!(join.contains("400,000 rows") && sort.contains("hot"), "{join}\n{sort}");
    assert!(exchange.contains("50 MiB") && exchange.contains("stage 7.0, 10.0"), "{exchange}");
    assert!(plan.contains("Adaptive execution replaced the plan 4 times"), "{plan}");
}

#[test]
fn limits_are_said_in_every_form() {
    let log = recorded("hot_key/4.3.0");
    for form in ["text", "markdown", "html", "json"] {
        let report = diagnose(&log, &["--format", form]);
        for limit in ["Key values are unknown", "waited in a queue", "code of UDFs"] {
            assert!(report.contains(limit), "{form}: {limit}");
        }
        assert!(report.contains("Which key is hot"), "{form}: what to look up elsewhere");
    }
}

/// Thousands of everything, all with names that want to be markup: the reports
/// stay small, say what they left out, and nothing becomes markup.
#[test]
fn a_huge_and_hostile_run_has_a_small_page() {
    const EVIL: &str = "\"'><script>alert(1)</script></section><!-- `|*\u{202e}";
    const MANY: u32 = 1_000;
    let start = Timestamp::from_second(1_764_460_800).unwrap();
    let at = |second: u32| start + SignedDuration::from_secs(i64::from(second));
    let id = RunId { cluster: EVIL.to_owned(), app_id: EVIL.to_owned(), attempt_id: None };
    let mut run = Application::new(id, Source::EventLog, at(2 * MANY));
    run.name = EVIL.repeat(50);
    run.spark_version = Some(EVIL.to_owned());
    run.start = Some(start);
    run.end = Some(at(2 * MANY));
    run.configuration.set("spark.sql.shuffle.partitions", EVIL);
    run.jobs = (0..MANY)
        .map(|id| Job {
            id,
            status: JobStatus::Succeeded,
            submitted: Some(at(id)),
            completed: Some(at(id + 1)),
            stage_ids: vec![id],
            failure_reason: None,
            sql_execution_id: Some(u64::from(id)),
            trace_context: None,
        })
        .collect();
    run.stages = (0..MANY)
        .map(|id| Stage {
            name: EVIL.to_owned(),
            status: StageStatus::Complete,
            submitted: Some(at(id)),
            first_task_launched: Some(at(id)),
            completed: Some(at(id + 1)),
            tasks: TaskCounts { total: 1, succeeded: 1, ..TaskCounts::default() },
            ..Stage::new(StageId { stage: id, attempt: 0 })
        })
        .collect();
    run.executors = (0..MANY)
        .map(|id| Executor {
            id: format!("{id}{EVIL}"),
            host: EVIL.to_owned(),
            cores: 4,
            resource_profile_id: 0,
            added: Some(at(id)),
            removed: Some(at(id + 1)),
            removed_reason: Some(EVIL.to_owned()),
            pod: None,
            totals: ExecutorTotals::default(),
            storage_memory_used_bytes: None,
            storage_memory_bytes: None,
            peaks: MemoryPeaks::default(),
        })
        .collect();
    let node = |place: u32| PlanNode {
        name: EVIL.into(),
        text: EVIL.repeat(40).into(),
        parent: place.checked_sub(1),
        end: MANY,
        metadata: vec![("Location".into(), EVIL.repeat(40).into())],
        metrics: Vec::new(),
        stages: Vec::new(),
    };
    let plan = Plan { nodes: (0..MANY).map(node).collect(), nodes_omitted: 0 };
    run.sql = Some(
        (0..u64::from(MANY))
            .map(|id| SqlExecution {
                status: SqlStatus::Completed,
                start: Some(start),
                end: Some(at(2 * MANY)),
                description: EVIL.repeat(40).into(),
                plan: (id < 5).then(|| plan.clone()),
                ..SqlExecution::new(id)
            })
            .collect(),
    );
    let diagnosis = diagnosed(&run, &Thresholds::default());
    let view = View { application: &run, diagnosis: &diagnosis };
    for texts in [Texts::Hidden, Texts::Shown] {
        let page = report::html(view, texts, Place::File);
        assert!(page.len() < 600_000, "{} bytes", page.len());
        for evil in ["<script", "<!--", "\u{202e}", "alert(1)</"] {
            assert!(!page.contains(evil), "{evil}");
        }
        assert_eq!(page.matches("</section>").count(), page.matches("<section ").count());
        for left_out in ["960 shorter ones not shown", "more operators not shown"] {
            assert!(page.contains(left_out), "{left_out}");
        }
        let markdown = report::markdown(view, texts);
        assert!(markdown.len() < 400_000, "{} bytes", markdown.len());
        assert!(!markdown.contains("<script") && !markdown.contains("<!--"));
    }
}
