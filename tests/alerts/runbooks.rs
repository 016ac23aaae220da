//! Each alert has its runbook, and what these tell people to type is right.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use regex::Regex;

use crate::common::promql::problems;
use crate::common::real::root;
use crate::files::{listed, names};

const SECTIONS: [&str; 4] = ["What it means", "How to check", "What to do", "When to silence"];

fn runbooks() -> Vec<(String, String)> {
    let paths = listed(&root().join("docs/runbooks"), "md");
    let read = |path: &Path| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (name, std::fs::read_to_string(path).unwrap())
    };
    paths.iter().map(|path| read(path)).collect()
}

/// Blocks of code of a language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    text.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn there_is_one_for_each_alert_and_no_other() {
    let found: BTreeSet<String> = runbooks().into_iter().map(|(name, _)| name).collect();
    assert_eq!(found, names());
}

#[test]
fn each_says_the_four_things_in_order() {
    for (name, text) in runbooks() {
        assert!(text.starts_with(&format!("# {name}\n\n")), "{name}: its title");
        let found: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(found, SECTIONS, "{name}");
        for section in text.split("\n## ").skip(1) {
            let (title, body) = section.split_once('\n').unwrap();
            assert!(!body.trim().is_empty(), "{name}: {title} is empty");
        }
        assert!(!blocks(&text, "promql").is_empty(), "{name}: nothing to ask Prometheus");
    }
}

/// One query a line, continued by lines that are indented.
fn queries(block: &str) -> Vec<String> {
    let mut queries: Vec<String> = Vec::new();
    for line in block.lines().filter(|line| !line.starts_with('#')) {
        match queries.last_mut() {
            Some(last) if line.starts_with("  ") => *last = format!("{last} {}", line.trim()),
            _ => queries.push(line.to_owned()),
        }
    }
    queries
}

#[test]
fn queries_ask_for_what_there_is() {
    let found: Vec<String> = runbooks()
        .iter()
        .flat_map(|(name, text)| {
            blocks(text, "promql")
                .iter()
                .flat_map(|block| queries(block))
                .map(move |query| (name, problems(&query, &[]), query))
                .collect::<Vec<_>>()
        })
        .filter(|(_, problems, _)| !problems.is_empty())
        .map(|(name, problems, query)| format!("{name}: {query}: {problems:?}"))
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn commands_are_commands_of_the_program() {
    let mut seen = BTreeSet::new();
    for (name, text) in runbooks() {
        for line in blocks(&text, "sh").iter().flat_map(|block| block.lines()) {
            let Some(arguments) = line.strip_prefix("spark-exporter ") else { continue };
            let arguments = arguments.split(" #").next().unwrap();
            let words: Vec<&str> = arguments.split_whitespace().collect();
            let depth = if words[0] == "store" { 2 } else { 1 };
            let output = Command::new(env!("CARGO_BIN_EXE_spark-exporter"))
                .args(&words[..depth])
                .arg("--help")
                .output()
                .unwrap();
            assert!(output.status.success(), "{name}: no command {arguments}");
            let help = String::from_utf8_lossy(&output.stdout).into_owned();
            for flag in words.iter().filter(|word| word.starts_with("--")) {
                assert!(help.contains(&format!("{flag} ")), "{name}: {arguments}: no {flag}");
            }
            seen.insert(words[..depth].join(" "));
        }
    }
    assert!(seen.contains("diagnose") && seen.contains("compare"), "{seen:?}");
}

/// The pages that a text leads to, with their headings where it names one.
pub(crate) fn links_of(file: &Path) {
    let text = std::fs::read_to_string(file).unwrap();
    let link = Regex::new(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)").unwrap();
    for found in link.captures_iter(&text) {
        let target = &found[1];
        if target.contains("://") {
            continue;
        }
        let path = if target.is_empty() {
            file.to_path_buf()
        } else {
            file.parent().unwrap().join(target)
        };
        assert!(path.exists(), "{} leads to {target}, which is not there", file.display());
        let Some(anchor) = found.get(2) else { continue };
        let page = std::fs::read_to_string(&path).unwrap();
        let there = page.lines().filter(|line| line.starts_with('#')).any(|line| {
            let heading: String = line.trim_start_matches('#').trim().to_lowercase();
            let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            kept.map(|c| if c == ' ' { '-' } else { c }).eq(anchor.as_str().chars())
        });
        assert!(there, "{} leads to {target}#{}", file.display(), anchor.as_str());
    }
}

#[test]
fn links_lead_somewhere() {
    for path in listed(&root().join("docs/runbooks"), "md") {
        links_of(&path);
    }
}

#[test]
fn settings_that_they_name_exist() {
    let configuration = std::fs::read_to_string(root().join("docs/configuration.md")).unwrap();
    let diagnostics = std::fs::read_to_string(root().join("docs/diagnostics.md")).unwrap();
    let setting = Regex::new(r"`((?:limits|read|names|storage)\.[a-z_.]+)`").unwrap();
    let threshold = Regex::new(r"`(?P<rule>[a-z_]+)\.(?P<key>[a-z_]+)(?:: false)?`").unwrap();
    for (name, text) in runbooks() {
        for found in setting.captures_iter(&text) {
            let key = found[1].rsplit('.').next().unwrap();
            assert!(configuration.contains(key), "{name}: no setting {}", &found[1]);
        }
        for found in threshold.captures_iter(&text) {
            let rule = &found["rule"];
            let Some(section) = diagnostics.split(&format!("\n## {rule}\n")).nth(1) else {
                continue;
            };
            let section = section.split("\n## ").next().unwrap();
            let key = &found["key"];
            let known = key == "enabled" || section.contains(&format!("| `{key}` |"));
            assert!(known, "{name}: {rule} has no threshold {key}");
        }
    }
}
