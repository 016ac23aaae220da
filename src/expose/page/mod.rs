//! The landing page: which applications there are, worst first, and what is
//! wrong with each. One HTML text without scripts, fonts or images, so it
//! works where nothing but this port can be reached.

mod application;
mod html;

use std::cmp::Reverse;
use std::fmt::Write;
use std::time::Duration;

use jiff::Timestamp;

use self::html::{Escaped, number, time};
use crate::diagnose::Severity;
use crate::metrics::RunView;
use crate::model::State;
use crate::telemetry::TelemetrySnapshot;

/// Applications shown; the others are counted.
const MAX_ROWS: usize = 200;
/// Sources shown; the others are counted.
const MAX_SOURCES: usize = 20;

const STYLE: &str = include_str!("style.css");

/// The page as of `at`. Bounded: at most 200 applications.
pub(super) fn render(
    runs: &[RunView],
    counters: &TelemetrySnapshot,
    at: Timestamp,
    ready: bool,
) -> String {
    let mut page = String::with_capacity(16 * 1024);
    // Writing into a String does not fail.
    let _ = write_page(&mut page, runs, counters, at, ready);
    page
}

fn write_page(
    page: &mut String,
    runs: &[RunView],
    counters: &TelemetrySnapshot,
    at: Timestamp,
    ready: bool,
) -> std::fmt::Result {
    write!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>spark-exporter</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <header><div><h1>spark-exporter <small>{}</small></h1>\n",
        Escaped(counters.build.version)
    )?;
    summary(page, runs, at)?;
    page.push_str(
        "</div>\n<nav><a href=\"/metrics\">Metrics</a> <a href=\"/-/ready\">Ready</a> \
         <a href=\"/-/healthy\">Healthy</a></nav></header>\n<main>\n",
    );
    if !ready {
        page.push_str(
            "<p class=\"note\">The sources are being read for the first time: \
             this list is not complete yet.</p>\n",
        );
    }
    let storage = &counters.storage;
    if !storage.up && counters.storage_failures.values().any(|count| *count > 0) {
        writeln!(
            page,
            "<p class=\"note\">The store is in trouble (the log says why): {} to be counted, \
             and what is known across runs is left out.</p>",
            number(usize::try_from(storage.pending).unwrap_or(usize::MAX), "run waits")
        )?;
    }
    applications(page, runs)?;
    sources(page, counters)?;
    page.push_str("</main>\n</body>\n</html>\n");
    Ok(())
}

fn summary(page: &mut String, runs: &[RunView], at: Timestamp) -> std::fmt::Result {
    let running = runs.iter().filter(|run| run.application.state == State::Running).count();
    let ill = |severity| runs.iter().filter(|run| worst(run) == Some(severity)).count();
    write!(page, "<p class=\"sub\">{}, {running} running", number(runs.len(), "application"))?;
    for (severity, word) in [(Severity::Critical, "critical"), (Severity::Warning, "warning")] {
        let count = ill(severity);
        if count > 0 {
            write!(page, " · <b class=\"{word}\">{count} {word}</b>")?;
        }
    }
    writeln!(page, " · as of {}</p>", time(at))
}

fn applications(page: &mut String, runs: &[RunView]) -> std::fmt::Result {
    if runs.is_empty() {
        page.push_str("<p class=\"empty\">No application has been seen yet.</p>\n");
        return Ok(());
    }
    let mut sorted: Vec<&RunView> = runs.iter().collect();
    sorted.sort_by_cached_key(|run| rank(run));
    let clusters = runs.iter().any(|run| run.application.id.cluster != "default");
    page.push_str(
        "<table>\n<thead><tr><th>Application</th><th>State</th><th>Started (UTC)</th>\
         <th class=\"num\">Duration</th><th>Worst finding</th></tr></thead>\n<tbody>\n",
    );
    for run in sorted.iter().take(MAX_ROWS) {
        application::row(page, run, clusters)?;
    }
    page.push_str("</tbody>\n</table>\n");
    if let Some(more) = sorted.len().checked_sub(MAX_ROWS).filter(|more| *more > 0) {
        writeln!(
            page,
            "<p class=\"note\">{} with smaller findings or none not shown: see \
             <a href=\"/metrics\">the metrics</a>.</p>",
            number(more, "more application")
        )?;
    }
    Ok(())
}

fn worst(run: &RunView) -> Option<Severity> {
    run.diagnosis.findings.iter().map(|finding| finding.severity).max()
}

/// Ascending order of this key: the worst severity (a run that failed is at
/// least a warning), then failed runs, then what can be saved, then running
/// ones, then the latest.
fn rank(run: &RunView) -> impl Ord + use<> {
    let application = &run.application;
    let saved: Duration = run
        .diagnosis
        .findings
        .iter()
        .filter_map(|finding| finding.impact.wall)
        .fold(Duration::ZERO, Duration::saturating_add);
    let failed = matches!(application.state, State::Failed | State::Lost);
    let severity = worst(run).max(failed.then_some(Severity::Warning));
    (
        Reverse((severity, failed, saved)),
        application.state != State::Running,
        Reverse(application.start),
        application.id.clone(),
    )
}

