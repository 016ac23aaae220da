//! The accumulators of plan metrics in the ends of tasks and stages.
//!
//! A task's end lists some thirty accumulators, and most of the bytes of a log
//! are theirs. Those of plan metrics say `"Metadata":"sql"`; the others repeat
//! the `Task Metrics` and are not read. Spark 3.3 to 4.3 lay each out as
//!
//! ```text
//! {"ID":66,"Name":"number of output rows","Update":"1","Value":"1",
//!  "Internal":true,"Count Failed Values":true,"Metadata":"sql"}
//! ```
//!
//! with a number as text for plan metrics and as number for its own, so a scan
//! that knows this is enough: [`shorten`] writes `66=1 ` for each, and
//! [`SqlUpdates`] reads that text as well as Spark's own objects.

use std::fmt;

use memchr::{memchr, memmem};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::field::{Number, Object, Text};

/// Updates kept of one task: a plan with more metrics in one stage has not
/// been seen.
const MOST_UPDATES: usize = 100_000;

/// Appends the updates of plan metrics in a list of accumulables (without its
/// brackets) to `out`, as `ID=UPDATE ` each. `None` where one of them is laid
/// out in another way.
///
/// Inside a JSON string every quote has a backslash before it, so `{"ID":` can
/// only begin an object.
pub(super) fn shorten(list: &str, out: &mut String) -> Option<()> {
    const BEGIN: &[u8] = b"{\"ID\":";
    const NAME: &str = ",\"Name\":\"";
    const UPDATE: &str = "\",\"Update\":\"";
    const METADATA: &str = "\"Metadata\":\"sql\"";
    let mut rest = list;
    if !rest.is_empty() && !rest.starts_with("{\"ID\":") {
        return None;
    }
    loop {
        // Mostly the next object begins right here.
        if !rest.as_bytes().starts_with(BEGIN) {
            let Some(next) = memmem::find(rest.as_bytes(), BEGIN) else { return Some(()) };
            rest = &rest[next..];
        }
        let object = &rest[BEGIN.len()..];
        let end = memchr(b'}', object.as_bytes())?;
        rest = object[end + 1..].strip_prefix(',').unwrap_or(&object[end + 1..]);
        let object = &object[..end];
        if !object.ends_with(METADATA) {
            // Spark's own end with a flag; what ends otherwise was cut at a
            // brace within a name or value.
            let flag = object.ends_with(":true") || object.ends_with(":false");
            if flag || object.ends_with(|last: char| last.is_ascii_digit()) {
                continue;
            }
            return None;
        }
        let (id, named) = digits(object)?;
        let named = named.strip_prefix(NAME)?;
        let quote = memchr(b'"', named.as_bytes())?;
        // A stage's list has values only, a name may have escapes: neither
        // is a reason to give up, both are read the slow way.
        let update = named[quote..].strip_prefix(UPDATE)?;
        let (sign, update) = match update.strip_prefix('-') {
            Some(update) => ("-", update),
            None => ("", update),
        };
        let (update, after) = digits(update)?;
        if !after.starts_with('"') {
            return None;
        }
        out.push_str(id);
        out.push('=');
        out.push_str(sign);
        out.push_str(update);
        out.push(' ');
    }
}

/// The digits a text begins with, and what follows them.
fn digits(text: &str) -> Option<(&str, &str)> {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// What a task added to plan metrics.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum SqlUpdates<'a> {
    #[default]
    None,
    /// As [`shorten`] writes them.
    Short(&'a str),
    Listed(Vec<(u64, i64)>),
}

impl SqlUpdates<'_> {
    /// Calls for each (accumulator, update) in the order of the log.
    pub(super) fn each(&self, mut call: impl FnMut(u64, i64)) {
        match self {
            Self::None => {}
            Self::Short(text) => {
                for pair in text.split_terminator(' ') {
                    if let Some((id, update)) = pair.split_once('=')
                        && let (Ok(id), Ok(update)) = (id.parse(), update.parse())
                    {
                        call(id, update);
                    }
                }
            }
            Self::Listed(list) => list.iter().for_each(|(id, update)| call(*id, *update)),
        }
    }
}

/// What plan metrics had come to at the end of a stage.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SqlValues(pub(super) Vec<(u64, i64)>);

/// An accumulable, as far as it is read.
#[derive(serde::Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Accumulable<'a> {
    #[serde(rename = "ID")]
    id: Number,
    #[serde(rename = "Update")]
    update: Number,
    #[serde(rename = "Value")]
    value: Number,
    #[serde(rename = "Metadata")]
    metadata: Text<'a>,
}

impl Accumulable<'_> {
    fn pair(&self, number: Number) -> Option<(u64, i64)> {
        (self.metadata.get() == Some("sql")).then_some(())?;
        Some((self.id.count()?, number.get()?))
    }
}

