//! Answers of the REST API that were saved as files: a folder of them, or some
//! on the command line.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use jiff::Timestamp;

use super::session::Session;
use crate::model::Application;
use crate::rest::saved::Saved;

/// Files of one run.
const FILES: usize = 20_000;

/// Bytes of one file.
const FILE: u64 = 256 << 20;

/// Takes what are saved answers out of the sources. Files belong together;
/// each folder is a run of its own.
pub(super) fn take(sources: &mut Vec<String>) -> Vec<Vec<PathBuf>> {
    let mut loose = Vec::new();
    let mut folders = Vec::new();
    sources.retain(|source| {
        let path = Path::new(source.strip_prefix("file://").unwrap_or(source));
        if path.is_dir() {
            let files = if holds_answers(path) { json_files(path) } else { Vec::new() };
            let saved = files.iter().any(|file| is_answer(file));
            if saved {
                folders.push(files);
            }
            return !saved;
        }
        let saved = path.is_file() && is_answer(path);
        if saved {
            loose.push(path.to_owned());
        }
        !saved
    });
    folders.extend(Some(loose).filter(|files| !files.is_empty()));
    folders
}

/// Whether nothing in a folder looks like an event log: a directory of those
/// may hold a stray JSON file.
fn holds_answers(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    entries.flatten().all(|entry| {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().to_ascii_lowercase();
        let end = path.extension().map(|end| end.to_string_lossy().to_ascii_lowercase());
        if path.is_dir() {
            !name.starts_with("eventlog")
        } else {
            name.starts_with('.') || matches!(end.as_deref(), Some("json" | "txt" | "md"))
        }
    })
}

/// The JSON files of a folder and of the folders in it (`stages/2/0/`).
fn json_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut pending = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = pending.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.is_dir() && depth < 4 {
                pending.push((path, depth + 1));
            } else if path.extension().is_some_and(|end| end.eq_ignore_ascii_case("json"))
                && files.len() < FILES
            {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// JSON, and no event log, whose lines begin with `{"Event":`.
fn is_answer(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(512).read_to_end(&mut start));
    if read.is_err() {
        return false;
    }
    let text = String::from_utf8_lossy(&start);
    let text = text.trim_start_matches(['\u{feff}', ' ', '\r', '\n', '\t']);
    text.starts_with(['[', '{']) && !text.contains("\"Event\"")
}

/// The run that these files tell of, and where they lie.
pub(super) fn read(
    files: &[PathBuf],
    wanted: &[String],
    session: &Session,
) -> anyhow::Result<(Application, String)> {
    let place = match files {
        [only] => only.display().to_string(),
        _ => files
            .first()
            .and_then(|file| file.parent())
            .map_or_else(String::new, |folder| folder.display().to_string()),
    };
    session.progress.reading(&place);
    let mut saved = Saved::default();
    let mut latest = Timestamp::UNIX_EPOCH;
    let mut understood = 0;
    for path in files {
        let name = path.display().to_string();
        let file = fs::File::open(path).with_context(|| format!("cannot read {name}"))?;
        let about = file.metadata().with_context(|| format!("cannot read {name}"))?;
        if about.len() > FILE {
            bail!("{name} is larger than {FILE} bytes: ask for stages with details=false");
        }
        let modified = about.modified().ok().and_then(|time| Timestamp::try_from(time).ok());
        latest = latest.max(modified.unwrap_or(Timestamp::UNIX_EPOCH));
        let mut json = Vec::new();
        file.take(FILE).read_to_end(&mut json).with_context(|| format!("cannot read {name}"))?;
        // One that is not Spark's costs only itself.
        match saved.add(&name, &json) {
            Ok(()) => understood += 1,
            Err(error) => session.progress.complain(&error.to_string()),
        }
    }
    if understood == 0 {
        bail!("{place}: no answer of Spark's REST API is in it");
    }
    let plan_nodes = session.config.limits.plan_nodes;
    let read = saved.finish(&session.cluster, wanted, latest, plan_nodes);
    let read = read.with_context(|| place.clone())?;
    for note in read.notes.iter().take(20) {
        session.progress.complain(note);
    }
    for endpoint in &read.missing {
        session.progress.complain(&format!(
            "not among them: {} would add {}",
            endpoint.path(),
            endpoint.adds()
        ));
    }
    Ok((read.application, place))
}
