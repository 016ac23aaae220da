//! Spark's numbers, dates and quantiles as they really come: lenient on the
//! way in, so that one odd field costs only itself.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::model::Quantiles;

/// A whole number that should not be negative. Spark uses -1 for "none", and
/// some counters run below 0 when events are lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count(Option<i64>);

impl Count {
    /// The number; `None` where it is absent, negative or no number.
    pub fn get(self) -> Option<u64> {
        self.0.and_then(|number| u64::try_from(number).ok())
    }

    pub fn or_zero(self) -> u64 {
        self.get().unwrap_or_default()
    }

    pub fn is_negative(self) -> bool {
        self.0.is_some_and(|number| number < 0)
    }

    pub fn millis(self) -> Option<Duration> {
        self.get().map(Duration::from_millis)
    }

    pub fn nanos(self) -> Option<Duration> {
        self.get().map(Duration::from_nanos)
    }

    /// As an id; `None` beyond what an id can be.
    pub fn id(self) -> Option<u32> {
        self.get().and_then(|number| u32::try_from(number).ok())
    }

    pub fn signed(self) -> Option<i64> {
        self.0
    }
}

impl From<i64> for Count {
    fn from(number: i64) -> Self {
        Self(Some(number))
    }
}

/// A moment: `yyyy-MM-dd'T'HH:mm:ss.SSS'GMT'`, or milliseconds since the
/// epoch. Spark's "not yet" (the last millisecond of 1969, or -1) is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moment(pub Option<Timestamp>);

impl Moment {
    /// From milliseconds since the epoch.
    pub fn of_millis(millis: i64) -> Self {
        Self((millis > 0).then(|| Timestamp::from_millisecond(millis).ok()).flatten())
    }

    fn of_text(text: &str) -> Self {
        let utc = text.strip_suffix("GMT").map(|bare| format!("{bare}Z"));
        let moment: Option<Timestamp> = utc.as_deref().unwrap_or(text).parse().ok();
        Self(moment.filter(|moment| moment.as_millisecond() > 0))
    }
}

/// A number that may be written as a string, as Spark writes `NaN`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Real(Option<f64>);

/// Text, or none where it is something else. Cut, because stack traces and
/// query texts reach megabytes and only first lines are ever shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text(pub Option<String>);

/// Characters kept of a [`Text`].
const TEXT_LENGTH: usize = 2_000;

impl Text {
    pub fn get(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    /// The first lines, for people: at most three and 500 characters.
    pub fn first_lines(&self) -> Option<String> {
        let text = self.0.as_deref()?.trim();
        if text.is_empty() {
            return None;
        }
        let lines: Vec<&str> = text.lines().take(3).collect();
        Some(lines.join("\n").chars().take(500).collect())
    }
}

/// The quantiles of one measure: six numbers in the order of
/// [`crate::model::QUANTILES`].
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct QuantileArray(Option<[f64; 6]>);

impl QuantileArray {
    /// `None` unless there are six finite numbers, none of them negative.
    pub fn get(&self) -> Option<[f64; 6]> {
        self.0
    }

    pub fn counts(&self) -> Option<Quantiles<u64>> {
        self.0.map(|values| Quantiles::from_array(values.map(|value| value as u64)))
    }

    pub fn millis(&self) -> Option<Quantiles<Duration>> {
        self.0.map(|values| {
            Quantiles::from_array(values.map(|value| Duration::from_millis(value as u64)))
        })
    }

