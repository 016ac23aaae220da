//! Small pieces of HTML: escaped text, times, spans, numbers.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

use crate::metrics::label::clean;
use crate::report;

/// Characters of one text shown.
const MAX_TEXT: usize = 400;

/// Text from outside, safe between tags and in quoted attributes, and cut.
pub(super) struct Escaped<'a>(pub(super) &'a str);

/// The same, never cut: an address.
pub(super) struct Whole<'a>(pub(super) &'a str);

impl fmt::Display for Whole<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Percent-encoded: nothing is left in it but what may stand there.
        f.write_str(self.0)
    }
}

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        report::Escaped(&clean(self.0, MAX_TEXT)).fmt(f)?;
        if self.0.chars().nth(MAX_TEXT).is_some() {
            f.write_str("…")?;
        }
        Ok(())
    }
}

/// `2026-11-30 08:15:02 UTC`, machine-readable beside it.
pub(super) fn time(at: Timestamp) -> String {
    let at = Timestamp::from_second(at.as_second()).unwrap_or(at);
    format!("<time datetime=\"{at}\">{}</time>", at.strftime("%Y-%m-%d %H:%M:%S UTC"))
}

/// The same to the minute and without the zone, for a column that names it.
pub(super) fn minute(at: Timestamp) -> String {
    let at = Timestamp::from_second(at.as_second()).unwrap_or(at);
    format!("<time datetime=\"{at}\">{}</time>", at.strftime("%Y-%m-%d %H:%M"))
}

/// The two largest units: `450 ms`, `42.0 s`, `3 min 20 s`, `2 h 5 min`,
/// `3 d 4 h`.
pub(super) fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0 => format!("{} ms", span.as_millis()),
        1..60 => format!("{:.1} s", span.as_secs_f64()),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

/// `1 application`, `2 applications`.
pub(super) fn number(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans() {
        for (millis, text) in [
            (0, "0 ms"),
            (450, "450 ms"),
            (42_000, "42.0 s"),
            (200_000, "3 min 20 s"),
            (7_500_000, "2 h 5 min"),
            (273_600_000, "3 d 4 h"),
        ] {
            assert_eq!(span(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn long_texts_are_cut() {
        let long = "<".repeat(10_000);
        assert_eq!(Escaped(&long).to_string(), "&lt;".repeat(MAX_TEXT) + "…");
    }
}
