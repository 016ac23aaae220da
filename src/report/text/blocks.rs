//! Each block of an outline in lines of a terminal.

use std::fmt::Write;

use super::{Colours, Page, bars, paint};
use crate::diagnose::{Severity, humane};
use crate::report::outline::words;
use crate::report::outline::{
    Block, FindingView, Item, PlanRow, PlanView, Split, Spread, Table, Timeline,
};

/// Characters of a bar.
const BAR: usize = 40;
/// Bars of one kind, operators of a plan: a terminal is short.
const BARS: usize = 8;
const OPERATORS: usize = 25;

impl Page<'_> {
    pub(super) fn block(&mut self, block: &Block) {
        match block {
            Block::Lead(text) | Block::Text(text) => self.line(format!("  {text}")),
            Block::Note(text) => self.line(format!("  note: {text}")),
            Block::Facts(facts) => {
                for (name, value) in facts {
                    self.line(format!("  {:<15}{value}", format!("{name}:")));
                }
            }
            Block::List { ordered, items } => self.list(*ordered, items, "  "),
            Block::Table(table) => self.table(table),
            Block::Finding(finding) => self.finding(finding),
            Block::Split(split) => self.split(split),
            Block::Timeline(timeline) => self.timeline(timeline),
            Block::Spread(spread) => self.spread(spread),
            Block::Plan(plan) => self.plan(plan),
        }
    }

    fn list(&mut self, ordered: bool, items: &[Item], indent: &str) {
        for (number, item) in items.iter().enumerate() {
            let mark = if ordered { format!("{}.", number + 1) } else { "-".to_owned() };
            let aside = item.aside.as_ref().map_or(String::new(), |aside| format!(" ({aside})"));
            self.line(format!("{indent}{mark} {}{aside}", item.text));
        }
    }

    fn table(&mut self, table: &Table) {
        if !table.caption.is_empty() {
            self.line(format!("  {}:", table.caption));
        }
        let width = |column: usize| {
            let cells = table.rows.iter().filter_map(|row| row.cells.get(column));
            let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or_default();
            widest.max(table.columns.get(column).map_or(0, |c| c.title.chars().count()))
        };
        let widths: Vec<usize> = (0..table.columns.len()).map(width).collect();
        let titles = table.columns.iter().map(|column| column.title.to_owned()).collect();
        for cells in std::iter::once(&titles).chain(table.rows.iter().map(|row| &row.cells)) {
            let cells: Vec<String> = cells
                .iter()
                .zip(&widths)
                .zip(&table.columns)
                .map(|((cell, width), column)| {
                    if column.is_number {
                        format!("{cell:>width$}")
                    } else {
                        format!("{cell:<width$}")
                    }
                })
                .collect();
            self.line(format!("    {}", cells.join("  ")));
        }
    }

    fn finding(&mut self, finding: &FindingView) {
        let severity = format!("{:<8}", finding.severity.as_str().to_uppercase());
        let severity = paint(finding.severity, &severity, self.colours);
        self.line(format!("  {severity}  {}", finding.headline));
        let cause = finding.cause.map_or(String::new(), |cause| format!(", cause {cause}"));
        self.line(format!(
            "            {}{cause}; {}; confidence {}",
            finding.rule,
            finding.costs,
            finding.confidence.as_str()
        ));
        for evidence in &finding.evidence {
            let threshold = evidence
                .threshold
                .as_ref()
                .map_or(String::new(), |threshold| format!(" (threshold {threshold})"));
            self.line(format!(
                "              {}: {}{threshold}, {}",
                evidence.name, evidence.value, evidence.from
            ));
        }
        self.list(true, &finding.advice, "            ");
    }

    fn split(&mut self, split: &Split) {
        self.line(format!("  {}:", split.caption));
        for (part, span) in &split.parts {
            self.line(format!(
                "    {:<24} {:>10}  {:>6}  {}",
                words::part(*part),
                humane::duration(*span),
                humane::percent(split.share(*span)),
                bars::share(split, *span, BAR)
            ));
        }
        if let Some(note) = &split.note {
            self.line(format!("    {note}"));
        }
    }

    fn timeline(&mut self, timeline: &Timeline) {
        if let Some(cores) = &timeline.cores {
            let line = |values: &[f32]| {
                let values: Vec<f64> = values.iter().map(|value| f64::from(*value)).collect();
                bars::sparkline(&values, BAR)
            };
            self.line(format!("    {:<14} {}", "cores", line(&cores.offered)));
            if let Some(busy) = &cores.busy {
                self.line(format!("    {:<14} {}", "cores in use", line(busy)));
            }
        }
        for lane in timeline.lanes.iter().filter(|lane| lane.title != "Stages") {
            for bar in lane.bars.iter().take(BARS) {
                self.line(format!("    {:<14} {}", bar.label, bars::span(bar, BAR)));
            }
            let more = lane.bars.len().saturating_sub(BARS) + lane.omitted;
            if more > 0 {
                let title = lane.title;
                self.line(format!("    and {} more of {title}", humane::number(more as u64)));
            }
        }
    }

    fn spread(&mut self, spread: &Spread) {
        let values: Vec<f64> =
            spread.run_times.iter().map(std::time::Duration::as_secs_f64).collect();
        let line = bars::sparkline(&values, BAR);
        let stage = format!("stage {}", spread.stage);
        let tasks = humane::count(spread.tasks, "task", "tasks");
        self.line(format!("    {stage:<14} {line}  {tasks}, shortest first: {}", spread.verdict));
    }

    fn plan(&mut self, plan: &PlanView) {
        self.line(format!("  {}", plan.title));
        for row in plan.rows.iter().take(OPERATORS) {
            self.operator(row);
        }
        let more = plan.rows.len().saturating_sub(OPERATORS) as u64 + plan.omitted;
        if more > 0 {
            let more = humane::count(more, "operator", "operators");
            self.line(format!("    and {more} more"));
        }
        self.line(format!("    {}", plan.adaptive));
    }

    fn operator(&mut self, row: &PlanRow) {
        // Deep plans would run out of the terminal.
        let indent = "  ".repeat(row.depth.min(20));
        let detail = row.detail.as_ref().map_or(String::new(), |detail| format!(" ({detail})"));
        let mut facts = Vec::new();
        facts.extend(row.rows.map(|rows| humane::count(rows, "row", "rows")));
        facts.extend(row.bytes.map(humane::bytes));
        facts.extend(row.time.map(|time| match row.largest_task {
            Some(task) => {
                format!("{} (slowest task {})", humane::duration(time), humane::duration(task))
            }
            None => humane::duration(time),
        }));
        facts.extend(row.more.iter().cloned());
        if !row.stages.is_empty() {
            let stages: Vec<String> = row.stages.iter().take(4).map(ToString::to_string).collect();
            facts.push(format!("stage {}", stages.join(", ")));
        }
        let facts =
            if facts.is_empty() { String::new() } else { format!(": {}", facts.join(", ")) };
        let mut line = format!("    {indent}{}{detail}{facts}", row.name);
        if let Some(finding) = &row.finding {
            let _ = write!(line, "  <- {finding}");
        }
        if row.heat >= 0.5 && self.colours == Colours::Ansi {
            line = paint(Severity::Warning, &line, self.colours);
        } else if row.heat >= 0.5 {
            line.push_str("  <- hot");
        }
        self.line(line);
        for text in &row.text {
            self.line(format!("    {indent}    {text}"));
        }
    }
}
