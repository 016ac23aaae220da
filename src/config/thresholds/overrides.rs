//! Thresholds for applications of a name: what is said there stands instead of
//! the general ones, key by key.
//!
//! ```yaml
//! threshold_overrides:
//!   - app_name: 'nightly-.*'
//!     thresholds:
//!       data_skew: {run_time_ratio: 8}
//!       driver_gap: {enabled: false}
//! ```
//!
//! Which keys were written is not seen in a [`Thresholds`]: serde fills in
//! the defaults of the others. So each override is read twice: as
//! [`Thresholds`], which refuses what it does not know, with the line, and as
//! the plain values that were written, which are laid over the general ones.

use std::borrow::Cow;
use std::fmt;

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::Thresholds;

/// A compiled pattern takes no more than this.
const PATTERN_BYTES: usize = 1 << 20;

/// What holds for applications whose name fits a pattern.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThresholdOverride {
    pub app_name: NamePattern,
    /// With the defaults in place of what was not written: only to refuse
    /// what is unknown.
    thresholds: Box<Thresholds>,
    /// What was written.
    #[serde(skip)]
    written: Value,
}

/// A regular expression that the whole name must fit.
#[derive(Clone)]
pub struct NamePattern {
    text: String,
    regex: Regex,
}

impl NamePattern {
    pub fn fits(&self, name: &str) -> bool {
        self.regex.is_match(name)
    }

    /// The one name that it fits, where it is no more than a name.
    pub fn plain(&self) -> Option<&str> {
        let special = |c: char| r"\.+*?()|[]{}^$".contains(c);
        (!self.text.contains(special)).then_some(self.text.as_str())
    }
}

impl PartialEq for NamePattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl fmt::Debug for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

impl Serialize for NamePattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for NamePattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        // `a|b` is one of both names, not a name that begins or ends so.
        let regex = RegexBuilder::new(&format!("^(?:{text})$")).size_limit(PATTERN_BYTES).build();
        match regex {
            Ok(regex) => Ok(Self { text, regex }),
            Err(error) => Err(serde::de::Error::custom(format!(
                "app_name {text:?} is not a regular expression (the whole name must fit it): \
                 {error}"
            ))),
        }
    }
}

/// The overrides of a file as they were written, in their order.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::config) struct Written {
    threshold_overrides: Vec<WrittenOverride>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WrittenOverride {
    thresholds: Value,
}

impl Written {
    /// Tells each override what was written in it.
    pub(in crate::config) fn tell(self, overrides: &mut [ThresholdOverride]) {
        for (one, written) in overrides.iter_mut().zip(self.threshold_overrides) {
            one.written = written.thresholds;
        }
    }
}

/// The thresholds for an application: the general ones with those of each
/// override that its name fits laid over them, in their order, so that the
/// last one has the last word.
pub(in crate::config) fn for_name<'a>(
    general: &'a Thresholds,
    overrides: &[ThresholdOverride],
    name: &str,
) -> Cow<'a, Thresholds> {
    let mut fitting = overrides.iter().filter(|one| one.app_name.fits(name)).peekable();
    if fitting.peek().is_none() {
        return Cow::Borrowed(general);
    }
    // `check` has laid each of them over these thresholds.
    merged(general, fitting).map_or(Cow::Borrowed(general), Cow::Owned)
}

/// Refuses what cannot be laid over the general thresholds: a value that YAML
/// reads one way and a threshold another.
pub(in crate::config) fn check(
    general: &Thresholds,
    overrides: &[ThresholdOverride],
) -> Result<(), String> {
    for one in overrides {
        merged(general, std::iter::once(one)).map_err(|error| {
            format!("threshold_overrides for app_name {:?}: {error}", one.app_name)
        })?;
    }
    Ok(())
}

fn merged<'a>(
    general: &Thresholds,
    overrides: impl Iterator<Item = &'a ThresholdOverride>,
) -> Result<Thresholds, serde_json::Error> {
    let mut merged = serde_json::to_value(general)?;
    overrides.for_each(|one| lay_over(&mut merged, &one.written));
    serde_json::from_value(merged)
}

fn lay_over(below: &mut Value, above: &Value) {
    match (below, above) {
        // A size as a bare number of bytes.
        (below @ Value::String(_), Value::Number(number)) => {
            *below = Value::String(number.to_string());
        }
        (Value::Object(below), Value::Object(above)) => {
            for (key, value) in above {
                lay_over(below.entry(key).or_insert(Value::Null), value);
            }
        }
        (below, above) => *below = above.clone(),
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, Size, Span, Thresholds};

    const FILE: &str = "thresholds:\n\
        \x20 data_skew: {run_time_ratio: 6, records_ratio: 3}\n\
        threshold_overrides:\n\
        - app_name: 'nightly-.*'\n\
        \x20 thresholds:\n\
        \x20   data_skew: {run_time_ratio: 8}\n\
        \x20   gc_pressure: {enabled: false}\n\
        \x20   spill: {disk_bytes: 1073741824}\n\
        - app_name: nightly-report|adhoc\n\
        \x20 thresholds: {data_skew: {run_time_ratio: 9}, cost: {warning_at: 90s}}\n";

    #[test]
    fn key_by_key_and_the_last_has_the_last_word() {
        let config = Config::parse(FILE).expect("valid");
        config.check().expect("valid");
        let of = |name: &str| config.thresholds_for(name).into_owned();
        assert_eq!(of("hourly"), config.thresholds);
        // The whole name must fit.
        assert_eq!(of("my-nightly-load"), config.thresholds);
        assert_eq!(of("adhoc-2"), config.thresholds);

        let load = of("nightly-load");
        let mut expected = config.thresholds.clone();
        expected.data_skew.run_time_ratio = 8.0;
        expected.gc_pressure.enabled = false;
        expected.spill.disk_bytes = Size::gib(1);
        assert_eq!(load, expected);

        let report = of("nightly-report");
        expected.data_skew.run_time_ratio = 9.0;
        expected.cost.warning_at = Span::seconds(90);
        assert_eq!(report, expected);
        assert!(of("adhoc").gc_pressure.enabled);
    }

    /// Laying nothing over the defaults changes nothing: each value is
    /// written as it is read.
    #[test]
    fn thresholds_survive_being_written() {
        let file = "threshold_overrides:\n- app_name: x\n  thresholds: {data_skew: {}}\n";
        let config = Config::parse(file).expect("valid");
        assert_eq!(*config.thresholds_for("x"), Thresholds::default());
    }

    #[test]
    fn what_is_wrong_is_refused_with_its_line() {
        for (file, parts) in [
            (
                "threshold_overrides:\n- app_name: x\n  thresholds:\n    data_skew:\n      run_ratio: 3\n",
                ["run_ratio", "did you mean `run_time_ratio`?", "5"],
            ),
            (
                "threshold_overrides:\n- app_name: x\n  thresholds:\n    data_skw: {}\n",
                ["data_skw", "did you mean `data_skew`?", "4"],
            ),
            (
                "threshold_overrides:\n- app_name: 'a('\n  thresholds: {}\n",
                ["regular expression", "a(", "2"],
            ),
            ("threshold_overrides:\n- name: a\n  thresholds: {}\n", ["name", "app_name", "2"]),
            ("threshold_overrides:\n- app_name: a\n", ["thresholds", "missing", "2"]),
        ] {
            let error = Config::parse(file).expect_err(file);
            for part in parts {
                assert!(error.contains(part), "{part} in {error}");
            }
        }
    }
}
