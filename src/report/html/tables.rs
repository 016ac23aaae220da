//! Tables: plain ones, evidence, and plans as trees with hot operators.

use std::fmt::{self, Write};

use super::escape::Escaped;
use crate::diagnose::{Severity, humane};
use crate::report::outline::{Evidenced, PlanRow, PlanView, Table};

/// From this share of the longest time on an operator is hot.
const HOT: f64 = 0.5;
/// Characters that stay on one line.
const SHORT: usize = 34;

pub(super) fn table(out: &mut String, table: &Table) -> fmt::Result {
    if !table.caption.is_empty() {
        writeln!(out, "<h3>{}</h3>", Escaped(&table.caption))?;
    }
    out.push_str("<div class=\"scroll\"><table>\n<thead><tr>");
    for column in &table.columns {
        write!(out, "<th{}>{}</th>", number(column.is_number), column.title)?;
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        out.push_str("<tr");
        if let Some(severity) = row.severity {
            write!(out, " class=\"{}\"", severity.as_str())?;
        }
        if let Some(anchor) = &row.anchor {
            write!(out, " id=\"{}\"", Escaped(anchor))?;
        }
        out.push('>');
        for (cell, column) in row.cells.iter().zip(&table.columns) {
            let class = match cell.chars().count() {
                _ if column.is_number => number(true),
                0..=SHORT => " class=\"short\"",
                _ => "",
            };
            write!(out, "<td{class}>{}</td>", Escaped(cell))?;
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table></div>\n");
    Ok(())
}

fn number(is_number: bool) -> &'static str {
    if is_number { " class=\"num\"" } else { "" }
}

pub(super) fn evidence(out: &mut String, evidence: &[Evidenced]) -> fmt::Result {
    out.push_str(
        "<div class=\"scroll\"><table class=\"evidence\">\n<thead><tr><th>number</th>\
         <th class=\"num\">value</th><th class=\"num\">threshold</th><th>read from</th></tr>\
         </thead>\n<tbody>\n",
    );
    for one in evidence {
        write!(out, "<tr><td>{}", Escaped(&one.name))?;
        if let Some(meaning) = one.meaning {
            write!(out, "<br><span class=\"sub\">{}</span>", Escaped(&super::unmarked(meaning)))?;
        }
        writeln!(
            out,
            "</td><td class=\"num\">{}</td><td class=\"num\">{}</td><td>{}</td></tr>",
            Escaped(&one.value),
            Escaped(one.threshold.as_deref().unwrap_or("–")),
            Escaped(&one.from)
        )?;
    }
    out.push_str("</tbody>\n</table></div>\n");
    Ok(())
}

pub(super) fn plan(out: &mut String, plan: &PlanView) -> fmt::Result {
    writeln!(out, "<h3 id=\"sql-{}\">{}</h3>", plan.sql_id, Escaped(&plan.title))?;
    writeln!(out, "<p class=\"sub\">{}</p>", Escaped(&plan.adaptive))?;
    out.push_str(
        "<div class=\"scroll\"><table class=\"plan\">\n<thead><tr><th>operator</th>\
         <th>stages</th><th class=\"num\">rows</th><th class=\"num\">bytes</th>\
         <th class=\"num\">time</th><th></th><th class=\"num\">slowest task</th><th>more</th></tr>\
         </thead>\n<tbody>\n",
    );
    for row in &plan.rows {
        operator(out, plan.sql_id, row)?;
    }
    out.push_str("</tbody>\n</table></div>\n");
    if plan.omitted > 0 {
        let more = humane::count(plan.omitted, "more operator", "more operators");
        writeln!(out, "<p class=\"note\">{more} not shown.</p>")?;
    }
    Ok(())
}

fn operator(out: &mut String, sql_id: u64, row: &PlanRow) -> fmt::Result {
    let hot = if row.heat >= HOT { Severity::Warning.as_str() } else { "" };
    write!(
        out,
        "<tr class=\"{hot}\" id=\"sql-{sql_id}-node-{}\"><td class=\"tree\" style=\"--depth:{}\">\
         <b>{}</b>",
        row.node,
        row.depth.min(24),
        Escaped(&row.name)
    )?;
    if let Some(detail) = &row.detail {
        write!(out, " <span class=\"sub\">{}</span>", Escaped(detail))?;
    }
    if let Some(finding) = &row.finding {
        write!(out, " <a class=\"to\" href=\"#{0}\">{0}</a>", Escaped(finding))?;
    }
    for text in &row.text {
        write!(out, "<br><code>{}</code>", Escaped(text))?;
    }
    out.push_str("</td><td>");
    for (number, stage) in row.stages.iter().take(4).enumerate() {
        let comma = if number > 0 { ", " } else { "" };
        write!(out, "{comma}<a class=\"to\" href=\"#stage-{stage}\">{stage}</a>")?;
    }
    let known = |text: Option<String>| text.unwrap_or_default();
    write!(
        out,
        "</td><td class=\"num\">{}</td><td class=\"num\">{}</td><td class=\"num\">{}</td><td>",
        known(row.rows.map(humane::number)),
        known(row.bytes.map(humane::bytes)),
        known(row.time.map(humane::duration)),
    )?;
    if row.heat > 0.0 {
        write!(
            out,
            "<svg class=\"heat\" viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" \
             aria-hidden=\"true\"><rect width=\"{:.0}\" height=\"10\"/></svg>",
            (row.heat * 100.0).max(1.0)
        )?;
    }
    writeln!(
        out,
        "</td><td class=\"num\">{}</td><td class=\"sub\">{}</td></tr>",
        known(row.largest_task.map(humane::duration)),
        Escaped(&row.more.join(" · "))
    )
}
