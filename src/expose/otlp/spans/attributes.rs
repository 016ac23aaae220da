//! Attributes of a span: names of the catalogue, with the unit in them, since
//! attributes have no unit of their own.

use std::sync::LazyLock;
use std::time::Duration;

use opentelemetry::{Array, Key, KeyValue, StringValue, Value};

use crate::diagnose::{TimePart, TimeSplit};
use crate::metrics::catalogue::{CATALOGUE, Id, Metric};
use crate::model::{Distribution, Quantity};

/// By the place of a metric in the catalogue.
static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| CATALOGUE.iter().map(key).collect());

/// `spark.stage.shuffle_read` in bytes is `spark.stage.shuffle_read_bytes`.
fn key(metric: &Metric) -> Key {
    match metric.unit.word().filter(|word| !metric.otel.ends_with(word)) {
        Some(word) => Key::from(format!("{}_{word}", metric.otel)),
        None => Key::from_static_str(metric.otel),
    }
}

#[derive(Debug, Default)]
pub(super) struct Attributes(Vec<KeyValue>);

impl Attributes {
    pub(super) fn into_list(self) -> Vec<KeyValue> {
        self.0
    }

    pub(super) fn text(&mut self, key: &'static str, value: impl Into<StringValue>) {
        self.0.push(KeyValue::new(key, value.into()));
    }

    pub(super) fn flag(&mut self, key: &'static str, value: bool) {
        self.0.push(KeyValue::new(key, value));
    }

    pub(super) fn number(&mut self, key: &'static str, value: impl Into<u64>) {
        self.0.push(KeyValue::new(key, whole(value.into())));
    }

    pub(super) fn seconds(&mut self, key: &'static str, value: Duration) {
        self.0.push(KeyValue::new(key, value.as_secs_f64()));
    }

    /// Nothing for an empty list.
    pub(super) fn texts(&mut self, key: &'static str, values: Vec<StringValue>) {
        if !values.is_empty() {
            self.0.push(KeyValue::new(key, Value::Array(Array::String(values))));
        }
    }

    /// What is not known has no attribute.
    pub(super) fn count(&mut self, id: Id, value: Option<u64>) {
        if let Some(value) = value {
            self.0.push(KeyValue::new(KEYS[id as usize].clone(), whole(value)));
        }
    }

    pub(super) fn float(&mut self, id: Id, value: Option<f64>) {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            self.0.push(KeyValue::new(KEYS[id as usize].clone(), value));
        }
    }

    pub(super) fn span(&mut self, id: Id, value: Option<Duration>) {
        self.float(id, value.map(|value| value.as_secs_f64()));
    }

    /// Times as seconds, all else as whole numbers.
    pub(super) fn sum<T: Quantity + Measured>(&mut self, id: Id, of: &Distribution<T>) {
        self.measured(id, of.sum);
    }

    pub(super) fn measured<T: Measured>(&mut self, id: Id, value: Option<T>) {
        if let Some(value) = value {
            self.0.push(KeyValue::new(KEYS[id as usize].clone(), value.value()));
        }
    }

    pub(super) fn signed(&mut self, id: Id, value: i64) {
        self.0.push(KeyValue::new(KEYS[id as usize].clone(), value));
    }

    /// Of a metric with a label: `word`, of a closed list, is its value.
    pub(super) fn of_word(&mut self, id: Id, word: &str, value: impl Into<Value>) {
        let metric = id.metric();
        let unit = metric.unit.word().map(|unit| format!("_{unit}")).unwrap_or_default();
        self.0.push(KeyValue::new(format!("{}.{word}{unit}", metric.otel), value));
    }

    /// The same of a count, and nothing for 0.
    pub(super) fn some(&mut self, id: Id, word: &str, count: u64) {
        if count > 0 {
            self.of_word(id, word, whole(count));
        }
    }

    /// The same of a name that is not in the catalogue.
    pub(super) fn some_of(&mut self, key: &str, word: &str, count: u64) {
        if count > 0 {
            self.0.push(KeyValue::new(format!("{key}.{word}"), whole(count)));
        }
    }

    /// Where the time of the span went, without the parts that took none.
    pub(super) fn time(&mut self, split: &TimeSplit) {
        for part in TimePart::ALL {
            let took = split.part(part);
            if !took.is_zero() {
                let key = format!("spark.time.{}_seconds", part.as_str());
                self.0.push(KeyValue::new(key, took.as_secs_f64()));
            }
        }
        if let Some(by) = split.blocked_by {
            self.text("spark.time.blocked_by", by.as_str());
        }
        if split.estimated {
            self.flag("spark.time.estimated", true);
        }
    }
}

/// What a measure of tasks is told as.
pub(super) trait Measured {
    fn value(self) -> Value;
}

impl Measured for Duration {
    fn value(self) -> Value {
        Value::F64(self.as_secs_f64())
    }
}

impl Measured for u64 {
    fn value(self) -> Value {
        Value::I64(whole(self))
    }
}

pub(super) fn whole(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_their_unit_once() {
        for (id, expected) in [
            (Id::StageShuffleReadBytes, "spark.stage.shuffle_read_bytes"),
            (Id::StageRunTimeRatio, "spark.stage.task.run_time_ratio"),
            (Id::StageGcRatio, "spark.stage.gc_ratio"),
            (Id::StagePartitions, "spark.stage.partitions"),
            (Id::ApplicationBoughtCore, "spark.application.bought_core_seconds"),
        ] {
            assert_eq!(KEYS[id as usize].as_str(), expected);
        }
    }
}
