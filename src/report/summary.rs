//! One line for each of several applications, worst first.

use std::fmt::Write;

use super::privacy::plain as clean;
use super::text::paint;
use super::{Colours, Diagnosed};
use crate::diagnose::{Severity, humane};

/// Characters of a headline.
const HEADLINE: usize = 100;

/// What stays of an application once its report is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    severity: Option<Severity>,
    line: String,
}

impl Summary {
    /// `place` is where it was read: a path or URL.
    pub fn new(run: &Diagnosed, place: &str) -> Self {
        let application = &run.application;
        let findings = &run.diagnosis.findings;
        // Costliest first: of the most severe ones the first.
        let severity = findings.iter().map(|finding| finding.severity).max();
        let worst = findings.iter().find(|finding| Some(finding.severity) == severity);
        let duration = application.duration().map_or("?".to_owned(), humane::duration);
        let mut line = format!("{:<9}  {duration:>8}", application.state.as_str());
        let _ = write!(line, "  {} ({}", clean(&application.name), clean(&application.id.app_id));
        if let Some(attempt) = &application.id.attempt_id {
            let _ = write!(line, " attempt {}", clean(attempt));
        }
        line.push(')');
        if let Some(worst) = worst {
            let headline = clean(&worst.headline);
            let _ = write!(line, ": {}", headline.chars().take(HEADLINE).collect::<String>());
            if headline.chars().nth(HEADLINE).is_some() {
                line.push('…');
            }
        }
        let _ = write!(line, "  [{}]", clean(place));
        Self { severity, line }
    }

    /// The summary of several; empty for fewer. Those that are equally ill
    /// stay in their order.
    pub fn table(mut all: Vec<Self>, colours: Colours) -> String {
        if all.len() < 2 {
            return String::new();
        }
        let mut out = format!("\n{} applications, worst first:\n", all.len());
        all.sort_by_key(|one| std::cmp::Reverse(one.severity));
        for Self { severity, line } in all {
            let word = severity.map_or("-", Severity::as_str).to_uppercase();
            let word = format!("{word:<8}");
            let word = severity.map_or(word.clone(), |severity| paint(severity, &word, colours));
            let _ = writeln!(out, "  {word}  {line}");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::diagnose::Diagnosis;
    use crate::model::{Application, RunId, Source};

    fn run(name: &str) -> Diagnosed {
        let id = RunId {
            cluster: "c".to_owned(),
            app_id: "app-1".to_owned(),
            attempt_id: Some("2".to_owned()),
        };
        let mut application = Application::new(id, Source::EventLog, Timestamp::UNIX_EPOCH);
        application.name = name.to_owned();
        Diagnosed { application, diagnosis: Diagnosis::default() }
    }

    #[test]
    fn one_application_needs_no_summary() {
        let one = Summary::new(&run("a"), "x");
        assert_eq!(Summary::table(vec![one], Colours::None), "");
    }

    #[test]
    fn each_has_its_line_and_no_control_characters() {
        let mut bad = Summary::new(&run("late"), "s3://b/late");
        bad.severity = Some(Severity::Warning);
        let table =
            Summary::table(vec![Summary::new(&run("a\x1b[31m"), "/logs/a"), bad], Colours::None);
        let lines: Vec<&str> = table.trim().lines().collect();
        assert_eq!(lines[0], "2 applications, worst first:");
        assert!(lines[1].starts_with("  WARNING   unknown"), "{table}");
        assert!(lines[1].ends_with("late (app-1 attempt 2)  [s3://b/late]"), "{table}");
        assert!(lines[2].starts_with("  -  "), "{table}");
        assert!(!table.contains('\x1b'));
    }
}
