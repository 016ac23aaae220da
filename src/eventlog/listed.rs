//! The log of a run that a server listed: which of a zip's logs it is, and
//! who the run is where its log does not tell.

use jiff::Timestamp;

use super::{LogFiles, ReadError, ReadOptions, ReadOutcome, group, read};
use crate::fetch::files::Files;
use crate::model::{DataQuality, State};
use crate::rest::applications::{ApplicationAttemptInfo, ApplicationInfo};

/// A run as a History Server lists it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Listed {
    pub app_id: String,
    pub attempt_id: Option<String>,
    pub name: Option<String>,
    pub user: Option<String>,
    pub start: Option<Timestamp>,
    /// Whether the server says that it has ended, ...
    pub completed: bool,
    /// ... and when.
    pub end: Option<Timestamp>,
}

/// Reads the log of the listed run from what its server sent. Blocks.
///
/// # Errors
/// As [`read()`]; `NoEvents` where there is no log at all.
pub fn read_listed(
    files: &dyn Files,
    listed: &Listed,
    options: &ReadOptions<'_>,
) -> Result<ReadOutcome, ReadError> {
    let logs = group(&files.list()?).logs;
    let Some(log) = listed.choose(&logs) else {
        return Err(ReadError::NoEvents { path: files.display("") });
    };
    let mut outcome = read(log, files, options)?;
    let application = &mut outcome.application;
    // A log without an ApplicationStart tells neither.
    if application.has(DataQuality::NoApplicationStart) {
        application.id.app_id.clone_from(&listed.app_id);
        application.id.attempt_id.clone_from(&listed.attempt_id);
        application.name = listed.name.clone().unwrap_or_else(|| listed.app_id.clone());
        application.user = application.user.take().or_else(|| listed.user.clone());
    }
    application.start = application.start.or(listed.start);
    // Names may be late: the server has seen the end.
    if listed.completed {
        application.end = application.end.or(listed.end);
        if application.state == State::Running {
            application.state = State::Unknown;
        }
    }
    Ok(outcome)
}

impl From<(&ApplicationInfo, &ApplicationAttemptInfo)> for Listed {
    fn from((application, attempt): (&ApplicationInfo, &ApplicationAttemptInfo)) -> Self {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Self {
            app_id: application.id.get().to_owned(),
            attempt_id: text(attempt.attempt_id.get()),
            name: text(application.name.get()),
            user: text(attempt.spark_user.get()),
            start: attempt.start(),
            completed: attempt.is_completed(),
            end: attempt.end(),
        }
    }
}

