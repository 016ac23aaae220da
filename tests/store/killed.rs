//! A process of its own that writes until it is killed, or until there is no
//! more room.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};
use spark_exporter::store::Store;
use spark_exporter::store::embedded::Embedded;

use super::File;
use super::store_suite::{self, Place, at, keep, key, name, run, runs_of};

const PATH: &str = "SPARK_EXPORTER_TEST_STORE";
const FIRST: &str = "SPARK_EXPORTER_TEST_FIRST";

/// The process: records runs from a number on, and says each once it is
/// recorded; says what went wrong, and tries again.
#[test]
#[ignore = "run by the other tests, in a process of its own"]
fn child() {
    let path = std::env::var(PATH).unwrap();
    let first: u64 = std::env::var(FIRST).unwrap().parse().unwrap();
    let store = match Embedded::open(Path::new(&path), at(0)) {
        Ok(backend) => Store::new(Box::new(backend), keep()),
        Err(error) => {
            println!("refused {error}");
            return;
        }
    };
    for number in first..first + 100_000 {
        loop {
            let key = key(&format!("app-{number}"), 1);
            match store.record(&key, &run("etl", at(9)), at(0), at(9)) {
                Ok(_) => {}
                Err(error) => {
                    println!("failed {error}");
                    std::thread::sleep(Duration::from_millis(50));
                    continue;
                }
            }
            // More and more of one, not each time: it takes as long again.
            if number % 4 != 0 {
                break println!("recorded {number}");
            }
            let sent = store_suite::sent(&[number], &["spill"]);
            match store.add_delivered(&store_suite::key("all", 1), &sent, at(9)) {
                Ok(()) => break println!("recorded {number}"),
                Err(error) => println!("failed {error}"),
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// This test program as [`child`], by way of `before` (`setpriv …`).
fn start(
    before: &[&str],
    path: &Path,
    first: u64,
) -> (Child, impl Iterator<Item = String> + use<>) {
    let program = std::env::current_exe().unwrap();
    let program = program.to_str().unwrap();
    let arguments: Vec<&str> = before
        .iter()
        .copied()
        .chain([program, "--exact", "killed::child", "--ignored", "--nocapture"])
        .collect();
    let mut child = Command::new(arguments[0])
        .args(&arguments[1..])
        .env(PATH, path)
        .env(FIRST, first.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("{}: {error}", arguments[0]));
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    (child, lines)
}

/// Records from `first` on and is killed once `count` of them are
/// acknowledged. The number after the last that was.
pub(super) fn record_and_kill(path: &Path, first: u64, count: u64) -> u64 {
    let (mut child, lines) = start(&[], path, first);
    let mut next = first;
    let mut numbers = lines.filter_map(|line| {
        assert!(!line.starts_with("failed") && !line.starts_with("refused"), "{line}");
        line.strip_prefix("recorded ")?.parse::<u64>().ok()
    });
    while next < first + count {
        next = numbers.next().expect("the child goes on") + 1;
    }
    child.kill().unwrap();
    // What it said before the end reached it.
    let next = numbers.last().map_or(next, |last| last + 1);
    child.wait().unwrap();
    next
}

#[test]
fn killed_fifty_times_it_has_what_it_acknowledged_and_nothing_twice() {
    let place = File::new();
    let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut next = 0;
    for round in 0..50 {
        next = record_and_kill(&place.path, next, 1 + u64::from(random.next_u32() % 12));
        let store = place.store(keep());
        let runs = store.backend().size().unwrap().runs;
        // One may have been written and not said.
        assert!(runs == next || runs == next + 1, "round {round}: {runs} of {next}");
        let sent = store.delivered(&key("all", 1)).unwrap().unwrap_or_default().spans.jobs;
        let all = (0..next).step_by(4).all(|number| sent.contains(number));
        assert!(all, "round {round}: {sent:?} of {next}");
        assert!(sent.len() <= runs, "round {round}: {sent:?}");
        if round % 10 == 9 {
            for number in 0..next {
                let found = store.find(&key(&format!("app-{number}"), 1)).unwrap();
                assert!(found.is_some(), "round {round}: {number} of {next}");
            }
            store.backend().check().unwrap();
        }
        assert_eq!(runs_of(&store.totals().unwrap()[&name("etl")]), runs, "round {round}");
    }
}

#[test]
fn without_room_it_says_so_and_goes_on_once_there_is_some() {
    let place = File::new();
    // The file may not grow beyond 3 MiB: what a full disk does, another way.
    let limited = ["bash", "-c", "trap '' XFSZ; ulimit -S -f 3072; exec \"$@\"", "limited"];
    let (mut child, mut lines) = start(&limited, &place.path, 0);
    let mut recorded = BTreeSet::new();
    let mut failed = 0;
    let mut after = 0;
    while after < 5 {
        let line = lines.next().expect("the child goes on");
        if let Some(number) = line.strip_prefix("recorded ") {
            recorded.insert(number.parse::<u64>().unwrap());
            after += u64::from(failed > 0);
        } else if line.starts_with("failed") {
            assert!(line.contains("no space for it") || line.contains("opened anew"), "{line}");
            failed += 1;
            if failed == 3 {
                let pid = child.id().to_string();
                let raise = ["--pid", &pid, "--fsize=unlimited"];
                assert!(Command::new("prlimit").args(raise).status().unwrap().success());
            }
            assert!(failed < 100, "{line}");
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let store = place.store(keep());
    for number in recorded {
        assert!(store.find(&key(&format!("app-{number}"), 1)).unwrap().is_some(), "{number}");
    }
    let runs = store.backend().size().unwrap().runs;
    assert_eq!(runs_of(&store.totals().unwrap()[&name("etl")]), runs);
    store.backend().check().unwrap();
}

#[test]
fn a_file_or_folder_that_may_not_be_written_is_refused() {
    let place = File::new();
    drop(place.store(keep()));
    let folder = place.path.parent().unwrap();
    let restrict = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    // Root may write anywhere, but for this.
    let as_others = ["setpriv", "--bounding-set", "-dac_override"];
    let root =
        std::fs::metadata("/proc/self").map(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    let before = if root.unwrap() { &as_others[..] } else { &[] };
    let says = |path: &Path| {
        let (mut child, mut lines) = start(before, path, 0);
        let line = lines.find(|line| line.starts_with("re"));
        child.kill().unwrap();
        child.wait().unwrap();
        line.expect("an answer")
    };
    restrict(&place.path, 0o400);
    let line = says(&place.path);
    assert!(line.starts_with("refused") && line.contains("cannot be written"), "{line}");
    restrict(folder, 0o500);
    let line = says(&folder.join("another.db"));
    assert!(line.starts_with("refused") && line.contains("cannot be written"), "{line}");
    restrict(folder, 0o700);
}
