//! How often jobs have to succeed, where the operator says so.
//!
//! ```yaml
//! names:
//!   expected:
//!     - {app_name: nightly-orders, within: 26h}
//!     - {app_name: 'adhoc-.*', within: never}
//! ```
//!
//! Of other names it is learned from their runs, where these are regular.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::super::thresholds::NamePattern;
use super::super::units::Span;

/// Entries that can be given: each name is held against all of them.
pub(super) const MOST_EXPECTED: usize = 100;
/// Less than it takes to read a log and to be scraped would alert for ever.
const LEAST: Span = Span::seconds(60);

/// What is expected of names that fit a pattern.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedSuccess {
    /// Held against the name of the job (the `app_name` label); the whole name
    /// must fit it.
    pub app_name: NamePattern,
    /// In this cluster only. With a plain name instead of a pattern the name
    /// is then expected before it was ever seen; so it is where the
    /// configuration has one cluster only.
    #[serde(default)]
    pub spark_cluster: Option<String>,
    /// A run has to end well within so long after the last that did.
    pub within: Within,
}

impl ExpectedSuccess {
    pub(super) fn fits(&self, cluster: &str, app_name: &str) -> bool {
        self.spark_cluster.as_deref().is_none_or(|own| own == cluster)
            && self.app_name.fits(app_name)
    }

    pub(super) fn check(&self) -> Result<(), String> {
        match self.within {
            Within::Span(span) if span < LEAST => Err(format!(
                "names.expected for app_name {:?}: within is {span}: the least is {LEAST}, since \
                 logs are read and scraped in turns; write never where nothing is expected",
                self.app_name
            )),
            _ => Ok(()),
        }
    }
}

/// How long after a success the next one is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Within {
    /// Nothing is expected, whatever was learned.
    Never,
    Span(Span),
}

impl FromStr for Within {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.trim() == "never" {
            return Ok(Self::Never);
        }
        text.parse().map(Self::Span).map_err(|error| format!("{error}; or write never"))
    }
}

impl fmt::Display for Within {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str("never"),
            Self::Span(span) => span.fmt(f),
        }
    }
}

impl Serialize for Within {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Within {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    const YAML: &str = "names:\n  expected:\n\
        \x20 - {app_name: 'adhoc-.*', within: never}\n\
        \x20 - {app_name: orders, spark_cluster: east, within: 26h}\n\
        \x20 - {app_name: 'orders|bills', within: 2d}\n";

    #[test]
    fn the_first_that_fits_decides() {
        let config = Config::parse(YAML).expect("valid");
        config.check().expect("valid");
        let names = &config.names;
        let within = |cluster: &str, name: &str| {
            names.expected_within(cluster, name).map(|within| within.to_string())
        };
        assert_eq!(within("east", "adhoc-x").as_deref(), Some("never"));
        assert_eq!(within("east", "orders").as_deref(), Some("1day 2h"));
        assert_eq!(within("west", "orders").as_deref(), Some("2days"));
        assert_eq!(within("west", "bills").as_deref(), Some("2days"));
        assert_eq!(within("west", "orders-2"), None);
        let shown = serde_json::to_string(&names.expected).expect("written");
        assert_eq!(serde_json::from_str::<Vec<ExpectedSuccess>>(&shown).unwrap(), names.expected);
    }

    #[test]
    fn a_plain_name_in_a_known_cluster_is_expected_before_it_was_seen() {
        let names = Config::parse(YAML).expect("valid").names;
        let plain = |clusters: &[&str]| names.expected_names(clusters);
        assert_eq!(plain(&["east", "west"]), [("east".to_owned(), "orders".to_owned())]);
        let names =
            Config::parse("names: {expected: [{app_name: etl, within: 1d}]}").unwrap().names;
        assert_eq!(names.expected_names(&["only"]), [("only".to_owned(), "etl".to_owned())]);
        assert_eq!(names.expected_names(&["a", "b"]), []);
    }

    #[test]
    fn what_is_wrong_is_refused_with_its_place() {
        for (entry, parts) in [
            ("{app_name: 'a(', within: 1d}", ["a(", "regular expression", "3"]),
            ("{app_name: a, within: soon}", ["soon", "or write never", "3"]),
            ("{app_name: a}", ["within", "missing", "3"]),
            ("{app_name: a, every: 1d}", ["every", "unknown", "3"]),
        ] {
            let yaml = format!("names:\n  expected:\n  - {entry}\n");
            let error = Config::parse(&yaml).expect_err(entry);
            for part in parts {
                assert!(error.contains(part), "{part} in {error}");
            }
        }
        let config = Config::parse("names: {expected: [{app_name: a, within: 5s}]}").unwrap();
        assert!(config.check().expect_err("too short").contains("the least is 1m"));
        let entry = config.names.expected[0].clone();
        let names =
            super::super::Names { expected: vec![entry; MOST_EXPECTED + 1], ..Default::default() };
        assert!(names.validate().expect_err("too many").contains("names.expected has 101"));
    }
}
