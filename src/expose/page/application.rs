//! One row of the table: a run, its state, and what is wrong with it.

use std::fmt::Write;

use super::html::{Escaped, Whole, minute, number, span};
use crate::diagnose::{Finding, Severity};
use crate::expose::address;
use crate::metrics::RunView;
use crate::model::State;
use crate::report::{anchor, privacy};

/// Findings shown of one application, the worst included.
const MAX_FINDINGS: usize = 6;

/// `clusters`: whether the cluster's name tells anything.
pub(super) fn row(page: &mut String, run: &RunView, clusters: bool) -> std::fmt::Result {
    let application = &run.application;
    let mut findings: Vec<&Finding> = run.diagnosis.findings.iter().collect();
    // Stable: within a severity the costliest stay first.
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let worst = findings.first();
    let address = address::of(&application.id);

    write!(
        page,
        "<tr class=\"{}\"><td><a class=\"name\" href=\"{}\">{}</a><br><span class=\"sub\">",
        worst.map_or("none", |finding| finding.severity.as_str()),
        Whole(&address),
        Escaped(&privacy::redacted(&application.name))
    )?;
    if clusters {
        write!(page, "{} / ", Escaped(&application.id.cluster))?;
    }
    write!(page, "<code>{}</code>", Escaped(&application.id.app_id))?;
    if let Some(attempt) = &application.id.attempt_id {
        write!(page, " attempt {}", Escaped(attempt))?;
    }
    write!(page, "<br>{}", application.kind.as_str())?;
    if let Some(version) = &application.spark_version {
        write!(page, " · Spark {}", Escaped(version))?;
    }
    if let Some(user) = &application.user {
        write!(page, " · {}", Escaped(user))?;
    }
    let state = application.state;
    write!(
        page,
        "</span></td><td><span class=\"pill {}\">{}</span></td><td class=\"time\">",
        state_class(state),
        state.as_str()
    )?;
    match application.start {
        Some(start) => page.push_str(&minute(start)),
        None => page.push_str("<span class=\"sub\">unknown</span>"),
    }
    page.push_str("</td><td class=\"num\">");
    match application.duration() {
        Some(duration) => page.push_str(&span(duration)),
        None => page.push_str("<span class=\"sub\">unknown</span>"),
    }
    page.push_str("</td><td>");
    match worst {
        Some(finding) => {
            one(page, finding, &address)?;
            others(page, &findings[1..], &address)?;
        }
        None => page.push_str("<span class=\"sub\">Nothing found</span>"),
    }
    if !application.data_quality.is_empty() {
        let marks: Vec<_> =
            application.data_quality.iter().map(|mark| mark.as_str().replace('_', " ")).collect();
        write!(page, "<p class=\"quality\">Data: {}</p>", marks.join(", "))?;
    }
    page.push_str("</td></tr>\n");
    Ok(())
}

fn one(page: &mut String, finding: &Finding, address: &str) -> std::fmt::Result {
    let severity = finding.severity.as_str();
    write!(
        page,
        "<span class=\"pill {severity}\">{severity}</span> {}",
        Escaped(&privacy::redacted(&finding.headline))
    )?;
    // The words that labels and docs use, to look the finding up by.
    write!(
        page,
        " <a class=\"rule\" href=\"{}#{}\">{}",
        Whole(address),
        anchor(finding),
        finding.rule.as_str()
    )?;
    if let Some(cause) = finding.cause {
        write!(page, " / {}", cause.as_str())?;
    }
    page.push_str("</a>");
    if finding.severity >= Severity::Warning
        && let Some(advice) = finding.advice.first()
    {
        write!(page, "<p class=\"advice\">{}</p>", Escaped(&advice.change))?;
    }
    Ok(())
}

fn others(page: &mut String, findings: &[&Finding], address: &str) -> std::fmt::Result {
    if findings.is_empty() {
        return Ok(());
    }
    write!(page, "<details><summary>{}</summary><ul>", number(findings.len(), "more finding"))?;
    for finding in findings.iter().take(MAX_FINDINGS - 1) {
        page.push_str("<li>");
        one(page, finding, address)?;
        page.push_str("</li>");
    }
    if let Some(more) = findings.len().checked_sub(MAX_FINDINGS - 1).filter(|more| *more > 0) {
        write!(page, "<li class=\"sub\">and {more} more</li>")?;
    }
    page.push_str("</ul></details>");
    Ok(())
}

fn state_class(state: State) -> &'static str {
    match state {
        State::Running => "run",
        State::Succeeded => "ok",
        State::Failed | State::Lost => "critical",
        State::Killed => "warning",
        State::Cancelled | State::Unknown => "quiet",
    }
}