    pub fn nanos(&self) -> Option<Quantiles<Duration>> {
        self.0.map(|values| {
            Quantiles::from_array(values.map(|value| Duration::from_nanos(value as u64)))
        })
    }
}

/// Any JSON value as the one scalar that interests us.
struct Scalar;

enum Value {
    Integer(i64),
    Real(f64),
    Text(String),
    Other,
}

impl<'de> Visitor<'de> for Scalar {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }
    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Integer(number))
    }
    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Integer(i64::try_from(number).unwrap_or(i64::MAX)))
    }
    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Real(number))
    }
    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.chars().take(TEXT_LENGTH).collect()))
    }
    fn visit_bool<E>(self, _: bool) -> Result<Value, E> {
        Ok(Value::Other)
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Other)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Other)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::Other)
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match deserializer.deserialize_any(Scalar)? {
            Value::Integer(number) => Some(number),
            // A cast saturates, so what is out of range stays absurd.
            Value::Real(number) if number.is_finite() => Some(number as i64),
            Value::Text(text) => text.parse().ok(),
            Value::Real(_) | Value::Other => None,
        }))
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match deserializer.deserialize_any(Scalar)? {
            Value::Integer(millis) => Self::of_millis(millis),
            Value::Text(text) => Self::of_text(&text),
            Value::Real(_) | Value::Other => Self(None),
        })
    }
}

impl<'de> Deserialize<'de> for Real {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match deserializer.deserialize_any(Scalar)? {
            Value::Integer(number) => Some(number as f64),
            Value::Real(number) => Some(number),
            Value::Text(text) => text.parse().ok(),
            Value::Other => None,
        }))
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match deserializer.deserialize_any(Scalar)? {
            Value::Text(text) => Some(text),
            _ => None,
        }))
    }
}

impl<'de> Deserialize<'de> for QuantileArray {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let numbers = Option::<Vec<Real>>::deserialize(deserializer)?.unwrap_or_default();
        let sound: Option<Vec<f64>> = numbers
            .into_iter()
            .map(|number| number.0.filter(|number| number.is_finite() && *number >= 0.0))
            .collect();
        Ok(Self(sound.and_then(|numbers| numbers.try_into().ok())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: for<'de> Deserialize<'de>>(json: &str) -> T {
        serde_json::from_str(json).expect(json)
    }

    #[test]
    fn numbers_as_they_come() {
        for (json, expected) in [
            ("7", Some(7)),
            ("-1", None),
            ("7.0", Some(7)),
            ("\"7\"", Some(7)),
            ("\"NaN\"", None),
            ("null", None),
            ("{\"a\": [1]}", None),
            ("[1, {}]", None),
            ("true", None),
        ] {
            assert_eq!(read::<Count>(json).get(), expected, "{json}");
        }
        assert!(read::<Count>("-3").is_negative());
    }

    #[test]
    fn moments_and_spark_s_not_yet() {
        let expected: Timestamp = "2026-11-30T03:19:09.420Z".parse().expect("a time");
        for json in ["\"2026-11-30T03:19:09.420GMT\"", "1796008749420"] {
            assert_eq!(read::<Moment>(json).0, Some(expected), "{json}");
        }
        for json in ["\"1969-12-31T23:59:59.999GMT\"", "-1", "0", "\"soon\"", "null", "1e300"] {
            assert_eq!(read::<Moment>(json).0, None, "{json}");
        }
    }

    #[test]
    fn quantiles_with_nan_or_of_another_length_are_none() {
        let whole: QuantileArray = read("[0.0, 1.0, 2.0, 3.0, 4.0, 1.04157745E8]");
        assert_eq!(whole.counts().map(|q| q.max), Some(104_157_745));
        for json in [
            "[0.0, \"NaN\", 2.0, 3.0, 4.0, 5.0]",
            "[0.0, -1.0, 2.0, 3.0, 4.0, 5.0]",
            "[0.0, 1.0]",
            "[]",
            "null",
        ] {
            assert_eq!(read::<QuantileArray>(json).get(), None, "{json}");
        }
    }

    #[test]
    fn texts_are_cut() {
        let long: Text = read(&format!("\"{}\"", "x".repeat(10_000)));
        assert_eq!(long.get().len(), TEXT_LENGTH);
        let trace: Text = read("\"a\\nb\\nc\\nd\"");
        assert_eq!(trace.first_lines().as_deref(), Some("a\nb\nc"));
    }
}
