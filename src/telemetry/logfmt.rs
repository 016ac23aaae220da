//! One log line as `key=value` pairs, the way Prometheus' servers write them:
//! `ts=2026-11-30T08:00:00.000Z level=info msg="source found" kind=driver`.

use std::fmt::{self, Write};

use jiff::Timestamp;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Longest value written; what is longer is cut, so that a server's error
/// page does not become a log line of a megabyte.
const MAX_VALUE: usize = 4_096;

pub(super) struct Logfmt;

impl<S, N> FormatEvent<S, N> for Logfmt
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = Line::default();
        event.record(&mut line);
        let level = match *event.metadata().level() {
            tracing::Level::ERROR => "error",
            tracing::Level::WARN => "warn",
            tracing::Level::INFO => "info",
            tracing::Level::DEBUG => "debug",
            tracing::Level::TRACE => "trace",
        };
        write!(writer, "ts={:.3} level={level} msg=", Timestamp::now())?;
        write_value(&mut writer, &line.message)?;
        writeln!(writer, "{}", line.fields)
    }
}

#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Line {
    fn push(&mut self, name: &str, value: &str) {
        if name == "message" {
            value.clone_into(&mut self.message);
            return;
        }
        self.fields.push(' ');
        self.fields.push_str(name);
        self.fields.push('=');
        // Writing into a String does not fail.
        let _ = write_value(&mut self.fields, value);
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.push(field.name(), &format!("{value:?}"));
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.push(field.name(), value);
    }
}

/// Bare where that is unambiguous, else in quotes with `"`, `\` and control
/// characters escaped: one event stays one line, whatever a server sends.
fn write_value(out: &mut impl Write, value: &str) -> fmt::Result {
    let end = value.floor_char_boundary(MAX_VALUE);
    let (value, cut) = (&value[..end], end < value.len());
    let bare = !cut
        && !value.is_empty()
        && value.chars().all(|c| !c.is_control() && !matches!(c, ' ' | '"' | '=' | '\\'));
    if bare {
        return out.write_str(value);
    }
    out.write_char('"')?;
    for c in value.chars() {
        match c {
            '"' => out.write_str("\\\"")?,
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            c if c.is_control() => write!(out, "\\u{:04x}", u32::from(c))?,
            c => out.write_char(c)?,
        }
    }
    if cut {
        out.write_str("...")?;
    }
    out.write_char('"')
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;

    fn written(value: &str) -> String {
        let mut out = String::new();
        write_value(&mut out, value).expect("a String takes it");
        out
    }

    #[test]
    fn values_are_quoted_where_needed() {
        assert_eq!(written("driver"), "driver");
        assert_eq!(written(""), "\"\"");
        assert_eq!(written("a b"), "\"a b\"");
        assert_eq!(written("say \"hi\"\\\n\u{1b}[31m"), "\"say \\\"hi\\\"\\\\\\n\\u001b[31m\"");
        assert!(written(&"ü".repeat(10_000)).ends_with("...\""));
        assert!(written(&"ü".repeat(10_000)).len() < MAX_VALUE + 10);
    }

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("not poisoned").extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_event_is_one_line_with_its_fields() {
        let buffer = Buffer::default();
        let writer = buffer.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .event_format(Logfmt)
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            let nothing: Option<&str> = None;
            tracing::warn!(kind = "driver", tasks = 3, nothing, error = "a\nb", "source down");
        });
        let bytes = buffer.0.lock().expect("not poisoned").clone();
        let line = String::from_utf8(bytes).expect("UTF-8");
        let (time, rest) = line.split_once(' ').expect("a time first");
        assert!(time.starts_with("ts=20") && time.ends_with('Z'), "{time}");
        assert_eq!(rest, "level=warn msg=\"source down\" kind=driver tasks=3 error=\"a\\nb\"\n");
    }
}
