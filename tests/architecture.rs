//! The folders of `src/` import only from those that stand above them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// In the order of `src/lib.rs`: each may use what stands before it.
const ORDER: [&str; 15] = [
    "config",
    "telemetry",
    "model",
    "fetch",
    "texts",
    "rest",
    "eventlog",
    "discover",
    "diagnose",
    "report",
    "store",
    "metrics",
    "watch",
    "expose",
    "cli",
];

/// Folders that do no I/O of their own beyond a reader or writer handed to
/// them, and nothing async.
const PURE: [&str; 5] = ["model", "texts", "diagnose", "metrics", "report"];

fn source_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(source_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The folders that one source text names after `crate::`, grouped imports
/// (`use crate::{config::…, model::…}`) included; comments do not count.
fn imports(text: &str) -> BTreeSet<String> {
    let code: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| [line, "\n"])
        .collect();
    let word = |text: &str| -> String {
        text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let mut found = BTreeSet::new();
    for (position, _) in code.match_indices("crate::") {
        let rest = &code[position + "crate::".len()..];
        let Some(group) = rest.strip_prefix('{') else {
            found.insert(word(rest));
            continue;
        };
        let mut depth = 1;
        let mut at_start = true;
        for (index, character) in group.char_indices() {
            match character {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 1 => at_start = true,
                c if depth == 1 && at_start && c.is_alphabetic() => {
                    found.insert(word(&group[index..]));
                    at_start = false;
                }
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
    }
    found
}

#[test]
fn folders_are_those_of_the_picture() {
    let folders: BTreeSet<String> = std::fs::read_dir(src())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(folders, ORDER.iter().map(ToString::to_string).collect());
    let picture = std::fs::read_to_string(src().join("lib.rs")).unwrap();
    let positions: Vec<_> = ORDER
        .iter()
        .map(|folder| {
            picture
                .find(&format!("//! {folder}/"))
                .unwrap_or_else(|| panic!("src/lib.rs does not show {folder}/"))
        })
        .collect();
    assert!(positions.is_sorted(), "src/lib.rs shows the folders in another order");
}

#[test]
fn imports_point_upwards_only() {
    let mut wrong = Vec::new();
    for (rank, folder) in ORDER.iter().enumerate() {
        for file in source_files(&src().join(folder)) {
            for import in imports(&std::fs::read_to_string(&file).unwrap()) {
                if let Some(target) = ORDER.iter().position(|name| *name == import)
                    && target > rank
                {
                    wrong.push(format!("{} imports crate::{import}", file.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn pure_folders_do_no_io() {
    let mut wrong = Vec::new();
    for folder in PURE {
        for file in source_files(&src().join(folder)) {
            let text = std::fs::read_to_string(&file).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            for word in ["std::fs", "std::net", "tokio", "reqwest", "async fn", "Timestamp::now"] {
                if code
                    .lines()
                    .any(|line| !line.trim_start().starts_with("//") && line.contains(word))
                {
                    wrong.push(format!("{} uses {word}", file.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_import_reader_sees_every_form() {
    let text = "use crate::model::Stage;\nuse crate::{config::Limits, fetch::{self, Body}};\n\
                // crate::cli is only a word here\nlet x = crate::watch::y();";
    let expected = ["config", "fetch", "model", "watch"];
    assert_eq!(imports(text).into_iter().collect::<Vec<_>>(), expected);
}
