//! How names of applications become names of jobs: `etl-2026-11-29` is a run
//! of `etl`. What later runs are compared with, and every total by name,
//! hangs on this, so a name must be the same for each run of a job and must
//! not swallow another job.
//!
//! ```yaml
//! names:
//!   rules:
//!     - pattern: 'nightly-(.+)-run\d+'
//!       replacement: 'nightly-$1'
//!   default_rules: true
//! ```
//!
//! Rules read like Prometheus' `relabel_configs`: the pattern must fit the
//! whole name, `$1`, `${1}` and `${name}` are its groups. The first that fits
//! has the last word; [`defaults`] see only names that no rule fits.

mod defaults;
mod expected;

use std::fmt;

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Deserializer, Serialize};

pub use expected::{ExpectedSuccess, Within};

/// The name of runs whose name says nothing: empty, or an id and no more.
pub const UNNAMED: &str = "_unnamed";
/// What is looked at of a name, in characters: longer ones are cut first.
pub const NAME_LENGTH: usize = 1_024;

/// A compiled pattern takes no more than this.
const PATTERN_BYTES: usize = 1 << 20;
/// Rules that can be given: each name is held against all of them.
const MOST_RULES: usize = 100;

/// Rules for `app_name`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Names {
    /// Tried in their order; the first that fits decides.
    pub rules: Vec<NameRule>,
    /// Whether dates, ids and numbers are taken out of names that no rule
    /// fits.
    pub default_rules: bool,
    /// How often names have to succeed; the first that fits decides.
    pub expected: Vec<ExpectedSuccess>,
}

impl Default for Names {
    fn default() -> Self {
        Self { rules: Vec::new(), default_rules: true, expected: Vec::new() }
    }
}

/// What names that fit a pattern become.
#[derive(Clone, Serialize)]
pub struct NameRule {
    /// A regular expression that the whole name must fit.
    pattern: String,
    /// The name instead, with `$1` or `${name}` for groups of the pattern.
    replacement: String,
    #[serde(skip)]
    regex: Regex,
}

/// What decided over a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decided {
    /// The operator's rule with this place in `names.rules`, counted from 0.
    Rule(usize),
    /// The default rules took something out.
    Defaults,
    /// It says nothing, so it is [`UNNAMED`].
    Empty,
    /// It stayed as it is.
    Nothing,
}

impl Names {
    /// The name of the job that an application of this name is a run of:
    /// never empty.
    pub fn rewrite(&self, app_name: &str) -> String {
        self.decide(app_name).0
    }

    /// The same, and what decided.
    pub fn decide(&self, app_name: &str) -> (String, Decided) {
        let name = cut(app_name);
        for (place, rule) in self.rules.iter().enumerate() {
            if let Some(rewritten) = rule.apply(name) {
                let rewritten = cut(&rewritten);
                let decided = Decided::Rule(place);
                return (if is_blank(rewritten) { UNNAMED } else { rewritten }.to_owned(), decided);
            }
        }
        if is_blank(name) {
            return (UNNAMED.to_owned(), Decided::Empty);
        }
        match self.default_rules.then(|| defaults::strip(name)).flatten() {
            Some(stripped) if is_blank(&stripped) => (UNNAMED.to_owned(), Decided::Defaults),
            Some(stripped) => (stripped, Decided::Defaults),
            None => (name.to_owned(), Decided::Nothing),
        }
    }

    /// What the operator expects of a name; `None` where nothing was said.
    pub fn expected_within(&self, cluster: &str, app_name: &str) -> Option<Within> {
        let entry = self.expected.iter().find(|entry| entry.fits(cluster, app_name))?;
        Some(entry.within)
    }

    /// Names, by cluster, that are expected to succeed even where no run of
    /// them was ever seen: those written out, whose cluster is said or the only
    /// one.
    pub fn expected_names(&self, clusters: &[&str]) -> Vec<(String, String)> {
        let only = if let [only] = clusters { Some(*only) } else { None };
        let named = self.expected.iter().filter(|entry| entry.within != Within::Never);
        named
            .filter_map(|entry| {
                let cluster = entry.spark_cluster.as_deref().or(only)?;
                Some((cluster.to_owned(), entry.app_name.plain()?.to_owned()))
            })
            .collect()
    }

