//! A real application, watched while it runs: its parts are sent as they end,
//! within the trace of whoever submitted it; its log takes over from its
//! driver, and nothing comes twice.

use std::collections::BTreeSet;
use std::time::Duration;

use super::traces::{Of, is_the_log, of, whole_trace};
use crate::collector::{Collector, Options};
use crate::common::log_text_of;
use crate::common::real::{standalone, submit};
use crate::log::Log;
use crate::received::Received;
use crate::world::Setup;

const SPARK: &str = "4.3.0";
const MINUTES: Duration = Duration::from_mins(4);

#[tokio::test(flavor = "multi_thread")]
async fn a_running_application_is_sent_part_by_part() {
    let collector = Collector::start(Options::default());
    let folder = tempfile::tempdir().unwrap();
    let (_cluster, master) = standalone(SPARK);
    let (trace, span) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    let parent = format!("spark.executorEnv.TRACEPARENT=00-{trace}-{span}-01");
    // Of a driver that is asked, a part is sent 90 s after its end.
    let mut run =
        submit(SPARK, &master, folder.path(), &[&parent], &["sleepy_live", "--seconds", "130"]);
    let app_id = run.app_id.clone();
    let exporter = Setup::to("grpc", &collector.grpc())
        .arguments(&["--spark.url", &run.ui])
        .start(folder.path());

    // While it runs: parts that have ended, and not the application.
    collector.until("a part of the running application", MINUTES, |received| {
        let spans = received.trace_of(&app_id);
        assert!(spans.iter().all(|span| of(span) != Of::Application), "it still runs");
        (!spans.is_empty()).then_some(())
    });
    assert!(!run.program.has_ended(), "parts came after the end only");
    assert_eq!(run.program.end(MINUTES), 0);

    let log = Log::of(&log_text_of(folder.path()));
    let spans = whole_trace(&collector, &app_id, &log);
    is_the_log(&spans, &log);
    assert!(spans.iter().all(|one| one.trace == trace), "all in the trace of who submitted it");
    let application = spans.iter().find(|one| of(one) == Of::Application).unwrap();
    assert_eq!(application.parent, span);
    // The slow stage says so, in the span or, where that was sent before it
    // was known, in a record that names it.
    let of_skew = |received: &Received| {
        let mut records = received.records.iter();
        let record =
            records.find(|record| record.attributes["spark.finding.rule"] == "data_skew")?;
        Some((record.trace.clone(), record.span.clone()))
    };
    let named = collector.until("a record of the skew", MINUTES, of_skew);
    let ids: BTreeSet<(String, String)> =
        spans.iter().map(|one| (one.trace.clone(), one.id.clone())).collect();
    assert!(ids.contains(&named), "{named:?} is no span");
    exporter.stop();
    is_the_log(&whole_trace(&collector, &app_id, &log), &log);
}
