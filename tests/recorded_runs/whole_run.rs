//! Rules about the application as a whole, on recorded runs whose clock or
//! source was changed: what takes a quarter of an hour is not recorded.

use std::fs;
use std::path::Path;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use spark_exporter::config::{Limits, Thresholds};
use spark_exporter::diagnose::{Advice, Cause, Finding, Rule, Severity, Subject, diagnose};
use spark_exporter::eventlog::{ReadOptions, read, scan};
use spark_exporter::fetch::files::LocalFiles;
use spark_exporter::model::{Application, Source, State};

use super::edited::edited;
use super::edited::text_of;
use super::recorded;

/// All recordings of one run, by Spark's version.
pub(crate) fn recordings(run: &str) -> Vec<(String, Application)> {
    let found: Vec<_> = recorded()
        .into_iter()
        .filter(|(name, ..)| name == run)
        .map(|(_, version, application)| (version, application))
        .collect();
    assert!(!found.is_empty(), "{run} is not recorded");
    found
}

pub(crate) fn findings(application: &Application, rule: Rule) -> Vec<Finding> {
    let diagnosis = diagnose(application, &Thresholds::default());
    diagnosis.findings.into_iter().filter(|finding| finding.rule == rule).collect()
}

/// Edited: the same run, looked at so much later through its driver's REST
/// API, with nothing having happened since.
fn watched_later(mut application: Application, minutes: i64) -> Application {
    application.source = Source::Driver;
    application.observed += SignedDuration::from_mins(minutes);
    application
}

#[test]
fn a_driver_that_lives_on_after_its_work_is_idle() {
    for (version, application) in recordings("left_running") {
        assert_eq!(application.state, State::Running, "{version}");
        let later = watched_later(application.clone(), 16);
        let found = findings(&later, Rule::ApplicationIdle);
        assert_eq!(found.len(), 1, "{version}");
        assert_eq!(found[0].severity, Severity::Warning, "{version}");
        assert!(found[0].headline.contains("2 cores held"), "{}", found[0].headline);
        let held = found[0].impact.core.expect("cores held").as_secs();
        assert!((2 * 15 * 60..2 * 17 * 60).contains(&held), "{version}: {held}");
        assert!(findings(&later, Rule::StuckStage).is_empty(), "{version}: no stage is active");
        assert!(findings(&later, Rule::DriverGap).is_empty(), "{version}: told once");
        let sooner = watched_later(application, 14);
        assert!(findings(&sooner, Rule::ApplicationIdle).is_empty(), "{version}: near miss");
    }
}

#[test]
fn tasks_that_hang_make_a_stuck_stage() {
    for (version, application) in recordings("stuck_stage") {
        assert_eq!(application.state, State::Running, "{version}");
        let later = watched_later(application.clone(), 16);
        let found = findings(&later, Rule::StuckStage);
        assert_eq!(found.len(), 1, "{version}");
        assert_eq!(found[0].severity, Severity::Warning, "{version}");
        assert!(findings(&later, Rule::ApplicationIdle).is_empty(), "{version}: a job runs");
        let sooner = watched_later(application.clone(), 14);
        assert!(findings(&sooner, Rule::StuckStage).is_empty(), "{version}: near miss");
        // From its log nobody knows what the running tasks do.
        let mut followed = later;
        followed.source = Source::EventLog;
        let found = findings(&followed, Rule::StuckStage);
        assert_eq!(found.len(), 1, "{version}");
        assert_eq!(found[0].severity, Severity::Info, "{version}");
        // Rows that a running task told a minute ago.
        let mut reading = watched_later(application, 16);
        for stage in &mut reading.stages {
            stage.last_progress = Some(reading.observed - SignedDuration::from_mins(1));
        }
        assert!(findings(&reading, Rule::StuckStage).is_empty(), "{version}: it gets on");
    }
}

/// Edited: everything `factor` times as long after the start.
fn stretched(mut application: Application, factor: i64) -> Application {
    let start = application.start.expect("a start");
    let later = |when: Timestamp| start + when.duration_since(start) * factor as i32;
    let move_on = |when: &mut Option<Timestamp>| *when = when.map(later);
    move_on(&mut application.end);
    application.observed = later(application.observed);
    for job in &mut application.jobs {
        move_on(&mut job.submitted);
        move_on(&mut job.completed);
    }
    for executor in &mut application.executors {
        move_on(&mut executor.added);
        move_on(&mut executor.removed);
    }
    for stage in &mut application.stages {
        move_on(&mut stage.submitted);
        move_on(&mut stage.first_task_launched);
        move_on(&mut stage.completed);
        for task in stage.timeline.iter_mut().flatten() {
            let began = start.as_millisecond();
            task.launched_ms = began + (task.launched_ms - began) * factor;
            task.duration_ms *= factor as u32;
        }
    }
    application
}

#[test]
fn one_busy_core_of_two_leaves_the_other_idle() {
    for (version, application) in recordings("partitioning_one_task") {
        assert!(findings(&application, Rule::IdleCores).is_empty(), "{version}: too short");
        let long = stretched(application, 20);
        assert!(long.duration().expect("a start") > Duration::from_mins(5));
        let found = findings(&long, Rule::IdleCores);
        assert_eq!(found.len(), 1, "{version}");
        assert!(found[0].severity <= Severity::Warning, "{version}");
    }
    // Near miss: as long, and its cores had work.
    for (version, application) in recordings("io_bound-healthy") {
        let found = findings(&stretched(application, 20), Rule::IdleCores);
        assert!(found.is_empty(), "{version}: {found:?}");
    }
}