    /// What types alone cannot refuse.
    pub fn validate(&self) -> Result<(), String> {
        if self.rules.len() > MOST_RULES {
            return Err(format!(
                "names.rules has {} rules: the most is {MOST_RULES}, since each name is held \
                 against all of them; join patterns with |",
                self.rules.len()
            ));
        }
        if self.expected.len() > expected::MOST_EXPECTED {
            return Err(format!(
                "names.expected has {} entries: the most is {}, since each name is held against \
                 all of them; join patterns with |",
                self.expected.len(),
                expected::MOST_EXPECTED
            ));
        }
        self.expected.iter().try_for_each(ExpectedSuccess::check)
    }
}

impl NameRule {
    /// Compiles the pattern.
    ///
    /// # Errors
    /// Says what is wrong with the pattern, or which group the replacement
    /// names that the pattern does not have: it would be empty in every name.
    pub fn new(pattern: &str, replacement: &str) -> Result<Self, String> {
        if pattern.is_empty() {
            return Err("pattern is empty: it would fit only applications without a name; write \
                        the expression that whole names must fit, for example 'etl-.*'"
                .to_owned());
        }
        let compile = |text: &str| {
            RegexBuilder::new(text).size_limit(PATTERN_BYTES).build().map_err(|error| {
                format!(
                    "pattern {pattern:?} is not a regular expression (the whole name must fit \
                     it): {error}"
                )
            })
        };
        // By itself first: `a)|(b` is none, though it is one in brackets.
        compile(pattern)?;
        let regex = compile(&format!("^(?s:{pattern})$"))?;
        if let Some(group) = unknown_group(&regex, replacement) {
            let digits: String = group.chars().take_while(char::is_ascii_digit).collect();
            let hint = if digits.is_empty() || digits == group {
                format!("it has {} groups", regex.captures_len() - 1)
            } else {
                format!("for group {digits} with text after it write ${{{digits}}}")
            };
            return Err(format!(
                "replacement {replacement:?}: pattern {pattern:?} has no group {group:?}; {hint}"
            ));
        }
        Ok(Self { pattern: pattern.to_owned(), replacement: replacement.to_owned(), regex })
    }

    /// As it was written.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// As it was written.
    pub fn replacement(&self) -> &str {
        &self.replacement
    }

    /// What the name becomes; `None` where it does not fit.
    fn apply(&self, name: &str) -> Option<String> {
        let captures = self.regex.captures(name)?;
        let mut rewritten = String::new();
        captures.expand(&self.replacement, &mut rewritten);
        Some(rewritten)
    }
}

/// The first group a replacement names that the pattern does not have.
fn unknown_group(regex: &Regex, replacement: &str) -> Option<String> {
    let mut rest = replacement;
    while let Some((_, after)) = rest.split_once('$') {
        if let Some(literal) = after.strip_prefix('$') {
            rest = literal;
            continue;
        }
        let braced = after.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        let (group, after) = braced.unwrap_or_else(|| {
            let end = after.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
            after.split_at(end.unwrap_or(after.len()))
        });
        let known = match group.parse::<usize>() {
            Ok(number) => number < regex.captures_len(),
            Err(_) => regex.capture_names().flatten().any(|name| name == group),
        };
        if !known && !group.is_empty() {
            return Some(group.to_owned());
        }
        rest = after;
    }
    None
}

impl<'de> Deserialize<'de> for NameRule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Written {
            pattern: String,
            replacement: String,
        }
        let written = Written::deserialize(deserializer)?;
        Self::new(&written.pattern, &written.replacement).map_err(serde::de::Error::custom)
    }
}

impl fmt::Debug for NameRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} -> {:?}", self.pattern, self.replacement)
    }
}

impl PartialEq for NameRule {
    fn eq(&self, other: &Self) -> bool {
        (&self.pattern, &self.replacement) == (&other.pattern, &other.replacement)
    }
}

/// At most [`NAME_LENGTH`] characters of it.
fn cut(name: &str) -> &str {
    name.char_indices().nth(NAME_LENGTH).map_or(name, |(end, _)| &name[..end])
}

