//! A plan metric as Spark's UI writes it for a person, back into a number.
//!
//! Counts are whole. Sizes and times are cut to three digits or so, each in
//! the unit that suits it: what is made of them is within half of their last
//! digit. Two shapes, of which the words before the line break differ from
//! release to release:
//!
//! ```text
//! 1.2 s
//! total (min, med, max (stageId: taskId))
//! 1.2 s (3 ms, 7 ms, 1.1 s (stage 3.0: task 12))
//! ```
//!
//! Of an average there is no total: `(min, med, max (...)):` stands before
//! `(1, 1.2, 4 (stage 3.0: task 12))`.

use crate::model::{LargestTask, MetricKind, MetricValue, StageId};

/// Kind and value. The value is `None` where the text shows a bare zero:
/// Spark writes that also of a metric that nobody told. `None` altogether
/// where it is another text: a data source writes its own metrics as it likes.
pub(super) fn parse(text: &str) -> Option<(MetricKind, Option<MetricValue>)> {
    let (header, numbers) = text.split_once('\n').unwrap_or(("", text));
    let numbers = numbers.trim();
    let (total, tasks) = match numbers.split_once('(') {
        Some((total, tasks)) => (total.trim(), Some(tasks)),
        None => (numbers, None),
    };
    if total.is_empty() && header.trim_start().starts_with('(') {
        let largest = largest(tasks?, |text| decimal(text).map(|value| value * 10.0))?;
        let value = MetricValue { largest: Some(largest), ..MetricValue::default() };
        return Some((MetricKind::Tenths, Some(value)));
    }
    let (kind, amount) = quantity(total)?;
    let same_kind = |text: &str| quantity(text).filter(|(other, _)| *other == kind);
    let largest = tasks.and_then(|tasks| largest(tasks, |text| Some(same_kind(text)?.1)));
    let told = amount > 0.0 || largest.is_some();
    let value = MetricValue { total: whole(amount), largest, ..MetricValue::default() };
    Some((kind, told.then_some(value)))
}

/// The last of three, and whose it was: `3 ms, 7 ms, 1.1 s (stage 3.0: task
/// 12))`. Of a metric that only the driver told there is none.
fn largest(text: &str, read: impl Fn(&str) -> Option<f64>) -> Option<LargestTask> {
    let (three, task) = text.split_once("(stage ")?;
    let (_, last) = three.trim_end().rsplit_once(", ")?;
    let (stage, task) = task.trim_end_matches(')').split_once(": task ")?;
    let (stage, attempt) = stage.split_once('.')?;
    Some(LargestTask {
        value: whole(read(last)?),
        stage: StageId { stage: stage.parse().ok()?, attempt: attempt.parse().ok()? },
        task_id: task.trim().parse().ok()?,
    })
}

/// A number with its unit, in the unit of its kind.
fn quantity(text: &str) -> Option<(MetricKind, f64)> {
    let text = text.trim();
    let unit = text.trim_start_matches(|c: char| !c.is_alphabetic());
    let number = text.strip_suffix(unit)?.trim_end();
    if unit.is_empty() {
        return Some((MetricKind::Count, count(number)?));
    }
    let bytes = |shift: u32| (MetricKind::Bytes, (1_u64 << shift) as f64);
    let (kind, factor) = match unit {
        "B" => bytes(0),
        "KiB" | "KB" => bytes(10),
        "MiB" | "MB" => bytes(20),
        "GiB" | "GB" => bytes(30),
        "TiB" | "TB" => bytes(40),
        "PiB" | "PB" => bytes(50),
        "EiB" | "EB" => bytes(60),
        "ms" => (MetricKind::Nanoseconds, 1e6),
        "s" => (MetricKind::Nanoseconds, 1e9),
        "m" => (MetricKind::Nanoseconds, 60e9),
        "h" => (MetricKind::Nanoseconds, 3_600e9),
        _ => return None,
    };
    Some((kind, decimal(number)? * factor))
}

/// A whole number, its digits grouped as some language does it.
fn count(text: &str) -> Option<f64> {
    let digits = ascii(text)?;
    let groups: Vec<&str> = digits.split([',', '.', ' ', '\'']).collect();
    let (first, rest) = groups.split_first()?;
    let all_digits = |group: &&str| !group.is_empty() && group.bytes().all(|b| b.is_ascii_digit());
    let (last, middle) =
        rest.split_last().map_or((None, rest), |(last, middle)| (Some(*last), middle));
    let grouped = last.is_none_or(|last| {
        // Two digits a group but for the last: as in India.
        last.len() == 3
            && first.len() <= 3
            && middle.iter().all(|group| matches!(group.len(), 2 | 3))
    });
    (grouped && groups.iter().all(all_digits)).then(|| groups.concat().parse().ok())?
}

