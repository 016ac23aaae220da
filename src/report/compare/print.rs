//! A comparison for a person: as text for a terminal, and as Markdown.

use std::fmt::Write;
use std::time::Duration;

use super::facts::change;
use super::{Comparison, Kept, Setting, Side, Told, Volume};
use crate::diagnose::humane;
use crate::report::privacy::plain;

/// Settings that differ and are listed one by one.
const SETTINGS_SHOWN: usize = 40;

/// For a terminal; text of the applications is cleaned of control characters.
pub fn text(comparison: &Comparison) -> String {
    let mut out = String::new();
    for (name, side) in [("A", &comparison.a), ("B", &comparison.b)] {
        let _ = writeln!(out, "{name}  {}", plain(&described(side)));
    }
    out.push('\n');
    for sentence in &comparison.sentences {
        let _ = writeln!(out, "  {sentence}");
    }
    for table in tables(comparison) {
        let _ = writeln!(out, "\n  {}:", table.title);
        let width = table.rows.iter().map(|row| row[0].chars().count()).max().unwrap_or(0);
        for [what, a, b, change] in &table.rows {
            let line = format!("    {what:<width$}  {a:>12}  {b:>12}  {change}");
            let _ = writeln!(out, "{}", line.trim_end());
        }
    }
    for (title, lines) in lists(comparison) {
        let _ = writeln!(out, "\n  {title}:");
        for line in lines {
            let _ = writeln!(out, "    {}", plain(&line));
        }
    }
    out
}

/// As Markdown, for a ticket.
pub fn markdown(comparison: &Comparison) -> String {
    let mut out = String::from("# Comparison\n\n");
    for (name, side) in [("A", &comparison.a), ("B", &comparison.b)] {
        let _ = writeln!(out, "- **{name}**: {}", escaped(&described(side)));
    }
    out.push('\n');
    for (number, sentence) in comparison.sentences.iter().enumerate() {
        let mark = if number == 0 { "**" } else { "" };
        let _ = writeln!(out, "{mark}{}{mark}\n", escaped(sentence));
    }
    for table in tables(comparison) {
        let _ = writeln!(out, "## {}\n\n| | A | B | |\n|---|--:|--:|---|", table.title);
        for row in &table.rows {
            let _ = writeln!(out, "| {} |", row.each_ref().map(|cell| escaped(cell)).join(" | "));
        }
        out.push('\n');
    }
    for (title, lines) in lists(comparison) {
        let _ = writeln!(out, "## {title}\n");
        for line in lines {
            let _ = writeln!(out, "- {}", escaped(&line));
        }
        out.push('\n');
    }
    out
}

