//! The outline as Markdown: for an issue, a wiki, a pull request. Plots become
//! tables and lines of characters.

use std::fmt::Write;

use super::outline::words;
use super::outline::{
    Block, FindingView, Item, Outline, PlanRow, PlanView, Split, Spread, Table, Timeline,
};
use super::{Diagnosed, Texts};
use crate::diagnose::humane;

/// One run. Ends with a line break.
pub fn markdown(run: &Diagnosed, texts: Texts) -> String {
    let outline = Outline::new(run, texts);
    let mut out = String::new();
    let _ = write(&mut out, &outline);
    out
}

fn write(out: &mut String, outline: &Outline) -> std::fmt::Result {
    let heading = &outline.heading;
    writeln!(out, "# {}\n", escaped(&heading.name))?;
    write!(out, "{}", code(&heading.app_id))?;
    if let Some(attempt) = &heading.attempt_id {
        write!(out, " attempt {}", escaped(attempt))?;
    }
    let facts: Vec<String> = heading.facts.iter().map(|fact| escaped(fact)).collect();
    writeln!(out, ", {}", facts.join(", "))?;
    for section in &outline.sections {
        writeln!(out, "\n## {}", section.title)?;
        for block in &section.blocks {
            out.push('\n');
            write_block(out, block)?;
        }
    }
    Ok(())
}

fn write_block(out: &mut String, block: &Block) -> std::fmt::Result {
    match block {
        Block::Lead(text) => writeln!(out, "**{}**", escaped(text)),
        Block::Text(text) => writeln!(out, "{}", escaped(text)),
        Block::Note(text) => writeln!(out, "> {}", escaped(text)),
        Block::Facts(facts) => facts
            .iter()
            .try_for_each(|(name, value)| writeln!(out, "- **{name}**: {}", escaped(value))),
        Block::List { ordered, items } => list(out, *ordered, items),
        Block::Table(one) => table(out, one),
        Block::Finding(one) => finding(out, one),
        Block::Split(one) => split(out, one),
        Block::Timeline(one) => timeline(out, one),
        Block::Spread(one) => spread(out, one),
        Block::Plan(one) => plan(out, one),
    }
}

fn list(out: &mut String, ordered: bool, items: &[Item]) -> std::fmt::Result {
    for (number, item) in items.iter().enumerate() {
        let mark = if ordered { format!("{}.", number + 1) } else { "-".to_owned() };
        write!(out, "{mark} {}", escaped(&item.text))?;
        match &item.aside {
            Some(aside) => writeln!(out, " *({})*", escaped(aside))?,
            None => out.push('\n'),
        }
    }
    Ok(())
}

fn table(out: &mut String, table: &Table) -> std::fmt::Result {
    if !table.caption.is_empty() {
        writeln!(out, "{}\n", escaped(&table.caption))?;
    }
    let titles: Vec<&str> = table.columns.iter().map(|column| column.title).collect();
    let marks: Vec<&str> =
        table.columns.iter().map(|column| if column.is_number { "---:" } else { "---" }).collect();
    writeln!(out, "| {} |\n|{}|", titles.join(" | "), marks.join("|"))?;
    for row in &table.rows {
        let cells: Vec<String> = row.cells.iter().map(|cell| escaped(cell)).collect();
        writeln!(out, "| {} |", cells.join(" | "))?;
    }
    Ok(())
}

fn finding(out: &mut String, finding: &FindingView) -> std::fmt::Result {
    let severity = finding.severity.as_str().to_uppercase();
    writeln!(out, "### {severity}: {}\n", escaped(&finding.headline))?;
    let cause = finding.cause.map_or(String::new(), |cause| format!(", cause `{cause}`"));
    writeln!(
        out,
        "`{}`{cause}; {}; confidence {}",
        finding.rule,
        escaped(&finding.costs),
        finding.confidence.as_str()
    )?;
    if !finding.evidence.is_empty() {
        out.push_str("\n| evidence | value | threshold | read from |\n|---|---:|---:|---|\n");
        for evidence in &finding.evidence {
            writeln!(
                out,
                "| {} | {} | {} | {} |",
                escaped(&evidence.name),
                escaped(&evidence.value),
                escaped(evidence.threshold.as_deref().unwrap_or_default()),
                escaped(&evidence.from)
            )?;
        }
    }
    if !finding.advice.is_empty() {
        out.push('\n');
        list(out, true, &finding.advice)?;
    }
    Ok(())
}

