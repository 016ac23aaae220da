//! Exemplars lead from a duration to the trace of a run that took so long.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use spark_exporter::config::otlp::{Sampling, TracesSettings};
use spark_exporter::expose::otlp::spans::{Mark, due, trace_of};
use spark_exporter::metrics::RunView;
use spark_exporter::metrics::prometheus::{Format, render};
use spark_exporter::model::{SpanId, SpanOf, State, TraceId};
use spark_exporter::report::Texts;
use spark_exporter::store::SentSpans;
use spark_exporter::telemetry::TelemetrySnapshot;

use crate::decode::{Told, all, read_text};
use crate::support::{at, changed, name_view, run_id, skewed_run};
use crate::{LARGE, Temporality, moment, points, requests};

/// A run of the name `orders` that ended, and is traced.
fn run(app_id: &str, seconds: i64, state: State) -> RunView {
    let mut view = changed(&skewed_run(run_id("default", app_id)), |application, _| {
        "orders".clone_into(&mut application.name);
        application.state = state;
        application.start = Some(at(1_000));
        application.end = Some(at(1_000 + seconds));
    });
    let id = TraceId::of_run(&view.application.id, view.application.start);
    view.trace_id = Some(id);
    view
}

fn told(runs: &[RunView]) -> (String, Vec<(f64, u64, TraceId, SpanId)>) {
    let names = [name_view("default", "orders"), name_view("staging", "orders")];
    let moment = moment(runs, &names, &TelemetrySnapshot::default(), at(5_000));
    let points = all(&requests(&mut points(Temporality::Cumulative, LARGE), &moment));
    let mut exemplars = Vec::new();
    for point in points {
        let Told::Histogram(histogram) = point.told else { continue };
        assert!(point.attributes["spark_cluster"] == "default" || histogram.exemplars.is_empty());
        for exemplar in histogram.exemplars {
            use opentelemetry_proto::tonic::metrics::v1::exemplar::Value;
            let Some(Value::AsDouble(value)) = exemplar.value else { panic!("{exemplar:?}") };
            let trace_id = TraceId(exemplar.trace_id.try_into().unwrap());
            let span_id = SpanId(exemplar.span_id.try_into().unwrap());
            exemplars.push((value, exemplar.time_unix_nano, trace_id, span_id));
        }
    }
    (render(&moment.snapshot, Format::OpenMetrics), exemplars)
}

fn of(view: &RunView, value: f64) -> (f64, u64, TraceId, SpanId) {
    let application = &view.application;
    let trace_id = TraceId::of_run(&application.id, application.start);
    let at = u64::try_from(application.end.unwrap().as_nanosecond()).unwrap();
    (value, at, trace_id, SpanId::of(trace_id, SpanOf::Application))
}

#[test]
fn of_each_bucket_the_latest_run_that_ended_well() {
    let latest = run("app-1", 63, State::Succeeded);
    let mut earlier = run("app-2", 62, State::Succeeded);
    earlier = changed(&earlier, |application, _| {
        application.start = Some(at(500));
        application.end = Some(at(562));
    });
    earlier.trace_id = Some(TraceId([7; 16]));
    let longer = run("app-3", 100, State::Succeeded);
    let failed = run("app-4", 101, State::Failed);
    // No run of that length was counted yet.
    let uncounted = run("app-5", 2, State::Succeeded);
    let (text, exemplars) = told(&[latest.clone(), earlier, longer.clone(), failed, uncounted]);
    assert_eq!(exemplars, [of(&latest, 63.0), of(&longer, 100.0)]);
    let id = TraceId::of_run(&latest.application.id, latest.application.start);
    let span = SpanId::of(id, SpanOf::Application);
    let line = format!(
        "spark_application_runs_duration_seconds_bucket{{le=\"64.0\",spark_cluster=\"default\",\
         app_name=\"orders\"}} 18 # {{trace_id=\"{id}\",span_id=\"{span}\"}} 63 1764461863.000"
    );
    let lines: Vec<_> = text.lines().filter(|one| one.contains(" # {")).collect();
    assert!(lines.contains(&line.as_str()), "{line} is not among {lines:?}");
    assert_eq!(lines.len(), 2);
}