/// What Markdown would take for markup, and control characters.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in plain(text).chars() {
        if matches!(c, '|' | '*' | '_' | '`' | '<' | '>' | '[' | ']' | '#' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

fn described(side: &Side) -> String {
    let mut line = format!("{} ({}", side.app_name, side.app_id);
    if let Some(attempt) = &side.attempt_id {
        let _ = write!(line, " attempt {attempt}");
    }
    line.push(')');
    if let Some(sql) = side.sql_id {
        let _ = write!(line, ", SQL execution {sql}");
    }
    if let Some(version) = &side.spark_version {
        let _ = write!(line, ", Spark {version}");
    }
    let _ = write!(line, ", {}", side.state);
    if let Some(start) = &side.start {
        let _ = write!(line, ", started {start}");
    }
    line
}

struct Table {
    title: &'static str,
    rows: Vec<[String; 4]>,
}

fn tables(comparison: &Comparison) -> Vec<Table> {
    let head = |title: &'static str, rows: Vec<[String; 4]>| Table { title, rows };
    let (a, b) = (&comparison.a, &comparison.b);
    let mut whole = vec![row("duration", a.duration_seconds, b.duration_seconds, seconds)];
    let as_number = |count: u64| Some(count as f64);
    if a.sql_id.is_none() && b.sql_id.is_none() {
        whole.push(row(
            "core-seconds bought",
            a.bought_core_seconds,
            b.bought_core_seconds,
            seconds,
        ));
    }
    whole.push(row("most cores", a.peak_cores.map(f64::from), b.peak_cores.map(f64::from), count));
    whole.push(row("stages run", as_number(a.stages), as_number(b.stages), count));
    whole.push(row("tasks", as_number(a.tasks), as_number(b.tasks), count));
    let layers = comparison
        .layers
        .iter()
        .filter(|layer| layer.a_seconds.max(layer.b_seconds) >= 0.05)
        .map(|layer| row(layer.part, Some(layer.a_seconds), Some(layer.b_seconds), seconds))
        .collect();
    let data = comparison.data.iter().map(|volume| volume_row(*volume)).collect();
    [head("The whole", whole), head("Where the time went", layers), head("Data", data)]
        .into_iter()
        .filter(|table| !table.rows.is_empty())
        .collect()
}

fn volume_row(volume: Volume) -> [String; 4] {
    let value = |value: Option<u64>| value.map(|value| value as f64);
    let show = if volume.bytes { bytes } else { count };
    row(volume.what, value(volume.a), value(volume.b), show)
}

fn row(what: &str, a: Option<f64>, b: Option<f64>, show: fn(f64) -> String) -> [String; 4] {
    let change = match (a, b) {
        (Some(a), Some(b)) if a > 0.0 && (b - a).abs() >= a * 0.005 => change(b / a),
        _ => String::new(),
    };
    let shown = |value: Option<f64>| value.map_or_else(|| "?".to_owned(), show);
    [what.to_owned(), shown(a), shown(b), change]
}

fn seconds(value: f64) -> String {
    humane::duration(Duration::try_from_secs_f64(value).unwrap_or_default())
}

fn bytes(value: f64) -> String {
    humane::bytes(value as u64)
}

fn count(value: f64) -> String {
    humane::number(value as u64)
}

fn lists(comparison: &Comparison) -> Vec<(&'static str, Vec<String>)> {
    let told = |all: &[Told]| all.iter().map(finding).collect::<Vec<_>>();
    let mut settings: Vec<String> =
        comparison.settings.iter().take(SETTINGS_SHOWN).map(setting).collect();
    let more = comparison.settings.len().saturating_sub(SETTINGS_SHOWN);
    if more > 0 {
        settings.push(format!("and {more} more"));
    }
    [
        ("Found in B only", told(&comparison.gained)),
        ("Found in A only", told(&comparison.lost)),
        ("Found in both", comparison.kept.iter().map(kept).collect()),
        ("Settings that differ", settings),
    ]
    .into_iter()
    .filter(|(_, lines)| !lines.is_empty())
    .collect()
}

fn name(told: &Told) -> String {
    match told.cause {
        Some(cause) => format!("{} ({cause})", told.rule),
        None => told.rule.to_owned(),
    }
}

fn finding(told: &Told) -> String {
    let times = if told.count > 1 { format!(", {} times", told.count) } else { String::new() };
    format!("{} {}{times}: {}", told.severity, name(told), told.headline)
}

fn kept(kept: &Kept) -> String {
    let of = |told: &Told| {
        let saves = told
            .wall_seconds
            .map_or_else(String::new, |wall| format!(", {} could be saved", seconds(wall)));
        format!("{}{saves}", told.severity)
    };
    format!("{}: A {}; B {}", name(&kept.a), of(&kept.a), of(&kept.b))
}

fn setting(setting: &Setting) -> String {
    if !setting.shown {
        let how = match (setting.in_a, setting.in_b) {
            (true, false) => "set in A only",
            (false, true) => "set in B only",
            _ => "differs",
        };
        return format!("{}: {how}", setting.key);
    }
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "not set".to_owned());
    format!("{}: {} in A, {} in B", setting.key, value(&setting.a), value(&setting.b))
}