fn split(out: &mut String, split: &Split) -> std::fmt::Result {
    writeln!(out, "{}\n", escaped(&split.caption))?;
    out.push_str("| part | time | share |\n|---|---:|---:|\n");
    for (part, span) in &split.parts {
        let (time, share) = (humane::duration(*span), humane::percent(split.share(*span)));
        writeln!(out, "| {} | {time} | {share} |", words::part(*part))?;
    }
    match &split.note {
        Some(note) => writeln!(out, "\n{}", escaped(note)),
        None => Ok(()),
    }
}

fn timeline(out: &mut String, timeline: &Timeline) -> std::fmt::Result {
    out.push_str("| what | from | to |\n|---|---:|---:|\n");
    let length = timeline.to.duration_since(timeline.from);
    let length = std::time::Duration::try_from(length).unwrap_or_default();
    let at = |share: f64| humane::duration(length.mul_f64(share.clamp(0.0, 1.0)));
    for lane in &timeline.lanes {
        for bar in &lane.bars {
            writeln!(out, "| {} | {} | {} |", escaped(&bar.label), at(bar.from), at(bar.to))?;
        }
        if lane.omitted > 0 {
            writeln!(out, "| {} shorter {} | | |", lane.omitted, lane.title.to_lowercase())?;
        }
    }
    Ok(())
}

fn spread(out: &mut String, spread: &Spread) -> std::fmt::Result {
    let time = words::time;
    writeln!(
        out,
        "Stage {}, {}: median {}, p95 {}, slowest {}: {}.",
        spread.stage,
        humane::count(spread.tasks, "task", "tasks"),
        time(spread.median),
        time(spread.p95),
        time(spread.max),
        escaped(&spread.verdict)
    )
}

fn plan(out: &mut String, plan: &PlanView) -> std::fmt::Result {
    writeln!(out, "{}\n", escaped(&plan.title))?;
    out.push_str("| operator | stages | rows | bytes | time | slowest task | more |\n");
    out.push_str("|---|---|---:|---:|---:|---:|---|\n");
    for row in &plan.rows {
        operator(out, row)?;
    }
    if plan.omitted > 0 {
        writeln!(out, "| and {} more operators | | | | | | |", plan.omitted)?;
    }
    writeln!(out, "\n{}", escaped(&plan.adaptive))
}

fn operator(out: &mut String, row: &PlanRow) -> std::fmt::Result {
    // Blanks at the beginning of a cell are dropped by most readers.
    let indent = "· ".repeat(row.depth.min(20));
    let detail = row.detail.as_ref().map_or(String::new(), |detail| format!(" ({detail})"));
    let hot = if row.heat >= 0.5 { " **hot**" } else { "" };
    let stages: Vec<String> = row.stages.iter().take(4).map(ToString::to_string).collect();
    let mut more = row.more.clone();
    more.extend(row.finding.iter().map(|finding| format!("finding {finding}")));
    more.extend(row.text.iter().cloned());
    let known = |text: Option<String>| text.unwrap_or_default();
    writeln!(
        out,
        "| {indent}{}{}{hot} | {} | {} | {} | {} | {} | {} |",
        escaped(&row.name),
        escaped(&detail),
        stages.join(", "),
        known(row.rows.map(humane::number)),
        known(row.bytes.map(humane::bytes)),
        known(row.time.map(humane::duration)),
        known(row.largest_task.map(humane::duration)),
        escaped(&more.join("; "))
    )
}

/// Text in which nothing is markup: punctuation of Markdown is escaped, and
/// angle brackets, of which readers make HTML.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '!' | '~' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// An id as code; what would end the code is left out.
fn code(text: &str) -> String {
    format!("`{}`", text.replace('`', "'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_becomes_markup() {
        assert_eq!(escaped("<b>a|b*c_d`"), "&lt;b&gt;a\\|b\\*c\\_d\\`");
        assert_eq!(code("a`b"), "`a'b`");
    }
}
