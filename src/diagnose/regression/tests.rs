//! When it fires and when it must not, on made-up runs; real ones are in
//! `tests/regression.rs`.

use super::*;
use crate::diagnose::summary::{
    CoresSummary, DataSummary, FindingSummary, PlanSummary, SettingSummary, StageSummary,
    TimeSummary,
};
use crate::diagnose::{Evidence, TimePart};
use crate::model::{DataQuality, Kind, Source};

const HOUR_MS: i64 = 3_600_000;

/// The run of a day: so many seconds on so many records, most of it in one
/// stage.
fn run(day: i64, duration: f64, records: u64) -> RunSummary {
    let span_ms = ((duration - 20.0) * 1_000.0) as u64;
    RunSummary {
        spark_version: Some("4.3.0".to_owned()),
        source: Some(Source::EventLog),
        start_ms: Some(day * 24 * HOUR_MS),
        duration_ms: Some((duration * 1_000.0) as u64),
        end_known: true,
        time: Some(time(&[(TimePart::Driver, 20_000), (TimePart::Cpu, span_ms)])),
        cores: CoresSummary { peak: Some(8), ..CoresSummary::default() },
        data: DataSummary { input_records: Some(records), ..DataSummary::default() },
        stages: vec![stage(span_ms)],
        plans: Some(vec![plan(11)]),
        settings: [
            ("spark.sql.shuffle.partitions", SettingSummary::Value("200".to_owned())),
            ("spark.jars", SettingSummary::Mark(7)),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into(),
        ..RunSummary::default()
    }
}

fn time(parts: &[(TimePart, u64)]) -> TimeSummary {
    let parts_ms = parts.iter().map(|(part, ms)| (part.as_str().to_owned(), *ms)).collect();
    TimeSummary { parts_ms, ..TimeSummary::default() }
}

fn stage(span_ms: u64) -> StageSummary {
    StageSummary {
        site: Some("collect at orders.py".to_owned()),
        shape: 5,
        operators: vec!["SortMergeJoin".to_owned()],
        count: 1,
        longest: (6, 0),
        span_ms,
        task_ms: span_ms * 8,
        run_time_ratio: Some(1.2),
        tasks: 200,
        read_records: 1_000_000,
        ..StageSummary::default()
    }
}

fn plan(shape: u32) -> PlanSummary {
    PlanSummary { shape, sql_id: 2, count: 1, ..PlanSummary::default() }
}

/// So many runs of about two minutes, the latest first.
fn steady(count: i64) -> Vec<RunSummary> {
    (1..=count).rev().map(|day| run(day, 120.0 + (day * 7 % 5) as f64, 1_000_000)).collect()
}

fn judged(run: &RunSummary, before: &[RunSummary]) -> Judgement {
    judge(run, before, &Thresholds::default())
}

fn found(run: &RunSummary, before: &[RunSummary]) -> Finding {
    judged(run, before).finding.expect("a regression")
}

fn value(finding: &Finding, name: &str) -> f64 {
    let evidence: Option<&Evidence> = finding.evidence.iter().find(|one| one.name == name);
    evidence.unwrap_or_else(|| panic!("no {name}")).value
}

#[test]
fn twice_as_long_is_a_regression_and_a_tenth_more_is_none() {
    let before = steady(20);
    let slow = run(30, 250.0, 1_000_000);
    let judgement = judged(&slow, &before);
    let baseline = judgement.baseline.expect("a baseline");
    assert_eq!(baseline.runs, 20);
    assert_eq!(baseline.median, Duration::from_secs(122));
    assert_eq!(baseline.spread, Duration::from_secs(1));
    let finding = judgement.finding.expect("a regression");
    assert_eq!(finding.severity, Severity::Warning);
    assert_eq!(finding.subject, Subject::Application);
    assert_eq!(finding.impact.wall, Some(Duration::from_secs(128)));
    assert!((value(&finding, "ratio") - 250.0 / 122.0).abs() < 1e-9);
    let headline = "Took 4 min 10 s, 2.0x the median of the last 20 comparable runs (2 min 2 s): \
                    stage 6 (SortMergeJoin) took 2 min 8 s more";
    assert_eq!(finding.headline, headline);

    let mild = judged(&run(30, 134.0, 1_000_000), &before);
    assert!(mild.finding.is_none());
    assert!(mild.ratio.is_some_and(|ratio| ratio > 1.09), "{mild:?}");
}

#[test]
fn a_name_whose_runs_vary_needs_more() {
    // 60 s to 140 s, evenly: MAD 20 s.
    let before: Vec<RunSummary> =
        (1..=20).map(|day| run(day, 60.0 + (day % 5) as f64 * 20.0, 1_000)).collect();
    assert!(judged(&run(30, 190.0, 1_000), &before).finding.is_none());
    assert!(judged(&run(30, 220.0, 1_000), &before).finding.is_some());
}

#[test]
fn silent_below_five_runs() {
    let slow = run(30, 250.0, 1_000_000);
    assert_eq!(judged(&slow, &steady(4)), Judgement::default());
    assert!(judged(&slow, &steady(5)).finding.is_some());
    // Two of five do not count: one is cut off, one began later.
    let mut before = steady(5);
    before[0].quality.insert(DataQuality::LogTruncated.as_str().to_owned());
    before[1].start_ms = Some(31 * 24 * HOUR_MS);
    assert_eq!(judged(&slow, &before), Judgement::default());
}

#[test]
fn the_order_of_reading_does_not_matter() {
    let slow = run(30, 250.0, 1_000_000);
    let mut before: Vec<RunSummary> = (1..=40).map(|day| run(day, 120.0, 1_000_000)).collect();
    // Runs 10 to 29 are its baseline, whoever comes first.
    before[8].duration_ms = Some(500_000);
    let forth = judged(&slow, &before);
    before.reverse();
    assert_eq!(forth, judged(&slow, &before));
    before.rotate_left(17);
    assert_eq!(forth, judged(&slow, &before));
    assert_eq!(forth.baseline.expect("a baseline").spread, Duration::ZERO);
}

#[test]
fn more_data_is_no_regression_and_neither_is_other_data() {
    let before = steady(20);
    assert_eq!(judged(&run(30, 360.0, 3_000_000), &before), Judgement::default());
    assert_eq!(judged(&run(30, 360.0, 100_000), &before), Judgement::default());
    // 1.4 times as much data may take 1.4 times as long, and 1.3 times that.
    assert!(judged(&run(30, 200.0, 1_400_000), &before).finding.is_none());
    let slow = found(&run(30, 280.0, 1_400_000), &before);
    assert!((value(&slow, "data_ratio") - 1.4).abs() < 1e-9);
    assert!((value(&slow, "excess") - (280.0 - 1.4 * 122.0)).abs() < 1e-3);
    // Known of one and not of the other.
    let mut unknown = run(30, 250.0, 1);
    unknown.data = DataSummary::default();
    assert_eq!(judged(&unknown, &before), Judgement::default());
    let nothing =
        |day, duration| RunSummary { data: DataSummary::default(), ..run(day, duration, 1) };
    let before: Vec<RunSummary> = (1..10).map(|day| nothing(day, 120.0)).collect();
    assert!(judged(&nothing(30, 250.0), &before).finding.is_some());
}

#[test]
fn silent_where_there_is_nothing_to_compare() {
    let before = steady(20);
    let slow = || run(30, 250.0, 1_000_000);
    let stream = RunSummary { kind: Kind::Streaming, ..slow() };
    let shell = RunSummary { kind: Kind::Interactive, ..slow() };
    let running = RunSummary { end_known: false, ..slow() };
    let timeless = RunSummary { start_ms: None, ..slow() };
    let backwards = RunSummary { duration_ms: Some(0), ..slow() };
    let text = RunSummary { source: Some(Source::DriverLog), ..slow() };
    let holes = RunSummary { quality: ["dropped_events".to_owned()].into(), ..slow() };
    for run in [stream, shell, running, timeless, backwards, text, holes] {
        assert_eq!(judged(&run, &before), Judgement::default(), "{run:?}");
    }
    let mut off = Thresholds::default();
    off.regression.enabled = false;
    assert_eq!(judge(&slow(), &before, &off), Judgement::default());
}

#[test]
fn seconds_of_a_short_run_are_noise() {
    let before: Vec<RunSummary> = (1..=20).map(|day| run(day, 25.0, 1_000)).collect();
    // 1.3 times is 32.5 s; 3.5 deviations of 5 % are 29.4 s.
    assert!(judged(&run(30, 32.0, 1_000), &before).finding.is_none());
    let slow = found(&run(30, 33.0, 1_000), &before);
    assert_eq!(slow.severity, Severity::Warning);
}

#[test]
fn a_run_that_waited_for_executors_is_one_of_resources() {
    let before = steady(20);
    let mut slow = run(30, 122.0, 1_000_000);
    slow.duration_ms = Some(422_000);
    let waited = time(&[
        (TimePart::Resources, 300_000),
        (TimePart::Driver, 20_000),
        (TimePart::Cpu, 102_000),
    ]);
    slow.time = Some(waited);
    let finding = found(&slow, &before);
    assert_eq!(finding.cause, Some(Cause::NoExecutors));
    assert_eq!(finding.kind, FindingKind::Resources);
    assert_eq!(finding.severity, Severity::Critical);
    assert!(finding.headline.ends_with(": 5 min more without an executor"), "{}", finding.headline);
    assert!(finding.advice[0].change.contains("queue"));
}

#[test]
fn what_changed_is_named() {
    let before = steady(20);
    let slow = |change: &dyn Fn(&mut RunSummary)| {
        let mut slow = run(30, 250.0, 1_000_000);
        change(&mut slow);
        found(&slow, &before)
    };
    let setting = slow(&|run| {
        let value = SettingSummary::Value("1".to_owned());
        run.settings.insert("spark.sql.shuffle.partitions".to_owned(), value);
        run.stages[0].tasks = 1;
    });
    assert_eq!(setting.cause, Some(Cause::SettingsChanged));
    assert_eq!(setting.kind, FindingKind::Configuration);
    assert!(setting.headline.contains("in 1 task instead of 200"), "{}", setting.headline);
    assert!(setting.headline.contains("spark.sql.shuffle.partitions is 1, was 200"));
    assert!(setting.advice[0].change.contains("back to 200"), "{:?}", setting.advice);

    let hidden = slow(&|run| {
        run.settings.insert("spark.jars".to_owned(), SettingSummary::Mark(8));
    });
    assert_eq!(hidden.cause, None);
    assert!(hidden.headline.ends_with("spark.jars has another value"), "{}", hidden.headline);

    let plan = slow(&|run| {
        run.plans = Some(vec![PlanSummary { operators: vec!["Window".to_owned()], ..plan(12) }]);
        run.stages[0].shape = 6;
    });
    assert_eq!(plan.cause, Some(Cause::PlanChanged));
    assert!(plan.headline.contains("stage 6 (SortMergeJoin) is new and took"), "{}", plan.headline);
    assert!(plan.headline.contains("the plan of SQL execution 2 (Window)"), "{}", plan.headline);

    let uneven = slow(&|run| {
        run.stages[0].run_time_ratio = Some(12.0);
        run.findings.push(FindingSummary {
            rule: "data_skew".to_owned(),
            cause: Some("hot_key".to_owned()),
            severity: "warning".to_owned(),
            count: 1,
            wall_ms: 100_000,
        });
    });
    assert!(uneven.headline.contains("took 12x what is typical"), "{}", uneven.headline);
    assert!(uneven.headline.ends_with("data_skew was not found in them"), "{}", uneven.headline);
    // 100 of the 128 seconds are promised by data_skew; it is as loud.
    assert_eq!(uneven.impact.wall, Some(Duration::from_secs(28)));
    assert_eq!(uneven.severity, Severity::Warning);

    let cores = slow(&|run| run.cores.peak = Some(4));
    assert_eq!(cores.cause, Some(Cause::FewerCores));
    assert!(cores.headline.contains("4 cores at most instead of 8"), "{}", cores.headline);
    let version = slow(&|run| run.spark_version = Some("4.4.0".to_owned()));
    assert!(version.headline.contains("Spark 4.4.0 instead of 4.3.0"), "{}", version.headline);
}

#[test]
fn a_change_that_earlier_runs_had_as_well_is_none() {
    let mut before = steady(20);
    for earlier in &mut before[..15] {
        earlier.plans = Some(vec![plan(12)]);
        earlier.cores.peak = Some(4);
    }
    let mut slow = run(30, 250.0, 1_000_000);
    slow.plans = Some(vec![plan(12)]);
    slow.cores.peak = Some(4);
    assert_eq!(found(&slow, &before).cause, None);
    // Plans that differ each time say nothing.
    for (shape, earlier) in (100..).zip(&mut before) {
        earlier.plans = Some(vec![plan(shape)]);
    }
    assert_eq!(found(&slow, &before).cause, None);
}

#[test]
fn runs_by_rest_are_not_taken_for_new_stages() {
    let before = steady(20);
    let mut slow = run(30, 250.0, 1_000_000);
    slow.source = Some(Source::HistoryServer);
    slow.plans = None;
    slow.stages[0].shape = 0;
    let finding = found(&slow, &before);
    assert!(!finding.headline.contains("is new"), "{}", finding.headline);
    assert!(finding.headline.ends_with(": 2 min 8 s more of computing"), "{}", finding.headline);
}

#[test]
fn a_name_with_two_speeds_is_said_with_less_confidence() {
    let mut before = steady(20);
    assert_eq!(found(&run(30, 250.0, 1_000_000), &before).confidence, Confidence::High);
    for earlier in &mut before[..3] {
        earlier.duration_ms = Some(245_000);
    }
    let finding = found(&run(30, 250.0, 1_000_000), &before);
    assert_eq!(finding.confidence, Confidence::Medium);
    assert!((value(&finding, "as_slow") - 3.0).abs() < 1e-9);
    assert_eq!(found(&run(30, 250.0, 1_000_000), &steady(6)).confidence, Confidence::Medium);
}

#[test]
fn it_takes_its_place_among_the_findings_and_replaces_an_older_one() {
    let slow = found(&run(30, 250.0, 1_000_000), &steady(20));
    let other = |severity, wall: u64| Finding {
        rule: Rule::Spill,
        severity,
        impact: Impact { wall: Some(Duration::from_secs(wall)), ..Impact::default() },
        ..slow.clone()
    };
    let findings = vec![
        other(Severity::Critical, 10),
        other(Severity::Warning, 200),
        other(Severity::Warning, 100),
        other(Severity::Info, 1),
    ];
    let diagnosis = Diagnosis { findings, ..Diagnosis::default() };
    let with = with_regression(&diagnosis, Some(slow.clone()));
    let place = |diagnosis: &Diagnosis| {
        diagnosis.findings.iter().position(|finding| finding.rule == Rule::Regression)
    };
    assert_eq!(place(&with), Some(2));
    let again = with_regression(&with, Some(Finding { severity: Severity::Info, ..slow.clone() }));
    assert_eq!((again.findings.len(), place(&again)), (5, Some(3)));
    assert_eq!(with_regression(&again, None), diagnosis);

    let full = Diagnosis {
        findings: vec![other(Severity::Info, 1); MOST_FINDINGS],
        ..Diagnosis::default()
    };
    let full = with_regression(&full, Some(slow));
    assert_eq!((full.findings.len(), full.findings_omitted), (MOST_FINDINGS, 1));
}

#[test]
fn savings_never_add_up_to_more_than_the_run() {
    let before = steady(20);
    let mut slow = run(30, 250.0, 1_000_000);
    slow.findings.push(FindingSummary { wall_ms: 240_000, ..FindingSummary::default() });
    let impact = found(&slow, &before).impact.wall.expect("a saving");
    assert_eq!(impact, Duration::ZERO);
    // What it always promised is no part of the excess, and the run is no longer.
    let mut before = before;
    for earlier in &mut before {
        earlier.findings.push(FindingSummary { wall_ms: 240_000, ..FindingSummary::default() });
    }
    let impact = found(&slow, &before).impact.wall.expect("a saving");
    assert_eq!(impact, Duration::from_secs(10));
}

proptest::proptest! {
    /// Whatever a store holds: no panic, and no finding without a baseline.
    #[test]
    fn any_runs_can_be_judged(
        runs in proptest::collection::vec(
            (proptest::option::of(-10_i64..10), proptest::option::of(0_u64..u64::MAX), 0_u64..5),
            0..30,
        ),
    ) {
        let all: Vec<RunSummary> = runs
            .into_iter()
            .map(|(start, duration, records)| RunSummary {
                start_ms: start,
                duration_ms: duration,
                ..run(0, 30.0, records)
            })
            .collect();
        for one in &all {
            let judgement = judged(one, &all);
            proptest::prop_assert!(judgement.finding.is_none() || judgement.baseline.is_some());
            proptest::prop_assert_eq!(judgement.ratio.is_some(), judgement.baseline.is_some());
        }
    }
}
