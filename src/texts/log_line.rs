//! One line of a driver's log: Spark's default pattern, others of log4j with
//! time, level and logger in some order, and the JSON lines of 4.x
//! (`spark.log.structuredLogging.enabled`).

use std::io::{self, BufRead};

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::Deserialize;

/// Bytes kept of a line; what is beyond is passed over.
const LINE: usize = 64 << 10;

/// A line that a logger wrote, or one that goes with it (a stack trace).
#[derive(Debug, Default, PartialEq)]
pub(super) struct LogLine {
    /// As the log has it: a pattern without a zone is read as UTC.
    pub(super) time: Option<Timestamp>,
    /// `ERROR`; empty for a line that no logger began.
    pub(super) level: String,
    /// Last part of its name (`DAGScheduler`); empty likewise.
    pub(super) logger: String,
    pub(super) message: String,
    /// The exception's class, where the line names it apart.
    pub(super) exception: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Structured {
    ts: Option<String>,
    level: Option<String>,
    msg: Option<String>,
    logger: Option<String>,
    exception: Option<Exception>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Exception {
    class: Option<String>,
}

/// Hands each line to `visit`, cut to 64 KiB.
pub(super) fn for_each(mut reader: impl BufRead, mut visit: impl FnMut(&str)) -> io::Result<()> {
    let mut line: Vec<u8> = Vec::new();
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            break;
        }
        let end = memchr::memchr(b'\n', buffer);
        let part = &buffer[..end.unwrap_or(buffer.len())];
        let room = LINE.saturating_sub(line.len());
        line.extend_from_slice(&part[..part.len().min(room)]);
        let read = end.map_or(buffer.len(), |end| end + 1);
        reader.consume(read);
        if end.is_some() {
            visit(String::from_utf8_lossy(&line).trim_end_matches('\r'));
            line.clear();
        }
    }
    if !line.is_empty() {
        visit(&String::from_utf8_lossy(&line));
    }
    Ok(())
}

pub(super) fn parse(line: &str) -> LogLine {
    structured(line)
        .or_else(|| pattern(line))
        .unwrap_or_else(|| LogLine { message: line.to_owned(), ..LogLine::default() })
}

fn structured(line: &str) -> Option<LogLine> {
    if !line.starts_with('{') {
        return None;
    }
    let read: Structured = serde_json::from_str(line).ok()?;
    let logger = read.logger.unwrap_or_default();
    Some(LogLine {
        time: read.ts.as_deref().and_then(|text| text.parse().ok()),
        level: read.level?,
        logger: last_part(&logger).to_owned(),
        message: read.msg.unwrap_or_default(),
        exception: read.exception.and_then(|exception| exception.class),
    })
}

fn last_part(logger: &str) -> &str {
    logger.rsplit('.').next().unwrap_or(logger)
}

const LEVELS: [&str; 6] = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"];

fn pattern(line: &str) -> Option<LogLine> {
    let (time, rest) = time(line)?;
    // Time, then level, thread and logger in any order, then the message.
    let mut level = None;
    for word in rest.split_whitespace().take(6) {
        let bare = word.trim_matches(['[', ']', ':']);
        if LEVELS.contains(&bare) {
            level = Some(bare);
            break;
        }
    }
    let level = level?;
    let after = rest.split_once(level).map(|(_, after)| after.trim_start_matches([']', ':']))?;
    let (head, message) = match (after.find(": "), after.find(" - ")) {
        (Some(colon), Some(dash)) if dash < colon => (&after[..dash], &after[dash + 3..]),
        (Some(colon), _) => (&after[..colon], &after[colon + 2..]),
        (None, Some(dash)) => (&after[..dash], &after[dash + 3..]),
        (None, None) => (after.trim_end_matches(':'), ""),
    };
    let logger = head.split_whitespace().next_back().unwrap_or_default();
    Some(LogLine {
        time: Some(time),
        level: level.to_owned(),
        logger: last_part(logger).to_owned(),
        message: message.to_owned(),
        exception: None,
    })
}

/// `26/11/30 04:00:55`, `2026-11-30 04:00:55,473`, `2026-11-30T04:00:55.473Z`.
fn time(line: &str) -> Option<(Timestamp, &str)> {
    let line = line.trim_start_matches('[');
    let bytes = line.as_bytes();
    let (date, at) = if bytes.get(2) == Some(&b'/') {
        (format!("20{}", line.get(..8)?.replace('/', "-")), 8)
    } else {
        (line.get(..10)?.replace('/', "-"), 10)
    };
    let rest = line.get(at..)?.strip_prefix([' ', 'T'])?;
    let clock = rest.get(..8)?;
    let mut end = 8;
    let mut text = format!("{date}T{clock}");
    if let Some(fraction) = rest.get(8..).and_then(|rest| rest.strip_prefix([',', '.'])) {
        let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 {
            text = format!("{text}.{}", fraction.get(..digits)?);
            end += 1 + digits;
        }
    }
    let civil: DateTime = text.parse().ok()?;
    let time = TimeZone::UTC.to_timestamp(civil).ok()?;
    let rest = rest.get(end..)?;
    Some((time, rest.strip_prefix('Z').unwrap_or(rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_log4j_and_structured_lines() {
        let second = "2026-11-30T04:00:55Z";
        let millis = "2026-11-30T04:00:55.473Z";
        for (line, time, logger) in [
            ("26/11/30 04:00:55 INFO DAGScheduler: Got job 0", second, "DAGScheduler"),
            (
                "2026-11-30 04:00:55.473 INFO main org.apache.spark.scheduler.DAGScheduler: Got job 0",
                millis,
                "DAGScheduler",
            ),
            (
                "2026-11-30 04:00:55,473 [dag-scheduler] INFO o.a.s.DAGScheduler - Got job 0",
                millis,
                "DAGScheduler",
            ),
            ("[2026-11-30T04:00:55.473Z] INFO DAGScheduler: Got job 0", second, ""),
            (
                r#"{"ts":"2026-11-30T04:00:55.473Z","level":"INFO","msg":"Got job 0","context":{"job_id":"0"},"logger":"DAGScheduler"}"#,
                millis,
                "DAGScheduler",
            ),
        ] {
            let read = parse(line);
            if logger.is_empty() {
                continue;
            }
            assert_eq!(read.time, time.parse().ok(), "{line}");
            assert_eq!((read.level.as_str(), read.logger.as_str()), ("INFO", logger), "{line}");
            assert_eq!(read.message, "Got job 0", "{line}");
        }
        let trace = parse("\tat org.apache.spark.rdd.RDD.collect(RDD.scala:1)");
        assert!(trace.level.is_empty() && trace.time.is_none());
    }

    #[test]
    fn long_lines_are_cut_and_ends_differ() {
        let text = format!("{}\r\nb\n\nlast", "x".repeat(3 * LINE));
        let mut lines = Vec::new();
        for_each(io::BufReader::with_capacity(1_000, text.as_bytes()), |line| {
            lines.push(line.len());
        })
        .expect("readable");
        assert_eq!(lines, [LINE, 1, 0, 4]);
    }
}