fn sources(page: &mut String, counters: &TelemetrySnapshot) -> std::fmt::Result {
    if counters.targets.is_empty() {
        return Ok(());
    }
    page.push_str("<h2>Sources</h2>\n<ul class=\"sources\">\n");
    // Those that are down first: that is what one comes to look for.
    let mut targets: Vec<_> = counters.targets.iter().collect();
    targets.sort_by_key(|(id, status)| (status.up, *id));
    for (id, status) in targets.iter().take(MAX_SOURCES) {
        let (class, word) = if status.up { ("ok", "up") } else { ("critical", "down") };
        write!(
            page,
            "<li><span class=\"pill {class}\">{word}</span> <code>{}</code> <span class=\"sub\">{}",
            Escaped(&id.target),
            Escaped(&id.cluster)
        )?;
        match status.last_success {
            Some(last) => write!(page, ", last read {}", time(last))?,
            None => page.push_str(", never read"),
        }
        page.push_str("</span></li>\n");
    }
    page.push_str("</ul>\n");
    if let Some(more) = targets.len().checked_sub(MAX_SOURCES).filter(|more| *more > 0) {
        writeln!(page, "<p class=\"note\">{} not shown.</p>", number(more, "more source"))?;
    }
    let skipped: u64 = counters.skipped_by_reason().values().sum();
    if skipped > 0 {
        writeln!(
            page,
            "<p class=\"note\">{} in these sources not covered: see \
             <code>spark_exporter_applications_skipped</code>.</p>",
            number(usize::try_from(skipped).unwrap_or(usize::MAX), "application")
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::diagnose::{Confidence, Diagnosis, Finding, FindingKind, Impact, Rule, Subject};
    use crate::model::{Application, DataQuality, RunId, Source};

    fn run(app_id: &str, severity: Option<Severity>) -> RunView {
        let id =
            RunId { cluster: "default".to_owned(), app_id: app_id.to_owned(), attempt_id: None };
        let application = Application::new(id, Source::Driver, Timestamp::UNIX_EPOCH);
        let findings = severity.map(|severity| Finding {
            rule: Rule::Spill,
            cause: None,
            severity,
            kind: FindingKind::Resources,
            subject: Subject::Application,
            headline: format!("{app_id} spilled <b>much</b>"),
            evidence: Vec::new(),
            impact: Impact::default(),
            confidence: Confidence::Low,
            advice: Vec::new(),
        });
        let diagnosis =
            Diagnosis { findings: findings.into_iter().collect(), ..Diagnosis::default() };
        RunView {
            name: application.name.as_str().into(),
            application: Arc::new(application),
            diagnosis: Arc::new(diagnosis),
            trace_id: None,
        }
    }

    fn page(runs: &[RunView]) -> String {
        render(runs, &TelemetrySnapshot::default(), Timestamp::UNIX_EPOCH, true)
    }

    #[test]
    fn worst_first() {
        let mut failed = run("fell", None);
        let mut application = (*failed.application).clone();
        application.state = State::Failed;
        failed.application = Arc::new(application);
        let page = page(&[
            run("healthy", None),
            run("warned", Some(Severity::Warning)),
            run("sick", Some(Severity::Critical)),
            run("told", Some(Severity::Info)),
            failed,
        ]);
        let places: Vec<_> =
            ["sick spilled", ">fell<", "warned spilled", "told spilled", ">healthy<"]
                .iter()
                .map(|text| page.find(text).unwrap_or_else(|| panic!("{text} is missing")))
                .collect();
        assert!(places.is_sorted(), "{places:?}");
    }

    #[test]
    fn nothing_from_outside_becomes_markup() {
        let mut view = run("<script>alert(1)</script>", Some(Severity::Warning));
        let mut application = (*view.application).clone();
        "\"><img src=x onerror='1'>&\n\u{202e}".clone_into(&mut application.name);
        application.spark_version = Some("<i>4</i>".to_owned());
        application.user = Some("</table>".to_owned());
        application.id.cluster = "<prod>".to_owned();
        application.data_quality.insert(DataQuality::LogTruncated);
        view.application = Arc::new(application);
        let page = page(&[view]);
        for evil in ["<script", "<img", "<i>", "<prod", "<b>much", "\u{202e}", "'1'"] {
            assert!(!page.contains(evil), "{evil}");
        }
        assert_eq!(page.matches("</table>").count(), 1);
        assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    }

    #[test]
    fn rows_are_bounded_and_the_rest_is_counted() {
        let runs: Vec<_> = (0..MAX_ROWS + 7).map(|n| run(&format!("app-{n}"), None)).collect();
        let page = page(&runs);
        assert_eq!(page.matches("<tr class").count(), MAX_ROWS);
        assert!(page.contains("7 more applications"));
    }

    #[test]
    fn an_empty_page_says_so() {
        assert!(page(&[]).contains("No application has been seen yet"));
        let early = render(&[], &TelemetrySnapshot::default(), Timestamp::UNIX_EPOCH, false);
        assert!(early.contains("being read for the first time"));
    }
}