#[test]
fn the_wait_for_the_first_executor_is_promised_once() {
    for (version, application) in recordings("cold_start") {
        let start = findings(&application, Rule::ColdStart);
        let wall = start[0].impact.wall.expect("a wait").as_secs();
        assert!((30..60).contains(&wall), "{version}: {wall}");
        assert!(findings(&application, Rule::SchedulingDelay).is_empty(), "{version}");
    }
    // Too short a wait for one rule is the other's.
    for (version, application) in recordings("scheduling_no_executors") {
        assert!(findings(&application, Rule::ColdStart).is_empty(), "{version}");
        assert_eq!(findings(&application, Rule::SchedulingDelay).len(), 1, "{version}");
    }
}

#[test]
fn a_free_executor_far_from_the_data_is_locality_and_nothing_else() {
    for run in ["scheduling_locality", "scheduling_locality_idle"] {
        for (version, application) in recordings(run) {
            let diagnosis = diagnose(&application, &Thresholds::default());
            let rules: Vec<Rule> = diagnosis
                .findings
                .iter()
                .filter(|finding| finding.cause != Some(Cause::ColdExecutor))
                .map(|finding| finding.rule)
                .collect();
            assert_eq!(rules, [Rule::SchedulingDelay], "{run} {version}");
            let delay = findings(&application, Rule::SchedulingDelay).remove(0);
            assert_eq!(delay.cause, Some(Cause::Locality), "{run} {version}");
            assert!(delay.advice[0].change.starts_with("Set spark.locality.wait to 0s"));
            let more = |advice: &Advice| {
                let change = advice.change.to_lowercase();
                change.contains("more executors") || change.contains("add executors")
            };
            assert!(!delay.advice.iter().any(more), "one of two executors is idle");
        }
    }
}

/// Reads all logs of a folder.
fn read_folder(folder: &Path) -> Vec<Application> {
    let limits = Limits::default();
    let files = LocalFiles::at(folder).expect("a place");
    let logs = scan(&files).expect("logs").logs;
    let options = ReadOptions { cluster: "test", limits: &limits };
    logs.iter().map(|log| read(log, &files, &options).expect("read").application).collect()
}

/// Edited: one recorded run as two attempts of one YARN application, the
/// second ten minutes later, the first cut off before its end.
#[test]
fn two_attempts_of_one_application_are_told_apart() {
    let text = text_of("hot_key");
    let id = text.split("\"App ID\":\"").nth(1).and_then(|rest| rest.split('"').next());
    let id = id.expect("an id").to_owned();
    let attempt = |number: &str, later: i64| {
        let named = format!("\"App ID\":\"application_1_0001\",\"App Attempt ID\":\"{number}\"");
        let text = text.replace(&format!("\"App ID\":\"{id}\""), &named);
        moved(&text, later * 60_000)
    };
    let first: String = attempt("1", 0)
        .lines()
        .filter(|line| !line.contains("SparkListenerApplicationEnd"))
        .fold(String::new(), |text, line| text + line + "\n");
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("application_1_0001_1"), first).expect("written");
    fs::write(folder.path().join("application_1_0001_2"), attempt("2", 10)).expect("written");
    let mut attempts = read_folder(folder.path());
    attempts.sort_by_key(|application| application.start);
    let [first, second] = attempts.as_slice() else { panic!("{} runs", attempts.len()) };
    assert_eq!(first.id.app_id, second.id.app_id);
    assert_ne!(first.id, second.id);
    let apart = second.start.expect("a start").duration_since(first.start.expect("a start"));
    assert_eq!(apart, SignedDuration::from_mins(10));
    assert_eq!((first.state, second.state), (State::Unknown, State::Succeeded));
    assert_eq!(first.stages.len(), second.stages.len());
    for application in [first, second] {
        let diagnosis = diagnose(application, &Thresholds::default());
        let totals = diagnosis.totals;
        let (bought, used) = (totals.bought.expect("cores"), totals.used.expect("tasks"));
        assert!(used <= bought && bought < Duration::from_mins(2), "{used:?} of {bought:?}");
        assert_eq!(findings(application, Rule::DataSkew).len(), 1);
    }
}

/// The log with all its moments so much later: numbers that are milliseconds
/// since the epoch.
fn moved(text: &str, by: i64) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, from) = rest.split_at(at);
        let end = from.find(|c: char| !c.is_ascii_digit()).unwrap_or(from.len());
        let (number, after) = from.split_at(end);
        out.push_str(before);
        match number.parse::<i64>() {
            Ok(moment) if number.len() == 13 && before.ends_with(':') => {
                out.push_str(&(moment + by).to_string());
            }
            _ => out.push_str(number),
        }
        rest = after;
    }
    out + rest
}

/// Edited: the recorded loss in the words of YARN, which nothing was set
/// against.
#[test]
fn containers_over_their_limit_ask_for_overhead() {
    let words = "Container killed by YARN for exceeding physical memory limits. 1.5 GB of 1.4 GB \
                 physical memory used.";
    let application = edited("executor_heap_oom", &[("Command exited with code 52", words)]);
    let found = findings(&application, Rule::Configuration);
    let key = "spark.executor.memoryOverhead".to_owned();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].subject, Subject::ConfigurationKey { key });
    // As it was: its heap was too small, and no overhead would have helped.
    for (version, application) in recordings("executor_heap_oom") {
        assert!(findings(&application, Rule::Configuration).is_empty(), "{version}");
    }
}
