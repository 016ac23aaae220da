//! Label values: cleaned, bounded, and cheap to share between series.

use std::fmt;
use std::sync::Arc;

/// A label value. Numbers become text only when they are written.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Text {
    Static(&'static str),
    Shared(Arc<str>),
    Number(u64),
}

impl Text {
    pub const EMPTY: Self = Self::Static("");

    /// A text from outside, fit for a label: see [`clean`]. What is empty
    /// afterwards is the same as what was empty before: equal labels must
    /// compare equal, or a series could be there twice.
    pub fn clean(text: &str, limit: usize) -> Self {
        let cleaned = clean(text, limit);
        if cleaned.is_empty() { Self::EMPTY } else { Self::Shared(cleaned.into()) }
    }

    /// The same for a text that may be missing: then the label is empty.
    pub fn clean_or_empty(text: Option<&str>, limit: usize) -> Self {
        text.map_or(Self::EMPTY, |text| Self::clean(text, limit))
    }
}

impl From<&'static str> for Text {
    fn from(text: &'static str) -> Self {
        Self::Static(text)
    }
}

impl From<u32> for Text {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl From<u64> for Text {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Static(text) => f.write_str(text),
            Self::Shared(text) => f.write_str(text),
            Self::Number(number) => write!(f, "{number}"),
        }
    }
}

/// `text` without what would make a label unreadable or dangerous to show:
/// control characters and line separators become spaces, invisible characters
/// that reorder text are removed, ends are trimmed, and at most `limit`
/// characters stay. Escaping for a text format is the writer's business.
pub fn clean(text: &str, limit: usize) -> String {
    let cleaned: String = text
        .chars()
        .filter(|c| !reorders(*c))
        .map(|c| if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') { ' ' } else { c })
        .skip_while(|c| c.is_whitespace())
        .take(limit)
        .collect();
    let end = cleaned.trim_end().len();
    let mut cleaned = cleaned;
    cleaned.truncate(end);
    cleaned
}

/// Byte order mark and the bidirectional controls: invisible, and able to
/// make one name look like another.
fn reorders(c: char) -> bool {
    matches!(c, '\u{feff}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_label_keeps() {
        assert_eq!(clean("  a\nb\t\"c\" \\ \u{0}d\u{7f} ", 100), "a b \"c\" \\  d");
        assert_eq!(clean("naïve 🚀 job", 7), "naïve 🚀");
        assert_eq!(clean("\u{202e}evil", 100), "evil");
        assert_eq!(clean("\n\n", 100), "");
        assert_eq!(clean(&"x".repeat(10_240), 128).len(), 128);
    }

    proptest! {
        #[test]
        fn always_short_and_without_control_characters(text in any::<String>(), limit in 0_usize..64) {
            let cleaned = clean(&text, limit);
            prop_assert!(cleaned.chars().count() <= limit);
            prop_assert!(!cleaned.chars().any(char::is_control));
            prop_assert_eq!(cleaned.trim(), &cleaned);
            // Once is enough: labels of one run are the same everywhere.
            prop_assert_eq!(clean(&cleaned, limit), cleaned);
        }
    }
}