/// A number with a fraction, by a point or a comma: the last of them, where
/// it does not group.
fn decimal(text: &str) -> Option<f64> {
    let digits = ascii(text)?;
    let (whole, fraction) = match digits.rfind(['.', ',']) {
        Some(at) if digits.len() - at - 1 != 3 => (&digits[..at], &digits[at + 1..]),
        _ => (digits.as_str(), ""),
    };
    let whole = count(whole)?;
    if fraction.is_empty() {
        return Some(whole);
    }
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(whole + format!("0.{fraction}").parse::<f64>().ok()?)
}

/// The same in ASCII: digits of other scripts, and the spaces and points that
/// languages group by.
fn ascii(text: &str) -> Option<String> {
    const ZEROS: [char; 4] = ['0', '\u{660}', '\u{6f0}', '\u{966}'];
    let digit = |c: char| {
        ZEROS.iter().find_map(|zero| {
            let value = (c as u32).checked_sub(*zero as u32).filter(|value| *value < 10)?;
            char::from_digit(value, 10)
        })
    };
    text.trim()
        .chars()
        .map(|c| match c {
            ',' | '.' | ' ' | '\'' => Some(c),
            '\u{a0}' | '\u{202f}' => Some(' '),
            '\u{2019}' => Some('\''),
            '\u{66b}' => Some('.'),
            '\u{66c}' => Some(','),
            other => digit(other),
        })
        .collect()
}

fn whole(value: f64) -> u64 {
    // A cast saturates.
    value.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(text: &str) -> Option<(MetricKind, u64)> {
        let (kind, value) = parse(text)?;
        Some((kind, value.map_or(0, |value| value.total)))
    }

    #[test]
    fn totals_in_every_unit() {
        use MetricKind::{Bytes, Count, Nanoseconds};
        for (text, expected) in [
            ("40,000", Some((Count, 40_000))),
            ("7", Some((Count, 7))),
            ("0", Some((Count, 0))),
            ("1229.5 KiB", Some((Bytes, 1_259_008))),
            ("2.0 B", Some((Bytes, 2))),
            ("19.0 EiB", Some((Bytes, u64::MAX))),
            ("631 ms", Some((Nanoseconds, 631_000_000))),
            ("13.8 s", Some((Nanoseconds, 13_800_000_000))),
            ("1.5 m", Some((Nanoseconds, 90_000_000_000))),
            ("2.25 h", Some((Nanoseconds, 8_100_000_000_000))),
            // What other languages write.
            ("1.234.567", Some((Count, 1_234_567))),
            ("1\u{202f}234\u{a0}567", Some((Count, 1_234_567))),
            ("1’234’567", Some((Count, 1_234_567))),
            ("12,34,567", Some((Count, 1_234_567))),
            ("١٬٢٣٤", Some((Count, 1_234))),
            ("1,5 s", Some((Nanoseconds, 1_500_000_000))),
            // What is no number of Spark's.
            ("1,2", None),
            ("12 parsecs", None),
            ("last commit: 3", None),
            ("", None),
            ("-1", None),
        ] {
            assert_eq!(total(text), expected, "{text}");
        }
    }

    #[test]
    fn the_largest_task_and_whose_it_is() {
        for header in [
            "total (min, med, max (stageId: taskId))",
            "total (min, med, max (stageId: taskId)):",
            "total (min, med, max (stageId (attemptId): taskId))",
        ] {
            let text = format!("{header}\n1.2 s (3 ms, 7 ms, 1.1 s (stage 3.1: task 12))");
            let (kind, value) = parse(&text).expect(header);
            let value = value.expect("told");
            assert_eq!((kind, value.total), (MetricKind::Nanoseconds, 1_200_000_000));
            let largest = value.largest.expect("a task");
            assert_eq!((largest.value, largest.task_id), (1_100_000_000, 12));
            assert_eq!(largest.stage, StageId { stage: 3, attempt: 1 });
        }
        let by_driver =
            "total (min, med, max (stageId: taskId))\n8.0 KiB (1.0 KiB, 2.0 KiB, 5.0 KiB (driver))";
        let (_, value) = parse(by_driver).expect("a size");
        assert_eq!(value.map(|value| (value.total, value.largest)), Some((8_192, None)));
    }

    #[test]
    fn an_average_has_no_total() {
        let text = "(min, med, max (stageId: taskId)):\n(1, 1.2, 4.5 (stage 5.0: task 41))";
        let (kind, value) = parse(text).expect("an average");
        let value = value.expect("told");
        assert_eq!((kind, value.total, value.tasks), (MetricKind::Tenths, 0, 0));
        assert_eq!(value.largest.map(|largest| largest.value), Some(45));
    }

    #[test]
    fn zero_is_what_nobody_told() {
        for text in ["0", "0.0 B", "0 ms"] {
            assert_eq!(parse(text).map(|(_, value)| value), Some(None), "{text}");
        }
        let told =
            "total (min, med, max (stageId: taskId))\n0 ms (0 ms, 0 ms, 0 ms (stage 8.0: task 3))";
        assert!(parse(told).is_some_and(|(_, value)| value.is_some()));
    }
}
