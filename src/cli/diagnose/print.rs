//! What was read, to standard output as it comes; what was not, to standard
//! error.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::plan::Wanted;
use super::progress::Progress;
use super::read::Read;
use super::{FailOn, Format};
use crate::report::{self, Colours, Diagnosed, Place, Summary, Texts};

/// How to print.
#[derive(Debug, Clone, Copy)]
pub(super) struct Style {
    pub(super) format: Format,
    pub(super) colours: Colours,
    pub(super) texts: Texts,
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
    out: &mut Out,
    progress: &Progress,
) -> anyhow::Result<Seen> {
    let mut seen = Seen::default();
    let runs = &mut results.filter_map(|result| seen.take(result, wanted, style.fail_on, progress));
    let printed = match style.format {
        Format::Json => {
            let runs = runs.map(|(run, _)| run);
            report::json(out.writer(), runs, style.texts).map_err(io::Error::from)
        }
        Format::Text => text(runs, style, out, progress),
        Format::Markdown => runs.try_for_each(|(run, _)| {
            let mut text = report::markdown(&run, style.texts);
            if std::mem::replace(&mut out.begun, true) {
                text.insert(0, '\n');
            }
            out.write(&text, progress)
        }),
        Format::Html => html(runs, style, out, progress),
    };
    progress.end();
    match printed {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        Err(error) => return Err(error).with_context(|| format!("cannot write to {out}")),
        Ok(()) => {}
    }
    seen.unread |= out.refused > 0;
    Ok(seen)
}

type Runs<'a> = &'a mut dyn Iterator<Item = (Diagnosed, String)>;

/// Each run as it comes, then a line for each.
fn text(runs: Runs<'_>, style: Style, out: &mut Out, progress: &Progress) -> io::Result<()> {
    let mut summaries = Vec::new();
    for (run, place) in runs {
        let mut text = report::text(std::slice::from_ref(&run), style.colours, style.texts);
        if !summaries.is_empty() {
            text.insert(0, '\n');
        }
        summaries.push(Summary::new(&run, &place));
        out.write(&text, progress)?;
    }
    progress.end();
    out.write(&Summary::table(summaries, style.colours), progress)
}

/// A page is of one application: two would be no page.
fn html(runs: Runs<'_>, style: Style, out: &mut Out, progress: &Progress) -> io::Result<()> {
    for (run, _) in runs {
        if std::mem::replace(&mut out.begun, true) {
            out.refused += 1;
        } else {
            out.write(&report::html(&run, style.texts, Place::File), progress)?;
        }
    }
    if out.refused > 0 {
        progress.complain(&format!(
            "--format html is a page of one application: {} more were read and are not on it; \
             choose with --app-id or --latest 1",
            out.refused
        ));
    }
    Ok(())
}

/// Standard output, or the file of `--output`.
#[derive(Debug)]
pub(super) struct Out {
    file: Option<(PathBuf, File)>,
    /// Something was written.
    begun: bool,
    /// Applications that had no place in it.
    refused: usize,
}

impl Out {
    /// # Errors
    /// Where the file cannot be made: said before anything is read.
    pub(super) fn new(path: Option<&Path>) -> anyhow::Result<Self> {
        let file = path
            .map(|path| {
                let file = File::create(path);
                let file = file.with_context(|| format!("cannot write to {}", path.display()))?;
                anyhow::Ok((path.to_owned(), file))
            })
            .transpose()?;
        Ok(Self { file, begun: false, refused: 0 })
    }

    fn writer(&mut self) -> BufWriter<Box<dyn Write + '_>> {
        BufWriter::new(match &mut self.file {
            Some((_, file)) => Box::new(file),
            None => Box::new(io::stdout().lock()),
        })
    }

    fn write(&mut self, text: &str, progress: &Progress) -> io::Result<()> {
        progress.aside(|| {
            let mut out = self.writer();
            out.write_all(text.as_bytes()).and_then(|()| out.flush())
        })
    }
}

impl std::fmt::Display for Out {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.file {
            Some((path, _)) => write!(f, "{}", path.display()),
            None => f.write_str("standard output"),
        }
    }
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