impl Listed {
    /// A server that was asked without an attempt sends those of all; the
    /// last one is the newest.
    fn choose<'l>(&self, logs: &'l [LogFiles]) -> Option<&'l LogFiles> {
        let name = self.log_name();
        logs.iter().find(|log| log.name == name).or_else(|| logs.last())
    }

    /// As Spark names logs: `EventLogFileWriter.nameForAppAndAttempt`.
    fn log_name(&self) -> String {
        let sanitized = |text: &str| -> String {
            text.chars()
                .map(|character| match character {
                    ' ' | ':' | '/' => '-',
                    '.' | '$' | '{' | '}' | '\'' | '"' => '_',
                    other => other.to_ascii_lowercase(),
                })
                .collect()
        };
        let id = sanitized(&self.app_id);
        match &self.attempt_id {
            Some(attempt) => format!("{id}_{}", sanitized(attempt)),
            None => id,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use proptest::prelude::*;
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;
    use crate::config::Limits;
    use crate::fetch::files::{LocalFiles, ZipFiles};
    use crate::model::Application;

    fn listed(app_id: &str, attempt_id: Option<&str>) -> Listed {
        Listed {
            app_id: app_id.to_owned(),
            attempt_id: attempt_id.map(str::to_owned),
            name: Some("listed".to_owned()),
            user: Some("someone".to_owned()),
            start: Some("2026-11-30T03:00:00Z".parse().expect("a time")),
            completed: true,
            end: Some("2026-11-30T03:09:00Z".parse().expect("a time")),
        }
    }

    fn zip(name: &str) -> ZipFiles {
        let path = format!("tests/fixtures/zip/{name}");
        ZipFiles::of_file(std::fs::File::open(&path).expect("opens"), path).expect("a zip")
    }

    fn application(files: &dyn Files, listed: &Listed) -> Result<Application, ReadError> {
        let limits = Limits::default();
        let options = ReadOptions { cluster: "c", limits: &limits };
        Ok(read_listed(files, listed, &options)?.application)
    }

    /// What the same log gives where it lies.
    fn from_directory(path: &str) -> Application {
        let files = LocalFiles::at(path.as_ref()).expect("there");
        application(&files, &listed("any", None)).expect("readable")
    }

    #[test]
    fn the_zip_of_a_real_server_gives_what_the_log_gives() {
        let folder = "tests/fixtures/eventlog/3.5.9/eventlog_v2_app-20261130032031-0000";
        let read = application(&zip("rolling-3.5.9.zip"), &listed("app-20261130032031-0000", None));
        assert_eq!(read.expect("readable"), from_directory(folder));
        let file = "tests/fixtures/eventlog/4.3.0/local-1796009084799.zstd";
        let read = application(&zip("single-4.3.0.zip"), &listed("local-1796009084799", None));
        assert_eq!(read.expect("readable"), from_directory(file));
    }

    #[test]
    fn of_several_attempts_the_listed_one_is_read() {
        let zip = zip("attempts-4.3.0.zip");
        for (attempt, expected) in [(Some("1"), "1"), (Some("2"), "2"), (None, "2")] {
            let read = application(&zip, &listed("local-1796009084799", attempt));
            let read = read.expect("readable");
            assert_eq!(read.id.attempt_id.as_deref(), Some(expected));
        }
    }

    #[test]
    fn names_are_as_spark_makes_them() {
        let run = listed("Spark.App:1/x", Some("A 1"));
        assert_eq!(run.log_name(), "spark_app-1-x_a-1");
    }

    /// The lines of the log, zipped as a server would: so many files, in this
    /// order.
    fn zipped(lines: &[&str], files: usize, order: &[usize]) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        let size = lines.len().div_ceil(files);
        let parts: Vec<&[&str]> = lines.chunks(size).collect();
        let mut order: Vec<usize> = order.iter().copied().filter(|at| *at < parts.len()).collect();
        order.extend((0..parts.len()).filter(|at| !order.contains(at)).collect::<Vec<_>>());
        for at in order {
            let name = format!("eventlog_v2_app-1/events_{}_app-1", at + 1);
            writer.start_file(name, SimpleFileOptions::default()).expect("into memory");
            writer.write_all((parts[at].join("\n") + "\n").as_bytes()).expect("into memory");
        }
        writer
            .start_file("eventlog_v2_app-1/appstatus_app-1", SimpleFileOptions::default())
            .expect("into memory");
        writer.finish().expect("into memory").into_inner()
    }

    fn plain() -> String {
        let file = std::fs::File::open("tests/fixtures/eventlog/4.3.0/local-1796009084799.zstd");
        let mut bytes = Vec::new();
        zstd::stream::copy_decode(file.expect("the log"), &mut bytes).expect("zstd");
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn a_log_that_does_not_say_who_it_is_is_the_listed_run() {
        let text = plain();
        let lines: Vec<&str> =
            text.lines().filter(|line| !line.contains("ListenerApplicationStart")).collect();
        let zip = ZipFiles::new(zipped(&lines, 1, &[]), "x", std::time::SystemTime::UNIX_EPOCH);
        let run = listed("app-7", Some("3"));
        let read = application(&zip.expect("a zip"), &run).expect("readable");
        assert_eq!(read.id.to_string(), "c/app-7/3");
        assert_eq!((read.name.as_str(), read.user.as_deref()), ("listed", Some("someone")));
        assert_eq!(read.start, run.start);
    }

    /// A running one would be held for ever.
    #[test]
    fn what_the_server_lists_as_ended_does_not_run() {
        let text = plain();
        let lines: Vec<&str> =
            text.lines().filter(|line| !line.contains("ListenerApplicationEnd")).collect();
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        writer.start_file("app-1.inprogress", SimpleFileOptions::default()).expect("into memory");
        writer.write_all((lines.join("\n") + "\n").as_bytes()).expect("into memory");
        let bytes = writer.finish().expect("into memory").into_inner();
        let zip = ZipFiles::new(bytes, "x", std::time::SystemTime::UNIX_EPOCH).expect("a zip");
        let ended = listed("app-1", None);
        let read = application(&zip, &ended).expect("readable");
        assert_eq!((read.state, read.end), (State::Unknown, ended.end));
        let going = Listed { completed: false, end: None, ..ended };
        let read = application(&zip, &going).expect("readable");
        assert_eq!((read.state, read.end), (State::Running, None));
    }

    #[test]
    fn a_zip_without_a_log_says_so() {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        writer.add_directory("empty/", SimpleFileOptions::default()).expect("into memory");
        let bytes = writer.finish().expect("into memory").into_inner();
        let zip = ZipFiles::new(bytes, "x", std::time::SystemTime::UNIX_EPOCH).expect("a zip");
        let error = application(&zip, &listed("app-1", None)).expect_err("no log");
        assert_eq!(error.reason(), "no_events");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn any_order_of_entries_gives_the_same_run(
            files in 1_usize..14,
            order in Just((0..14).collect::<Vec<usize>>()).prop_shuffle(),
        ) {
            let text = plain();
            let lines: Vec<&str> = text.lines().collect();
            let read = |files, order: &[usize]| {
                let zip = zipped(&lines, files, order);
                let zip = ZipFiles::new(zip, "x", std::time::SystemTime::UNIX_EPOCH);
                application(&zip.expect("a zip"), &listed("app-1", None)).expect("readable")
            };
            prop_assert_eq!(read(files, &order), read(1, &[]));
        }
    }
}
