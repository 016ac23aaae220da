//! One run as Spark's own writers wrote it in every codec and layout: all of
//! them tell the same. And bombs, which cost themselves.

use std::fs;

use super::{fixture, logs_at, try_read, try_read_log, try_read_with};
use crate::config::{Limits, Size};
use crate::model::{Application, DataQuality};

fn recorded(name: &str) -> Application {
    let log = logs_at(&fixture("codecs").join(name)).remove(0);
    try_read_log(&log).expect("a log").application
}

#[test]
fn every_codec_and_layout_tells_the_same() {
    let expected = recorded("none-single");
    assert_eq!((expected.jobs.len(), expected.data_quality.len()), (2, 0));
    for codec in ["zstd", "lz4", "snappy", "lzf"] {
        for layout in ["single", "rolling"] {
            assert_eq!(recorded(&format!("{codec}-{layout}")), expected, "{codec} {layout}");
        }
    }
}

/// What is left of a log cut anywhere tells what its lines tell: those of all
/// blocks that are whole.
#[test]
fn a_log_cut_anywhere_keeps_what_came_before() {
    let logs = super::follow::recorded();
    let plain = &logs[0].1;
    for (codec, bytes) in &logs {
        let (mut told, mut most) = (0, 0);
        for cut in (10..bytes.len()).step_by(bytes.len() / 50) {
            match try_read(&bytes[..cut]) {
                Ok(outcome) => {
                    let size = outcome.statistics.bytes_decompressed as usize;
                    assert!(size >= most, "{codec} at {cut}");
                    most = size;
                    let mut expected = try_read(&plain[..size]).expect("a log").application;
                    // Whether a block is cut is told only by the codec.
                    expected.data_quality.clone_from(&outcome.application.data_quality);
                    assert_eq!(outcome.application, expected, "{codec} at {cut}");
                    told += 1;
                }
                Err(error) => {
                    assert!(["damaged", "no_events"].contains(&error.reason()), "{codec}: {error}");
                }
            }
        }
        assert!(told >= 10, "{codec}: {told} parts tell something");
        // All but the block that was cut: of lz4 and lzf up to 64 KiB.
        assert!(most + 70_000 > plain.len(), "{codec}: {most} of {}", plain.len());
    }
}

#[test]
fn compaction_keeps_the_name_and_changes_the_codec() {
    let [zstd, lz4] = ["zstd-compacted", "lz4-compacted-as-zstd"].map(recorded);
    assert!(zstd.has(DataQuality::LogCompacted));
    assert_eq!(zstd, lz4);
}

#[test]
fn what_a_killed_driver_left_is_no_damage() {
    for name in ["lz4-single-inprogress", "lzf-rolling-inprogress"] {
        let application = recorded(name);
        assert_eq!(application.data_quality, [DataQuality::LogIncomplete].into(), "{name}");
        assert!(!application.stages.is_empty());
    }
}

#[test]
fn rotated_and_packed_files_put_together() {
    let folder = fixture("codecs/gzip-rotated")
        .join("1130-034200-abcdefgh/eventlog/1130-034200-abcdefgh_10_0_0_1/7203465930312844120");
    let mut bytes = Vec::new();
    for name in ["eventlog-2026-11-30--03-40.gz", "eventlog-2026-11-30--03-50.gz"] {
        bytes.extend(fs::read(folder.join(name)).expect("reads"));
    }
    let application = try_read(&bytes).expect("a log").application;
    assert_eq!(application.data_quality, [DataQuality::LogIncomplete].into());
    assert_eq!(application.id, recorded("none-single").id);
}

/// zstd that says "the same byte, 128 KiB of it" again and again.
fn zeros(mebibytes: u32) -> Vec<u8> {
    let mut bomb = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, (17 - 10) << 3];
    for block in 0..mebibytes * 8 {
        let header = u32::from(block + 1 == mebibytes * 8) | 1 << 1 | (128 * 1024) << 3;
        bomb.extend(&header.to_le_bytes()[..3]);
        bomb.push(0);
    }
    bomb
}

#[test]
fn beyond_the_compression_ratio_a_log_is_not_read() {
    let limits =
        Limits { line_size: "64KiB".parse::<Size>().expect("a size"), ..Limits::default() };
    let start =
        br#"{"Event":"SparkListenerApplicationStart","App Name":"n","App ID":"app-1","Timestamp":1}
"#;
    let log = |mebibytes| {
        let mut bytes = zstd::encode_all(start.as_slice(), 1).expect("compresses");
        bytes.extend(zeros(mebibytes));
        bytes
    };
    // Up to 64 MiB it may be as dense as it likes.
    let outcome = try_read_with(&log(63), &limits).expect("a log");
    assert!(!outcome.application.has(DataQuality::CompressionRatio));
    let outcome = try_read_with(&log(2_000), &limits).expect("a log");
    assert!(outcome.application.has(DataQuality::CompressionRatio));
    assert_eq!(outcome.application.id.app_id, "app-1");
    assert!(outcome.statistics.bytes_decompressed < 65 << 20);
    let error = try_read_with(&zeros(2_000), &limits).expect_err("nothing but a bomb");
    assert_eq!(error.reason(), "compression_ratio");
    assert!(error.to_string().contains("limits.compression_ratio"), "{error}");
    let limits = Limits { compression_ratio: 100_000, ..limits };
    let outcome = try_read_with(&log(100), &limits).expect("a log");
    assert_eq!(outcome.statistics.bytes_decompressed, (100 << 20) + start.len() as u64);
}
