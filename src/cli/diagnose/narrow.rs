//! From the applications that were read to the one with the SQL execution that
//! was asked for, and its report to that execution.

use anyhow::anyhow;

use super::plan::Wanted;
use super::progress::Progress;
use super::read::Read;
use super::select::{Choice, Chosen, candidates};
use crate::report::{Texts, focus};

/// Applications of which the execution may be, that are named.
const NAMED: usize = 20;

/// The one report; or what could not be read, and why nothing was chosen.
pub(super) fn narrow(
    results: &mut dyn Iterator<Item = anyhow::Result<Read>>,
    choice: &Choice,
    wanted: &Wanted,
    texts: Texts,
    progress: &Progress,
) -> Vec<anyhow::Result<Read>> {
    let mut narrowed = Vec::new();
    let mut found: Option<(Read, u64, Vec<u64>)> = None;
    let mut named: Vec<String> = Vec::new();
    let mut reasons: Vec<String> = Vec::new();
    let mut ambiguous = false;
    for result in results {
        let read = match result {
            Ok(read) if wanted.is(&read.run.application.id.app_id) => read,
            // It is printed, or left out, as without a choice.
            other => {
                narrowed.push(other);
                continue;
            }
        };
        let application = &read.run.application;
        let app_id = application.id.app_id.clone();
        match choice.of(application) {
            Chosen::One(id, earlier) => {
                named.push(app_id);
                if found.is_none() {
                    found = Some((read, id, earlier));
                }
            }
            Chosen::Ambiguous(ids) => {
                ambiguous = true;
                narrowed.push(Err(anyhow!(
                    "{app_id}: {} SQL executions may be the {}; say which:\n{}",
                    ids.len(),
                    choice.words(),
                    candidates(application, &ids, texts)
                )));
            }
            Chosen::None(why) if choice.may_be_none() => {
                progress.complain(&format!("{why}: the report is about the whole application"));
                narrowed.push(Ok(read));
            }
            Chosen::None(why) => reasons.push(format!("{app_id}: {why}")),
        }
    }
    match found {
        Some((read, id, earlier)) if named.len() == 1 && !ambiguous => {
            tell(&read, id, &earlier, progress);
            let run = focus(read.run, id);
            narrowed.push(Ok(Read { run, place: read.place }));
        }
        Some(_) if named.len() > 1 => {
            named.sort();
            named.truncate(NAMED);
            narrowed.push(Err(anyhow!(
                "several applications have the {}: add --app-id, one of {}",
                choice.words(),
                named.join(", ")
            )));
        }
        Some((_, id, _)) => narrowed.push(Err(anyhow!(
            "{} has one, too: add --app-id {0} (SQL execution {id}) or --sql-id",
            named.join(", ")
        ))),
        None if reasons.is_empty() => {}
        None => {
            let first: Vec<&str> = reasons.iter().take(NAMED).map(String::as_str).collect();
            narrowed.push(Err(anyhow!("no {}: {}", choice.words(), first.join("; "))));
        }
    }
    narrowed
}

/// Which execution the report is about, and what it leaves out.
fn tell(read: &Read, id: u64, earlier: &[u64], progress: &Progress) {
    progress.complain(&format!(
        "the report is about SQL execution {id} of {}, its jobs and stages",
        read.run.application.id.app_id
    ));
    if !earlier.is_empty() {
        let ids: Vec<String> = earlier.iter().rev().take(NAMED).map(ToString::to_string).collect();
        progress.complain(&format!(
            "it is the latest of {} with the same text (also {}): --at or --sql-id chooses another",
            earlier.len() + 1,
            ids.join(", ")
        ));
    }
}
