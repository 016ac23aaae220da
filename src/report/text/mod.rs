//! `diagnose` for a terminal: the outline in plain lines, bars made of block
//! characters where a page has plots.

mod bars;
mod blocks;

use std::fmt::Write;

use super::outline::Outline;
use super::{Diagnosed, Texts};
use crate::diagnose::Severity;

/// Whether to colour severities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colours {
    Ansi,
    None,
}

/// All diagnosed runs, one after the other.
///
/// Text that comes from the application (names, failure reasons) is cleaned
/// of control characters: a name must not steer somebody's terminal.
pub fn text(runs: &[Diagnosed], colours: Colours, texts: Texts) -> String {
    let mut out = String::new();
    for (number, run) in runs.iter().enumerate() {
        if number > 0 {
            out.push('\n');
        }
        let mut page = Page { out: &mut out, colours };
        page.outline(&Outline::new(run, texts));
    }
    out
}

struct Page<'a> {
    out: &'a mut String,
    colours: Colours,
}

impl Page<'_> {
    /// One line; writing to a `String` cannot fail.
    fn line(&mut self, text: impl AsRef<str>) {
        self.out.push_str(text.as_ref().trim_end());
        self.out.push('\n');
    }

    fn outline(&mut self, outline: &Outline) {
        let heading = &outline.heading;
        let mut line = format!("{} ({})", heading.name, heading.app_id);
        if let Some(attempt) = &heading.attempt_id {
            let _ = write!(line, " attempt {attempt}");
        }
        self.line(format!("{line}, {}", heading.facts.join(", ")));
        let findings = outline.sections.iter().find(|section| section.id == "findings");
        let one_finding = findings.is_some_and(|section| section.blocks.len() == 1);
        for section in &outline.sections {
            // Those of the one finding stand right above.
            if section.id == "suggestions" && one_finding {
                continue;
            }
            // The conclusion is what a reader wants first: no title before it.
            if section.id != "conclusion" {
                self.out.push('\n');
                let title = section.title;
                self.line(match self.colours {
                    Colours::Ansi => format!("\x1b[1m{title}\x1b[0m"),
                    Colours::None => title.to_owned(),
                });
            }
            for block in &section.blocks {
                self.block(block);
            }
        }
    }
}

pub(super) fn paint(severity: Severity, text: &str, colours: Colours) -> String {
    if colours == Colours::None {
        return text.to_owned();
    }
    let code = match severity {
        Severity::Critical => "1;31",
        Severity::Warning => "1;33",
        Severity::Info => "36",
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}
