//! What was read, to standard output as it comes; what was not, to standard
//! error.

use std::collections::BTreeSet;
use std::io::{self, BufWriter, Write};

use anyhow::Context;

use super::plan::Wanted;
use super::progress::Progress;
use super::read::Read;
use super::{FailOn, Format};
use crate::report::{self, Colours, Diagnosed, SqlTexts, Summary};

/// How to print.
#[derive(Debug, Clone, Copy)]
pub(super) struct Style {
    pub(super) format: Format,
    pub(super) colours: Colours,
    pub(super) texts: SqlTexts,
    pub(super) fail_on: FailOn,
}

/// What all results came to.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Something could not be read.
    pub(super) unread: bool,
    /// Something was found at or above `--fail-on`.
    pub(super) found: bool,
    /// Of those that were asked for.
    pub(super) app_ids: BTreeSet<String>,
    summaries: Vec<Summary>,
}

type Results<'a> = &'a mut dyn Iterator<Item = anyhow::Result<Read>>;

/// Prints each run that is wanted.
///
/// # Errors
/// Where standard output takes no more; a reader that has seen enough
/// (`| head`) is none.
pub(super) fn print(
    results: Results<'_>,
    wanted: &Wanted,
    style: Style,
    progress: &Progress,
) -> anyhow::Result<Seen> {
    let mut seen = Seen::default();
    let mut runs = results.filter_map(|result| seen.take(result, wanted, style.fail_on, progress));
    let printed = match style.format {
        Format::Json => {
            let runs = runs.map(|(run, _)| run);
            report::json(BufWriter::new(io::stdout().lock()), runs, style.texts)
                .map_err(io::Error::from)
        }
        Format::Text => {
            let mut summaries = Vec::new();
            let printed = runs.try_for_each(|(run, place)| {
                let mut text = report::text(std::slice::from_ref(&run), style.colours, style.texts);
                if !summaries.is_empty() {
                    text.insert(0, '\n');
                }
                summaries.push(Summary::new(&run, &place));
                write(progress, &text)
            });
            seen.summaries = summaries;
            printed
        }
    };
    progress.end();
    let table = Summary::table(std::mem::take(&mut seen.summaries), style.colours);
    match printed.and_then(|()| write(progress, &table)) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(seen),
        other => other.context("cannot write to standard output").map(|()| seen),
    }
}

fn write(progress: &Progress, text: &str) -> io::Result<()> {
    progress.aside(|| {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush())
    })
}

impl Seen {
    fn take(
        &mut self,
        result: anyhow::Result<Read>,
        wanted: &Wanted,
        fail_on: FailOn,
        progress: &Progress,
    ) -> Option<(Diagnosed, String)> {
        let Read { run, place } = match result {
            Ok(read) => read,
            Err(error) => {
                self.unread = true;
                progress.complain(&format!("{error:#}"));
                return None;
            }
        };
        let id = &run.application.id.app_id;
        if !wanted.is(id) {
            return None;
        }
        if !wanted.app_ids.is_empty() {
            self.app_ids.insert(id.clone());
        }
        let mut findings = run.diagnosis.findings.iter();
        self.found |= findings.any(|finding| fail_on.reached_by(finding.severity));
        Some((run, place))
    }
}
