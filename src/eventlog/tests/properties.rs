//! Whatever is done to a log, reading it ends, does not panic, and tells
//! nothing that the whole log does not tell.

use std::fs;

use proptest::prelude::*;

use super::{fixture, try_read};
use crate::model::Application;

fn plain_log() -> Vec<u8> {
    let bytes = fs::read(fixture("4.3.0/local-1796009084799.zstd")).expect("the log");
    let mut plain = Vec::new();
    let mut decoder = zstd::Decoder::new(bytes.as_slice()).expect("zstd");
    std::io::copy(&mut decoder, &mut plain).expect("decompresses");
    plain
}

/// A part of a log tells a part of the run: no job, stage, executor or task
/// that the whole does not have.
fn is_part_of(part: &Application, whole: &Application) {
    assert!(part.jobs.len() <= whole.jobs.len());
    assert!(part.executors.len() <= whole.executors.len());
    for stage in &part.stages {
        let of_whole = whole.stages.iter().find(|other| other.id == stage.id);
        let of_whole = of_whole.expect("no stage that the whole log has not");
        assert!(stage.tasks.succeeded <= of_whole.tasks.succeeded);
        assert!(stage.tasks.failed <= of_whole.tasks.failed);
        assert!(stage.measures.run_time.sum <= of_whole.measures.run_time.sum);
    }
    assert!(part.observed <= whole.observed);
    let ids = |application: &Application| -> Vec<u64> {
        application.sql.iter().flatten().map(|execution| execution.id).collect()
    };
    let of_whole = ids(whole);
    assert!(ids(part).iter().all(|id| of_whole.contains(id)));
}

/// A few lines with the start and the end of a task among them, so that
/// every byte can be tried.
fn short_log() -> Vec<u8> {
    let plain = plain_log();
    let lines = || plain.split_inclusive(|byte| *byte == b'\n');
    let is = |line: &&[u8], word: &str| String::from_utf8_lossy(line).contains(word);
    let small = lines().filter(|line| line.len() < 500).take(4);
    let ends = lines().filter(|line| is(line, "\"SparkListenerTaskEnd\"")).take(1);
    let jobs = lines().filter(|line| is(line, "\"SparkListenerJobEnd\"")).take(1);
    small.chain(ends).chain(jobs).flatten().copied().collect()
}

#[test]
fn cut_at_any_byte() {
    let plain = short_log();
    let whole = try_read(&plain).expect("a log").application;
    for end in 0..plain.len() {
        if let Ok(outcome) = try_read(&plain[..end]) {
            is_part_of(&outcome.application, &whole);
        }
    }
    let compressed = zstd::encode_all(plain.as_slice(), 3).expect("compresses");
    for end in 0..compressed.len() {
        if let Ok(outcome) = try_read(&compressed[..end]) {
            is_part_of(&outcome.application, &whole);
        }
    }
}

#[test]
fn a_whole_log_cut_anywhere_tells_a_part_of_it() {
    let plain = plain_log();
    let whole = try_read(&plain).expect("a log").application;
    for end in (0..plain.len()).step_by(9_973) {
        if let Ok(outcome) = try_read(&plain[..end]) {
            is_part_of(&outcome.application, &whole);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..2_000)) {
        let _ = try_read(&bytes);
        let mut framed = vec![0x28, 0xb5, 0x2f, 0xfd];
        framed.extend(bytes);
        let _ = try_read(&framed);
    }

    #[test]
    fn bytes_of_a_log_changed(changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..40)) {
        let mut bytes = short_log();
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        let _ = try_read(&bytes);
    }

    #[test]
    fn lines_in_any_order(order in Just((0_usize..40).collect::<Vec<_>>()).prop_shuffle()) {
        let plain = plain_log();
        let lines: Vec<&[u8]> = plain
            .split_inclusive(|byte| *byte == b'\n')
            .filter(|line| line.len() < 6_000)
            .collect();
        let shuffled: Vec<u8> =
            order.iter().filter_map(|at| lines.get(*at)).copied().flatten().copied().collect();
        let outcome = try_read(&shuffled);
        prop_assert!(outcome.is_ok());
    }
}