/// Reads a list of accumulables, keeping what `pick` makes of each.
fn pick_all<'de, A: SeqAccess<'de>>(
    mut items: A,
    pick: impl Fn(&Accumulable<'de>) -> Option<(u64, i64)>,
) -> Result<Vec<(u64, i64)>, A::Error> {
    let mut list = Vec::new();
    while let Some(Object(item)) = items.next_element::<Object<Accumulable<'de>>>()? {
        if list.len() < MOST_UPDATES
            && let Some(pair) = pick(&item)
        {
            list.push(pair);
        }
    }
    Ok(list)
}

macro_rules! tolerant {
    () => {
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("accumulables")
        }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
        fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
        fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
            while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok(Self::Value::default())
        }
    };
}

impl<'de: 'a, 'a> Deserialize<'de> for SqlUpdates<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Take;
        impl<'de> Visitor<'de> for Take {
            type Value = SqlUpdates<'de>;
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(SqlUpdates::Short(text))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Self::Value, A::Error> {
                let list = pick_all(items, |item| item.pair(item.update))?;
                Ok(if list.is_empty() { SqlUpdates::None } else { SqlUpdates::Listed(list) })
            }
            tolerant!();
        }
        deserializer.deserialize_any(Take)
    }
}

impl<'de> Deserialize<'de> for SqlValues {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Take;
        impl<'de> Visitor<'de> for Take {
            type Value = SqlValues;
            fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Self::Value, A::Error> {
                pick_all(items, |item| item.pair(item.value)).map(SqlValues)
            }
            tolerant!();
        }
        deserializer.deserialize_any(Take)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &str = r#"{"ID":66,"Name":"number of output rows","Update":"12","Value":"30","Internal":true,"Count Failed Values":true,"Metadata":"sql"}"#;
    const SIZE: &str = r#"{"ID":7,"Name":"peak memory","Update":"-1","Value":"5","Internal":true,"Count Failed Values":true,"Metadata":"sql"}"#;
    const OWN: &str = r#"{"ID":102,"Name":"internal.metrics.executorRunTime","Update":81,"Value":81,"Internal":true,"Count Failed Values":true}"#;
    const BLOCKS: &str = r#"{"ID":103,"Name":"internal.metrics.updatedBlockStatuses","Update":[{"Block ID":"rdd_1_0","Status":{"Memory Size":1}}],"Value":[],"Internal":true,"Count Failed Values":true}"#;
    const USER: &str = r#"{"ID":9,"Name":"mine } \"Metadata\":\"sql","Update":"{\"ID\":1}","Value":"x","Internal":false,"Count Failed Values":false}"#;

    fn short(list: &str) -> Option<String> {
        let mut out = String::new();
        shorten(list, &mut out)?;
        Some(out)
    }

    fn pairs(updates: &SqlUpdates<'_>) -> Vec<(u64, i64)> {
        let mut pairs = Vec::new();
        updates.each(|id, update| pairs.push((id, update)));
        pairs
    }

    #[test]
    fn both_ways_tell_the_same() {
        let list = [OWN, ROWS, BLOCKS, SIZE, OWN].join(",");
        let text = short(&list).expect("Spark's layout");
        assert_eq!(text, "66=12 7=-1 ");
        let quoted = format!("\"{text}\"");
        let short: SqlUpdates<'_> = serde_json::from_str(&quoted).expect("a text");
        let whole = format!("[{list},{USER}]");
        let listed: SqlUpdates<'_> = serde_json::from_str(&whole).expect("a list");
        assert_eq!(pairs(&short), [(66, 12), (7, -1)]);
        assert_eq!(pairs(&listed), pairs(&short));
        let values: SqlValues = serde_json::from_str(&whole).expect("a list");
        assert_eq!(values.0, [(66, 30), (7, 5)]);
    }

    #[test]
    fn another_layout_is_read_the_slow_way() {
        assert_eq!(short(""), Some(String::new()));
        for other in [
            &ROWS.replace("\"Update\":\"12\",", ""),
            &ROWS.replace("\"12\"", "\"many\""),
            &ROWS.replace("\"12\"", "12"),
            &ROWS.replace("{\"ID\"", "{ \"ID\""),
            &ROWS.replace("number of", "number \\\"of\\\""),
            &ROWS.replace("number of", "number of }"),
            USER,
            &ROWS[..40],
        ] {
            assert_eq!(short(other), None, "{other}");
        }
    }

    #[test]
    fn odd_values_are_none() {
        for odd in ["null", "3", "true", "{}", "[]", "1.5", "[1,null,\"a\",{}]"] {
            let updates: SqlUpdates<'_> = serde_json::from_str(odd).expect("never fails");
            assert_eq!(updates, SqlUpdates::None, "{odd}");
            assert!(serde_json::from_str::<SqlValues>(odd).expect("never fails").0.is_empty());
        }
    }
}
