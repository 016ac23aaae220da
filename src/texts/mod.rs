//! Texts that Spark writes for people -> model: plans as `EXPLAIN` shows them,
//! and the log of a driver. They tell less than an event log or the REST API,
//! and are all that some people have.
//!
//! Pure: a text or a reader in, the model out, every line and list bounded.

mod call_site;
pub mod driver_log;
pub mod explain;
mod explain_details;
mod explain_merge;
mod log_line;

pub use call_site::CallSite;
pub use explain_merge::{add_details, add_text};

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use proptest::prelude::*;

    /// Texts that real Spark wrote, each cut to what a test reads quickly.
    fn written(folder: &str) -> Vec<Vec<u8>> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(folder);
        let entries = |path: &Path| -> Vec<PathBuf> {
            let entries = fs::read_dir(path).expect("a folder of fixtures");
            entries.map(|entry| entry.expect("an entry").path()).collect()
        };
        let mut files: Vec<PathBuf> = entries(&root)
            .into_iter()
            .flat_map(|path| if path.is_dir() { entries(&path) } else { vec![path] })
            .collect();
        files.sort();
        let read = |path: PathBuf| {
            let mut bytes = fs::read(path).expect("a fixture");
            bytes.truncate(30_000);
            bytes
        };
        files.into_iter().map(read).collect()
    }

    /// Bytes changed, inserted or taken out, anywhere.
    fn damage(text: &mut Vec<u8>, changes: &[(usize, u8, u8)]) {
        for (at, what, byte) in changes {
            let at = at % text.len().max(1);
            match what % 4 {
                0 if !text.is_empty() => text[at] = *byte,
                1 => text.insert(at, *byte),
                2 => drop(text.drain(at..text.len().min(at + usize::from(*byte)))),
                _ => text.truncate(at.max(200)),
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn damaged_texts_are_read_as_far_as_they_go(
            pick in any::<prop::sample::Index>(),
            changes in proptest::collection::vec((any::<usize>(), any::<u8>(), any::<u8>()), 1..12),
        ) {
            let mut plans = written("explain");
            let plan = pick.get_mut(&mut plans);
            damage(plan, &changes);
            if let Ok(plan) = super::explain::read(plan.as_slice()) {
                // Whatever was read is a tree: each node before those below it.
                for (place, node) in plan.nodes.iter().enumerate() {
                    prop_assert!(node.parent.is_none_or(|parent| (parent as usize) < place));
                    prop_assert!(node.end as usize > place && node.end as usize <= plan.nodes.len());
                }
            }
            let mut logs = written("driver_logs");
            let log = pick.get_mut(&mut logs);
            damage(log, &changes);
            let read = super::driver_log::read("default", "driver.log", log.as_slice());
            prop_assert!(read.is_ok(), "bytes in memory can be read");
        }
    }
}
