//! Recorded runs of real Spark, put before a daemon as runs that end now, or
//! that are still going on.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::common::real::root;
use crate::common::{log_text, log_text_of, moved, now_ms};

/// The events after which a streaming query or an application is over.
const ENDS: [&str; 2] = ["SparkListenerApplicationEnd", "QueryTerminatedEvent"];

/// The text of a log and what to change in it.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    text: String,
    /// As of now, in the same unit as Spark's: milliseconds.
    last: i64,
}

/// The latest moment that a log speaks of.
fn last_moment(text: &str) -> i64 {
    let moment = regex::Regex::new(r#"(?:Time|Timestamp|time)":(1[6-9]\d{11})\b"#).unwrap();
    moment.captures_iter(text).map(|found| found[1].parse().unwrap()).max().unwrap()
}

impl Run {
    /// A run of `examples/logs`, by name and version.
    pub(crate) fn recorded(name: &str) -> Self {
        Self::of(log_text(name))
    }

    /// A night of `examples/history/nightly_etl/4.3.0`, counted from 1.
    pub(crate) fn night(night: usize) -> Self {
        let folder = root().join("examples/history/nightly_etl/4.3.0");
        let mut nights: Vec<PathBuf> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        nights.sort();
        Self::of(log_text_of(&nights[night - 1]))
    }

    fn of(text: String) -> Self {
        let last = last_moment(&text);
        Self { text, last }
    }

    /// The same under another id and name.
    pub(crate) fn named(mut self, id: &str, name: &str) -> Self {
        let value = |key: &str| {
            let (_, rest) = self.text.split_once(&format!("\"{key}\":\"")).unwrap();
            rest.split_once('"').unwrap().0.to_owned()
        };
        let (old_id, old_name) = (value("App ID"), value("App Name"));
        self.text = self
            .text
            .replace(&old_id, id)
            .replace(&format!("\"App Name\":\"{old_name}\""), &format!("\"App Name\":\"{name}\""));
        self
    }

    /// Without its end, and without what came after the end of a query: as
    /// the log was while it ran.
    pub(crate) fn going_on(mut self) -> Self {
        let lines = self.text.lines().take_while(|line| !ENDS.iter().any(|end| line.contains(end)));
        self.text = lines.flat_map(|line| [line, "\n"]).collect();
        self.last = last_moment(&self.text);
        self
    }

    /// Ended with this code instead of 0.
    pub(crate) fn with_exit_code(mut self, code: u8) -> Self {
        assert!(self.text.contains("\"ExitCode\":0"), "Spark tells it since 4.0");
        self.text = self.text.replace("\"ExitCode\":0", &format!("\"ExitCode\":{code}"));
        self
    }

    /// Writes it as of a run whose last moment was so long ago.
    pub(crate) fn write(&self, directory: &Path, file: &str, ago: Duration) {
        let ago = i64::try_from(ago.as_millis()).unwrap();
        let text = moved(&self.text, now_ms() - ago - self.last);
        // Renamed into place, so that nobody reads half of it.
        let new = directory.with_extension("new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, directory.join(file)).unwrap();
    }

    /// As left behind by a driver that was killed: in progress, and nobody has
    /// written it since.
    pub(crate) fn leave(&self, directory: &Path, file: &str, ago: Duration) {
        self.write(directory, file, ago);
        let log = std::fs::File::options().append(true).open(directory.join(file)).unwrap();
        log.set_modified(SystemTime::now() - ago).unwrap();
    }
}
