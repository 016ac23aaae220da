//! The outline as one HTML file that needs nothing else: style and plots are
//! in it, there is no script, and its own policy forbids to load anything. It
//! follows the reader's light or dark, fits a telephone, and prints.

mod escape;
mod plots;
mod tables;

use std::fmt::{self, Write};

pub use self::escape::Escaped;
use super::outline::{Block, FindingView, Item, Outline, Section};
use super::{Texts, View};

const STYLE: &str = include_str!("style.css");
/// For a file that is opened from a disk; a server says the same in a header.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; \
                      form-action 'none'";

/// Where the page stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place<'a> {
    /// A file of its own.
    File,
    /// The daemon's, at this address: it has links to its other forms and
    /// back to the list.
    Daemon { address: &'a str },
}

/// One run as a whole page.
pub fn html(run: View<'_>, texts: Texts, place: Place<'_>) -> String {
    let outline = Outline::new(run, texts);
    let mut out = String::with_capacity(64 * 1024);
    // Writing into a String does not fail.
    let _ = page(&mut out, &outline, place);
    out
}

fn page(out: &mut String, outline: &Outline, place: Place<'_>) -> fmt::Result {
    let heading = &outline.heading;
    let name = Escaped(&heading.name);
    write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{name} · Spark diagnosis</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n"
    )?;
    out.push_str("<header>\n");
    if let Place::Daemon { address } = place {
        writeln!(
            out,
            "<p class=\"up\"><a href=\"/\">All applications</a> <a href=\"{0}.md\">Markdown</a> \
             <a href=\"{0}.json\">JSON</a></p>",
            Escaped(address)
        )?;
    }
    write!(out, "<h1>{name}</h1>\n<p class=\"sub\"><code>{}</code>", Escaped(&heading.app_id))?;
    if let Some(attempt) = &heading.attempt_id {
        write!(out, " attempt {}", Escaped(attempt))?;
    }
    write!(out, " · cluster {}", Escaped(&heading.cluster))?;
    for fact in &heading.facts {
        write!(out, " · {}", Escaped(fact))?;
    }
    out.push_str("</p>\n<nav>");
    for section in &outline.sections {
        write!(out, "<a href=\"#{}\">{}</a>", section.id, section.title)?;
    }
    out.push_str("</nav>\n</header>\n<main>\n");
    let severity = heading.severity.map_or("good", |severity| severity.as_str());
    for section in &outline.sections {
        write_section(out, section, severity)?;
    }
    write!(
        out,
        "</main>\n<footer><p class=\"sub\">Made by spark-exporter {} from what Spark wrote.</p>\
         </footer>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION")
    )
}

fn write_section(out: &mut String, section: &Section, severity: &str) -> fmt::Result {
    let class = if section.id == "conclusion" { severity } else { "" };
    write!(out, "<section id=\"{}\" class=\"{class}\">\n<h2>{}</h2>\n", section.id, section.title)?;
    for block in &section.blocks {
        write_block(out, block)?;
    }
    out.push_str("</section>\n");
    Ok(())
}

fn write_block(out: &mut String, block: &Block) -> fmt::Result {
    match block {
        Block::Lead(text) => writeln!(out, "<p class=\"lead\">{}</p>", Escaped(text)),
        Block::Text(text) => writeln!(out, "<p>{}</p>", Escaped(text)),
        Block::Note(text) => writeln!(out, "<p class=\"note\">{}</p>", Escaped(text)),
        Block::Facts(facts) => {
            out.push_str("<dl>\n");
            for (name, value) in facts {
                writeln!(out, "<div><dt>{name}</dt><dd>{}</dd></div>", Escaped(value))?;
            }
            out.push_str("</dl>\n");
            Ok(())
        }
        Block::List { ordered, items } => list(out, *ordered, items),
        Block::Table(table) => tables::table(out, table),
        Block::Finding(one) => finding(out, one),
        Block::Split(split) => plots::split(out, split),
        Block::Timeline(timeline) => plots::timeline(out, timeline),
        Block::Spread(spread) => plots::spread(out, spread),
        Block::Plan(plan) => tables::plan(out, plan),
    }
}

fn list(out: &mut String, ordered: bool, items: &[Item]) -> fmt::Result {
    let tag = if ordered { "ol" } else { "ul" };
    writeln!(out, "<{tag}>")?;
    for item in items {
        write!(out, "<li>{}", Escaped(&item.text))?;
        if let Some(aside) = &item.aside {
            write!(out, " <span class=\"aside\">({})</span>", Escaped(aside))?;
        }
        if let Some(anchor) = &item.anchor {
            write!(out, " <a class=\"to\" href=\"#{0}\">{0}</a>", Escaped(anchor))?;
        }
        out.push_str("</li>\n");
    }
    writeln!(out, "</{tag}>")
}

fn finding(out: &mut String, finding: &FindingView) -> fmt::Result {
    let severity = finding.severity.as_str();
    writeln!(out, "<article class=\"finding {severity}\" id=\"{}\">", Escaped(&finding.anchor))?;
    if finding.is_first_of_rule {
        write!(out, "<a id=\"{}\"></a>", finding.rule)?;
    }
    write!(
        out,
        "<h3><span class=\"pill {severity}\">{severity}</span> {}</h3>\n<p class=\"sub\">\
         <a class=\"to\" href=\"#{}\">{}</a>",
        Escaped(&finding.headline),
        Escaped(&finding.anchor),
        finding.rule
    )?;
    if let Some(cause) = finding.cause {
        write!(out, " · cause {cause}")?;
    }
    writeln!(
        out,
        " · {} · confidence {}</p>",
        Escaped(&finding.costs),
        finding.confidence.as_str()
    )?;
    if !finding.meaning.is_empty() {
        writeln!(out, "<p class=\"meaning\">{}</p>", Escaped(&unmarked(finding.meaning)))?;
    }
    if !finding.advice.is_empty() {
        out.push_str("<h4>What to do</h4>\n");
        list(out, true, &finding.advice)?;
    }
    if !finding.evidence.is_empty() {
        out.push_str("<h4>What it rests on</h4>\n");
        tables::evidence(out, &finding.evidence)?;
    }
    out.push_str("</article>\n");
    Ok(())
}

/// A rule's own words are Markdown: backticks and stars are left out.
fn unmarked(text: &str) -> String {
    text.replace(['`', '*'], "")
}