fn is_blank(name: &str) -> bool {
    name.chars().all(|c| c.is_whitespace() || c.is_control())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn names(yaml: &str) -> Names {
        let config = Config::parse(yaml).expect("valid");
        config.check().expect("valid");
        config.names
    }

    #[test]
    fn the_first_rule_that_fits_the_whole_name_decides() {
        let names = names(
            "names:\n  rules:\n\
             \x20 - {pattern: 'nightly-(.+)-run\\d+', replacement: 'nightly-$1'}\n\
             \x20 - {pattern: '(?P<team>[a-z]+):.*', replacement: '${team}_jobs'}\n\
             \x20 - {pattern: 'keep-.*', replacement: '$0'}\n\
             \x20 - {pattern: 'a|bb', replacement: x}\n\
             \x20 - {pattern: 'secret.*', replacement: ''}\n",
        );
        for (name, expected, decided) in [
            ("nightly-orders-run12", "nightly-orders", Decided::Rule(0)),
            // Only a part fits: the default rules have it.
            ("my-nightly-orders-run12", "my-nightly-orders-run12", Decided::Nothing),
            ("sales:load\n2026-11-29", "sales_jobs", Decided::Rule(1)),
            // What a rule made is not touched by the defaults.
            ("keep-2026-11-29", "keep-2026-11-29", Decided::Rule(2)),
            ("bb", "x", Decided::Rule(3)),
            ("ab", "ab", Decided::Nothing),
            ("secret", UNNAMED, Decided::Rule(4)),
            ("etl-2026-11-29", "etl", Decided::Defaults),
            (" \n", UNNAMED, Decided::Empty),
        ] {
            assert_eq!(names.decide(name), (expected.to_owned(), decided), "{name}");
        }
    }

    #[test]
    fn the_default_rules_can_be_switched_off() {
        let names = names("names: {default_rules: false}");
        assert_eq!(names.decide("etl-2026-11-29"), ("etl-2026-11-29".to_owned(), Decided::Nothing));
        assert_eq!(names.rewrite(""), UNNAMED);
    }

    #[test]
    fn what_is_wrong_is_refused_with_its_place() {
        for (rule, parts) in [
            ("{pattern: 'a(', replacement: b}", ["regular expression", "a(", "4"]),
            ("{pattern: 'a)|(b', replacement: b}", ["regular expression", "a)|(b", "4"]),
            ("{pattern: '', replacement: b}", ["pattern is empty", "whole names", "4"]),
            ("{pattern: '(\\w{500}){500}', replacement: b}", ["size limit", "w{500}", "4"]),
            ("{pattern: '(a)', replacement: '$2'}", ["no group \"2\"", "it has 1 groups", "4"]),
            ("{pattern: '(a)', replacement: '$1_x'}", ["no group \"1_x\"", "write ${1}", "4"]),
            ("{pattern: '(a)', replacement: '${b}'}", ["no group \"b\"", "it has 1", "4"]),
            ("{pattern: a}", ["replacement", "missing", "4"]),
            ("{pattrn: a, replacement: b}", ["pattrn", "did you mean `pattern`?", "4"]),
        ] {
            let yaml =
                format!("names:\n  rules:\n  - {{pattern: x, replacement: y}}\n  - {rule}\n");
            let error = Config::parse(&yaml).expect_err(rule);
            for part in parts {
                assert!(error.contains(part), "{part} in {error}");
            }
        }
        for fine in ["$0-$1", "${1}", "$$1", "costs $$", "$", "${1}x", "a$-b"] {
            NameRule::new("(.*)", fine).expect(fine);
        }
        let many = NameRule::new("a", "b").expect("valid");
        let names = Names { rules: vec![many; MOST_RULES + 1], ..Names::default() };
        assert!(names.validate().expect_err("too many").contains("names.rules has 101"));
    }

    #[test]
    fn a_replacement_cannot_blow_a_name_up() {
        let rule = NameRule::new("(.*)", &"$1".repeat(1_000)).expect("valid");
        let names = Names { rules: vec![rule], ..Names::default() };
        assert_eq!(names.rewrite(&"é".repeat(50_000)), "é".repeat(NAME_LENGTH));
    }
}
