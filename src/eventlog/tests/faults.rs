//! What is no log, or a broken one: a clear error, or what could be kept.

use std::fs;

use super::{fixture, logs_at, try_read, try_read_log, try_read_with};
use crate::config::{Limits, Size};
use crate::eventlog::{ReadError, UnsupportedCodec};
use crate::model::{DataQuality, State};

const START: &[u8] = br#"{"Event":"SparkListenerApplicationStart","App Name":"n","App ID":"app-1","Timestamp":1000,"User":"u"}
"#;
const END: &[u8] = br#"{"Event":"SparkListenerApplicationEnd","Timestamp":9999}
"#;

fn zstd_of(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).expect("compresses")
}

#[test]
fn nothing_and_almost_nothing() {
    for bytes in [&b""[..], b"\n\n", b"\0\0\0\0", br#"{"Event":"SparkListenerLogSta"#] {
        let error = try_read(bytes).expect_err("no event");
        assert_eq!(error.reason(), "no_events", "{bytes:?}");
    }
}

#[test]
fn other_files_are_named_for_what_they_are() {
    let html = b"<!DOCTYPE html>\n<html><head><title>Login</title></head></html>\n";
    let error = try_read(html).expect_err("no log");
    assert_eq!(error.reason(), "not_an_event_log");
    assert!(error.to_string().contains("<!DOCTYPE html>"), "{error}");
    let garbage: Vec<u8> =
        (0..10_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    assert_eq!(try_read(&garbage).expect_err("no log").reason(), "not_an_event_log");
    assert_eq!(try_read(b"{\"a\":1}\n").expect_err("no log").reason(), "not_an_event_log");

    let error = try_read(b"PK\x03\x04rest of a zip").expect_err("not a log");
    assert!(
        matches!(&error, ReadError::UnsupportedCodec { codec: UnsupportedCodec::Zip, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("unpack it"), "{error}");
    for bytes in [&b"\x1f\x8b\x08rest"[..], b"LZ4Block\x25rest", b"ZV\x07", b"\x82SNAPPY\0"] {
        let reason = try_read(bytes).expect_err("no log").reason();
        assert!(["damaged", "not_an_event_log"].contains(&reason), "{bytes:?}: {reason}");
    }
}

#[test]
fn cut_in_the_middle_of_a_line() {
    let bytes = [START, &END[..30]].concat();
    let outcome = try_read(&bytes).expect("what came before");
    assert_eq!(outcome.application.id.app_id, "app-1");
    assert_eq!(
        outcome.application.data_quality,
        [DataQuality::LogTruncated, DataQuality::LogIncomplete].into()
    );
    assert_eq!(outcome.statistics.bad_lines, 0);
    // A last line that lacks only its end is whole.
    let outcome = try_read(&[START, &END[..END.len() - 1]].concat()).expect("a log");
    assert_eq!(outcome.application.data_quality, [].into());
}

#[test]
fn cut_in_the_middle_of_a_zstd_frame() {
    let mut bytes = zstd_of(START);
    let second = zstd_of(&END.repeat(50));
    bytes.extend(&second[..second.len() / 2]);
    let outcome = try_read(&bytes).expect("the first frame");
    assert_eq!(outcome.application.id.app_id, "app-1");
    assert!(outcome.application.has(DataQuality::LogTruncated));
    let error = try_read(&bytes[..8]).expect_err("cut before the first event");
    assert_eq!(error.reason(), "damaged");
}

/// 32 KB of zstd that become a gibibyte: one frame of blocks that say "128 KiB
/// of the same byte".
fn gibibyte_of_zeros() -> Vec<u8> {
    let mut bomb = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, (17 - 10) << 3];
    for block in 0..8_192_u32 {
        let header = u32::from(block == 8_191) | 1 << 1 | (128 * 1024) << 3;
        bomb.extend(&header.to_le_bytes()[..3]);
        bomb.push(0);
    }
    bomb
}

#[test]
fn a_bomb_costs_no_more_than_its_limit() {
    let bomb = gibibyte_of_zeros();
    let limits = Limits {
        log_size: "2MiB".parse::<Size>().expect("a size"),
        line_size: "64KiB".parse::<Size>().expect("a size"),
        ..Limits::default()
    };
    let error = try_read_with(&bomb, &limits).expect_err("a bomb");
    assert_eq!(error.reason(), "too_large");
    // Events before it are kept.
    let mut bytes = zstd_of(START);
    bytes.extend(&bomb);
    let outcome = try_read_with(&bytes, &limits).expect("a log");
    assert!(outcome.application.has(DataQuality::LogTruncated));
    assert_eq!(outcome.statistics.bytes_decompressed, 2 << 20);
}

#[test]
fn a_frame_that_wants_too_much_memory_is_refused() {
    // A frame header with a window of 2 GiB.
    let bytes = [0x28, 0xb5, 0x2f, 0xfd, 0x00, (31 - 10) << 3, 0x01, 0x00, 0x00];
    assert_eq!(try_read(&bytes).expect_err("refused").reason(), "damaged");
}

#[test]
fn unreadable_files_are_errors_that_name_them() {
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join("app-1");
    fs::write(&path, START).expect("written");
    let log = logs_at(&path).remove(0);
    fs::remove_file(&path).expect("removed");
    let error = try_read_log(&log).expect_err("gone");
    assert_eq!(error.reason(), "unreadable");
    assert!(error.to_string().contains("app-1"), "{error}");
    fs::create_dir(&path).expect("a directory in its place");
    assert_eq!(try_read_log(&log).expect_err("a directory").reason(), "unreadable");
}

#[test]
fn a_log_renamed_after_the_scan_is_found() {
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join("app-1.inprogress");
    fs::write(&path, START).expect("written");
    let log = logs_at(directory.path()).remove(0);
    assert_eq!(try_read_log(&log).expect("a log").application.state, State::Running);
    fs::write(directory.path().join("app-1"), [START, END].concat()).expect("written");
    fs::remove_file(&path).expect("renamed");
    let outcome = try_read_log(&log).expect("found under its last name");
    assert!(outcome.application.end.is_some());
}

#[test]
fn two_attempts_of_one_application_are_two_logs() {
    let directory = tempfile::tempdir().expect("directory");
    // The second ten minutes later, the first without an end.
    for (attempt, start, end) in [("1", 1_000, None), ("2", 601_000, Some(611_000))] {
        let mut lines = String::from_utf8_lossy(START).replace(
            "\"Timestamp\":1000",
            &format!("\"App Attempt ID\":\"{attempt}\",\"Timestamp\":{start}"),
        );
        let added = start + 2_000;
        let mut event = |text: String| {
            lines.push_str(&text);
            lines.push('\n');
        };
        event(format!(
            r#"{{"Event":"SparkListenerExecutorAdded","Timestamp":{added},"Executor ID":"1"}}"#
        ));
        if let Some(end) = end {
            event(format!(r#"{{"Event":"SparkListenerApplicationEnd","Timestamp":{end}}}"#));
        }
        fs::write(directory.path().join(format!("app-1_{attempt}")), lines).expect("written");
    }
    let runs: Vec<_> = logs_at(directory.path())
        .iter()
        .map(|log| try_read_log(log).expect("a log").application)
        .collect();
    let lasted: Vec<_> = runs.iter().map(|run| run.duration().map(|span| span.as_secs())).collect();
    assert_eq!(lasted, [Some(2), Some(10)], "each its own time");
    let incomplete: Vec<_> = runs.iter().map(|run| run.has(DataQuality::LogIncomplete)).collect();
    assert_eq!(incomplete, [true, false]);
    assert!(runs.iter().all(|run| run.id.app_id == "app-1" && run.executors.len() == 1));
    let attempts: Vec<_> = runs.iter().map(|run| run.id.attempt_id.clone()).collect();
    assert_eq!(attempts, [Some("1".to_owned()), Some("2".to_owned())]);
}

#[test]
fn damage_in_the_middle_keeps_what_came_before() {
    let mut bytes = fs::read(fixture("4.3.0/local-1796009084799.zstd")).expect("the log");
    let middle = bytes.len() / 2;
    bytes[middle..middle + 64].fill(0xaa);
    let outcome = try_read(&bytes).expect("the first frames");
    assert!(outcome.application.has(DataQuality::LogTruncated));
    assert!(!outcome.application.stages.is_empty());
}
