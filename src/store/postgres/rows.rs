//! Between rows and what they stand for.
//!
//! PostgreSQL keeps no character 0 in texts: `U+FFFD` stands in its place.
//! Keys are asked for as they are written, so that such a run is still one.

use std::borrow::Cow;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_postgres::Row;

use super::fault::Fault;
use crate::model::RunId;
use crate::store::{NameKey, RunKey, RunRecord, StoredRun};

/// A text that a column takes.
pub(super) fn text(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "\u{FFFD}").into() } else { text.into() }
}

/// A value as JSON that a column takes.
pub(super) fn json<T: Serialize>(value: &T) -> Result<String, Fault> {
    let json = serde_json::to_string(value)
        .map_err(|error| Fault::Damaged(format!("cannot be written: {error}")))?;
    Ok(without_zero(json))
}

/// `\u0000` of a JSON text as `\ufffd`; not where its backslash is escaped
/// itself.
fn without_zero(json: String) -> String {
    if !json.contains("\\u0000") {
        return json;
    }
    let mut clean = String::with_capacity(json.len());
    let mut rest = json.as_str();
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        clean.push_str(before);
        if let Some(after) = escape.strip_prefix("\\u0000") {
            clean.push_str("\\ufffd");
            rest = after;
        } else {
            // The backslash and what it escapes, an ASCII character.
            let length = escape.len().min(2);
            clean.push_str(&escape[..length]);
            rest = &escape[length..];
        }
    }
    clean.push_str(rest);
    clean
}

pub(super) fn from_json<T: DeserializeOwned>(
    what: impl FnOnce() -> String,
    json: &str,
) -> Result<T, Fault> {
    serde_json::from_str(json)
        .map_err(|error| Fault::Damaged(format!("{} cannot be read: {error}", what())))
}

/// The columns of a key, as parameters.
pub(super) struct Key<'k> {
    pub(super) cluster: Cow<'k, str>,
    pub(super) app_id: Cow<'k, str>,
    pub(super) attempt: Cow<'k, str>,
}

impl<'k> Key<'k> {
    pub(super) fn of(id: &'k RunId) -> Self {
        Self {
            cluster: text(&id.cluster),
            app_id: text(&id.app_id),
            attempt: text(id.attempt_id.as_deref().unwrap_or_default()),
        }
    }
}

/// From the columns `spark_cluster, app_id, attempt_id, start_ms` at the
/// beginning of a row.
pub(super) fn key(row: &Row) -> Result<RunKey, Fault> {
    let attempt: String = row.try_get(2)?;
    let id = RunId {
        cluster: row.try_get(0)?,
        app_id: row.try_get(1)?,
        attempt_id: (!attempt.is_empty()).then_some(attempt),
    };
    Ok(RunKey { id, start_ms: row.try_get(3)? })
}

pub(super) fn record(key: &RunKey, row: &Row, column: usize) -> Result<RunRecord, Fault> {
    from_json(|| format!("the record of {}", key.id), row.try_get(column)?)
}

/// From the four columns of the key, the record and the summary.
pub(super) fn stored(row: &Row) -> Result<(RunKey, StoredRun), Fault> {
    let key = key(row)?;
    let record = record(&key, row, 4)?;
    let summary = from_json(|| format!("the summary of {}", key.id), row.try_get(5)?)?;
    Ok((key, StoredRun { record, summary }))
}

pub(super) fn totals_of(name: &NameKey) -> String {
    format!("the totals of {}/{}", name.cluster, name.app_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_real_zero_is_replaced() {
        for text in ["a\0b", "\\u0000", "\\\0", "\\\\u0000\0\0", "é\\", "\0é\n\"", ""] {
            let json = json(&text).unwrap();
            assert!(!json.replace("\\\\", "").contains("\\u0000"), "{json}");
            let back: String = serde_json::from_str(&json).unwrap();
            assert_eq!(back, text.replace('\0', "\u{FFFD}"));
        }
    }
}
