//! `spark-exporter store check`.

use std::io::Write;

use jiff::Timestamp;

use crate::cli::Outcome;
use crate::store::{Backend, Meta, Size};

/// Reads all of the store, and says what it holds and what is wrong.
pub(super) fn run(store: &dyn Backend) -> anyhow::Result<Outcome> {
    let mut out = std::io::stdout().lock();
    let checked = store.check();
    match &checked {
        Ok(()) => writeln!(out, "{} is whole", store.about())?,
        Err(error) => writeln!(out, "{error}")?,
    }
    let (Meta { created_ms, forgotten_ms }, size) = (store.meta()?, store.size()?);
    writeln!(out, "  format:    version {}", store.version())?;
    writeln!(out, "  made:      {}", time(created_ms))?;
    if forgotten_ms > i64::MIN {
        writeln!(out, "  forgotten: runs that ended up to {}", time(forgotten_ms))?;
    }
    let Size { runs, names, run_bytes, total_bytes, delivered, delivered_bytes } = size;
    let total = total_bytes.map_or_else(String::new, |bytes| format!(", {} in all", humane(bytes)));
    writeln!(out, "  runs:      {runs} ({}{total})", humane(run_bytes))?;
    writeln!(out, "  names:     {names}")?;
    writeln!(out, "  sent:      parts of {delivered} runs ({})", humane(delivered_bytes))?;
    writeln!(out, "  waiting:   {} runs whose end nobody saw", store.uncounted()?.len())?;
    if let Some(oldest) = store.oldest(1)?.first() {
        writeln!(out, "  oldest:    kept since {}", time(oldest.since_ms))?;
    }
    if let Some(latest) = store.latest_end_ms()? {
        writeln!(out, "  newest:    ended {}", time(latest))?;
    }
    Ok(if checked.is_ok() { Outcome::Good } else { Outcome::Unread })
}

fn time(millis: i64) -> String {
    Timestamp::from_millisecond(millis).map_or_else(|_| format!("{millis} ms"), |t| t.to_string())
}

/// Rounded to the largest unit of which there are ten.
fn humane(bytes: u64) -> String {
    let (unit, factor) = [("GiB", 1_u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)]
        .into_iter()
        .find(|(_, factor)| bytes >= 10 * factor)
        .unwrap_or(("B", 1));
    format!("{}{unit}", bytes / factor)
}
