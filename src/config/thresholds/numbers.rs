//! Thresholds as plain numbers, for whoever draws a line at one.

use serde_json::Value;

use super::super::units::{Size, Span};
use super::Thresholds;

impl Thresholds {
    /// Each threshold that is a number, as (rule, its key, value), in the
    /// rules' alphabetical order: spans in seconds, sizes in bytes. What all
    /// rules share is of the rule `cost`. A rule that is switched off has none.
    pub fn numbers(&self) -> Vec<(String, String, f64)> {
        let Ok(Value::Object(rules)) = serde_json::to_value(self) else { return Vec::new() };
        let mut numbers = Vec::new();
        for (rule, settings) in rules {
            let Value::Object(settings) = settings else { continue };
            if settings.get("enabled") == Some(&Value::Bool(false)) {
                continue;
            }
            for (key, value) in settings {
                if let Some(value) = number(&value) {
                    numbers.push((rule.clone(), key, value));
                }
            }
        }
        numbers
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text
            .parse::<Span>()
            .map(|span| span.get().as_secs_f64())
            .or_else(|_| text.parse::<Size>().map(|size| size.bytes() as f64))
            .ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(thresholds: &Thresholds, rule: &str, key: &str) -> Option<f64> {
        let numbers = thresholds.numbers();
        numbers.iter().find(|one| (one.0.as_str(), one.1.as_str()) == (rule, key)).map(|one| one.2)
    }

    #[test]
    fn thresholds_are_told_in_base_units() {
        let mut thresholds = Thresholds::default();
        assert_eq!(value(&thresholds, "data_skew", "run_time_ratio"), Some(4.0));
        assert_eq!(value(&thresholds, "spill", "critical_bytes"), Some(10.0 * f64::from(1 << 30)));
        assert_eq!(value(&thresholds, "stuck_stage", "at"), Some(900.0));
        assert_eq!(value(&thresholds, "cost", "warning_at"), Some(5.0));
        thresholds.data_skew.run_time_ratio = 6.0;
        thresholds.spill.enabled = false;
        assert_eq!(value(&thresholds, "data_skew", "run_time_ratio"), Some(6.0));
        assert_eq!(value(&thresholds, "spill", "critical_bytes"), None);
    }

    /// A threshold that is neither a number, a span nor a size would be left
    /// out in silence.
    #[test]
    fn every_threshold_but_switches_is_a_number() {
        let thresholds = Thresholds::default();
        let Ok(Value::Object(rules)) = serde_json::to_value(&thresholds) else { panic!("a map") };
        let mut expected = 0;
        for (rule, settings) in &rules {
            for (key, setting) in settings.as_object().expect("a map") {
                if !setting.is_boolean() {
                    assert!(number(setting).is_some(), "{rule}.{key}: {setting}");
                    expected += 1;
                }
            }
        }
        assert_eq!(thresholds.numbers().len(), expected);
    }
}