#[test]
fn the_trace_that_the_driver_was_called_in_is_the_one() {
    let mut view = run("app-1", 63, State::Succeeded);
    let carried = TraceId([0xab; 16]);
    view.trace_id = Some(carried);
    let (_, exemplars) = told(&[view.clone()]);
    let expected = of(&view, 63.0);
    // Its span is its own all the same.
    assert_eq!(exemplars, [(expected.0, expected.1, carried, expected.3)]);
}

#[test]
fn without_traces_there_are_none() {
    let mut view = run("app-1", 63, State::Succeeded);
    view.trace_id = None;
    let running = run("app-2", 63, State::Running);
    let (text, exemplars) = told(&[view, running]);
    assert!(exemplars.is_empty() && !text.contains(" # {"));
}

#[test]
fn the_older_text_format_has_none() {
    let names = [name_view("default", "orders")];
    let runs = [run("app-1", 63, State::Succeeded)];
    let moment = moment(&runs, &names, &TelemetrySnapshot::default(), at(5_000));
    let text = render(&Arc::clone(&moment.snapshot), Format::Prometheus);
    assert!(!text.contains(" # {"));
    // And but for them the series are the same.
    let open = render(&moment.snapshot, Format::OpenMetrics);
    let bare: String =
        open.lines().flat_map(|line| [line.split(" # {").next().unwrap(), "\n"]).collect();
    let durations = |text: &str| {
        let mut series = read_text(text);
        series.retain(|(name, _), _| name.starts_with("spark_application_runs_duration"));
        series
    };
    assert_eq!(durations(&bare), durations(&text));
}

/// Nobody is led to a trace that is never sent: what is said of a run is what
/// its spans are sent by.
#[test]
fn a_run_has_a_trace_where_its_spans_are_sent() {
    let settings = |ratio: f64, keep_failed: bool, longer: Option<u64>| TracesSettings {
        destination: crate::loops::destination("http://127.0.0.1:1/v1/traces".to_owned()),
        max_age: Duration::from_hours(24),
        sampling: Sampling {
            ratio,
            keep_failed,
            keep_longer_than: longer.map(Duration::from_secs),
        },
        tasks_per_stage: 5,
        spans_per_trace: 10_000,
    };
    let now = at(5_000);
    let mut answers = BTreeSet::new();
    for ratio in [0.0, 0.5, 1.0] {
        for keep_failed in [false, true] {
            for longer in [None, Some(80), Some(10_000)] {
                let settings = settings(ratio, keep_failed, longer);
                for state in [State::Succeeded, State::Failed, State::Cancelled] {
                    for (number, seconds) in [(1, 63), (2, 100), (3, -90_000)] {
                        let mut view = run(&format!("app-{number}"), seconds, state);
                        if seconds < 0 {
                            view = changed(&view, |application, _| {
                                application.start = Some(at(seconds - 100));
                            });
                        }
                        let told = trace_of(&view.application, &settings, now);
                        let nothing = SentSpans::default();
                        let due = due(&view, &nothing, &settings, Texts::Hidden, now);
                        let marks = due.parts.iter().flat_map(|part| &part.done.marks);
                        let sent = marks.into_iter().any(|mark| *mark == Mark::Application);
                        assert_eq!(told.is_some(), sent, "{settings:?} {state:?} {seconds}");
                        answers.insert((told.is_some(), seconds > 0));
                    }
                }
            }
        }
    }
    // Some are, some are not; none that ended too long ago is.
    assert_eq!(
        answers.into_iter().collect::<Vec<_>>(),
        [(false, false), (false, true), (true, true)]
    );
}
