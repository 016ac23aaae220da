//! Where the time of recorded runs went.

use std::time::Duration;

use spark_exporter::config::Thresholds;
use spark_exporter::diagnose::{BlockedBy, Diagnosis, TimePart, TimeSplit, diagnose};
use spark_exporter::model::Application;

use super::{as_rest, recorded};

fn adds_up(split: &TimeSplit, total: Duration, what: &str) {
    assert_eq!(split.total, total, "{what}");
    assert_eq!(split.parts.iter().sum::<Duration>(), total, "{what}");
    let blocked = !split.part(TimePart::Blocked).is_zero();
    assert_eq!(split.blocked_by.is_some(), blocked, "{what}");
}

/// The parts of the run, of each stage attempt and of each SQL execution.
fn parts_add_up(application: &Application, diagnosis: &Diagnosis, what: &str) {
    let run = application.duration().expect("a start");
    adds_up(diagnosis.time.as_ref().expect("a split"), run, what);
    for stage in &application.stages {
        let Some((from, to)) = stage.running_span(application.observed) else { continue };
        let span = Duration::try_from(to.duration_since(from)).expect("not negative");
        let split = diagnosis.stage_times.get(&stage.id).expect("of each stage that ran");
        adds_up(split, span, &format!("{what} stage {}", stage.id));
        assert!(split.part(TimePart::Driver).is_zero(), "{what} {split:?}");
    }
    for execution in application.sql.iter().flatten() {
        let Some(wall) = execution.wall(application.observed) else { continue };
        let split = diagnosis.sql_times.get(&execution.id).expect("of each execution");
        adds_up(split, wall, &format!("{what} execution {}", execution.id));
    }
}

#[test]
fn parts_sum_to_the_whole() {
    for (run, version, application) in recorded() {
        let what = format!("{run} {version}");
        let diagnosis = diagnose(&application, &Thresholds::default());
        parts_add_up(&application, &diagnosis, &what);
        let split = diagnosis.time.as_ref().expect("a split");
        let parts: Vec<String> = TimePart::ALL
            .iter()
            .map(|part| format!("{} {:.1}", part.as_str(), split.part(*part).as_secs_f64()))
            .collect();
        println!("{what}: {} {:?}", parts.join(", "), split.blocked_by);
        let application = as_rest(application);
        let diagnosis = diagnose(&application, &Thresholds::default());
        parts_add_up(&application, &diagnosis, &what);
        assert!(diagnosis.time.expect("a split").estimated, "{what}");
    }
}

/// The largest part names the layer: of the longest stage, since in short runs
/// waiting for executors and starting the driver outweigh most faults.
#[test]
fn the_layer_is_named() {
    let expected: &[(&str, TimePart, Option<BlockedBy>)] = &[
        ("gc_pressure", TimePart::Gc, None),
        ("io_bound", TimePart::Blocked, Some(BlockedBy::Input)),
        ("io_bound-healthy", TimePart::Cpu, None),
        ("hot_key", TimePart::Cpu, None),
        ("spill", TimePart::Cpu, Some(BlockedBy::Spill)),
        ("scheduling_no_executors", TimePart::Resources, None),
        ("straggler_slow_host", TimePart::Cpu, None),
        // More than half of each task's time is neither run nor deserialized:
        // scaled to their durations, the other parts would be twice too long.
        ("tiny_tasks", TimePart::Scheduling, None),
    ];
    for (name, largest, blocked_by) in expected {
        for (_, version, application) in recorded().into_iter().filter(|(run, ..)| run == name) {
            let diagnosis = diagnose(&application, &Thresholds::default());
            let split = if *largest == TimePart::Resources {
                diagnosis.time.expect("a split")
            } else {
                let stages = diagnosis.stage_times.into_values();
                stages.max_by_key(|split| split.total).expect("a stage")
            };
            assert_eq!(split.largest(), Some(*largest), "{name} {version}: {split:?}");
            if blocked_by.is_some() {
                assert_eq!(split.blocked_by, *blocked_by, "{name} {version}: {split:?}");
            }
        }
    }
}
