//! Plots as inline SVG: where the time went, what ran when, how the tasks of
//! a stage are spread. Drawings stretch to the width there is; words stand
//! beside them as text, so that they stay readable.

use std::fmt::{self, Write};
use std::time::Duration;

use super::escape::Escaped;
use crate::diagnose::humane;
use crate::report::outline::words;
use crate::report::outline::{Bar, Cores, Split, Spread, Timeline, Tone};

/// Parts of a time axis.
const TICKS: u32 = 4;
/// A task that takes so many times the median stands out.
const STANDS_OUT: f64 = 2.0;

pub(super) fn split(out: &mut String, split: &Split) -> fmt::Result {
    write!(
        out,
        "<figure>\n<figcaption>{}</figcaption>\n<svg class=\"split\" viewBox=\"0 0 1000 20\" \
         preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{0}\">",
        Escaped(&split.caption)
    )?;
    let mut from = 0.0;
    for (part, span) in &split.parts {
        let width = split.share(*span) * 1_000.0;
        write!(
            out,
            "<rect class=\"part-{}\" x=\"{from:.1}\" width=\"{width:.1}\" height=\"20\"><title>{}: \
             {}</title></rect>",
            part.as_str(),
            words::part(*part),
            humane::duration(*span)
        )?;
        from += width;
    }
    out.push_str("</svg>\n<ul class=\"legend\">\n");
    for (part, span) in &split.parts {
        writeln!(
            out,
            "<li><svg class=\"key\" viewBox=\"0 0 10 10\" aria-hidden=\"true\"><rect \
             class=\"part-{}\" width=\"10\" height=\"10\" rx=\"2\"/></svg>{} <b>{}</b> \
             <span class=\"sub\">{}</span></li>",
            part.as_str(),
            words::part(*part),
            humane::duration(*span),
            humane::percent(split.share(*span))
        )?;
    }
    out.push_str("</ul>\n");
    if let Some(note) = &split.note {
        writeln!(out, "<p class=\"sub\">{}</p>", Escaped(note))?;
    }
    out.push_str("</figure>\n");
    Ok(())
}

pub(super) fn timeline(out: &mut String, timeline: &Timeline) -> fmt::Result {
    let length = timeline.to.duration_since(timeline.from);
    let length = Duration::try_from(length).unwrap_or_default();
    out.push_str("<figure class=\"timeline\">\n<figcaption>What ran when</figcaption>\n");
    if let Some(one) = &timeline.cores {
        cores(out, one)?;
    }
    for lane in &timeline.lanes {
        writeln!(out, "<div class=\"lane\"><span class=\"title\">{}</span></div>", lane.title)?;
        for bar in &lane.bars {
            track(out, bar, length)?;
        }
        if lane.omitted > 0 {
            let omitted = humane::number(lane.omitted as u64);
            writeln!(
                out,
                "<div class=\"lane\"><span></span><span class=\"sub\">{omitted} shorter ones not \
                 shown</span></div>"
            )?;
        }
    }
    out.push_str("<div class=\"lane axis\"><span></span><span class=\"ticks\">");
    for tick in 0..=TICKS {
        let at = length.mul_f64(f64::from(tick) / f64::from(TICKS));
        write!(out, "<span>{}</span>", humane::duration(at))?;
    }
    out.push_str("</span></div>\n</figure>\n");
    Ok(())
}

fn cores(out: &mut String, cores: &Cores) -> fmt::Result {
    let most = cores.offered.iter().copied().fold(0.0_f32, f32::max).max(1.0);
    write!(
        out,
        "<div class=\"lane\"><span class=\"label\">cores, {most:.0} at most</span><svg \
         class=\"cores\" viewBox=\"0 0 1000 100\" preserveAspectRatio=\"none\" role=\"img\" \
         aria-label=\"cores of executors and cores in use over time\">"
    )?;
    area(out, "offered", &cores.offered, most)?;
    if let Some(busy) = &cores.busy {
        area(out, "busy", busy, most)?;
    }
    out.push_str("</svg></div>\n");
    out.push_str(
        "<div class=\"lane\"><span></span><ul class=\"legend\"><li><svg class=\"key\" \
         viewBox=\"0 0 10 10\" aria-hidden=\"true\"><rect class=\"offered\" width=\"10\" \
         height=\"10\" rx=\"2\"/></svg>there</li>",
    );
    if cores.busy.is_some() {
        out.push_str(
            "<li><svg class=\"key\" viewBox=\"0 0 10 10\" aria-hidden=\"true\"><rect \
             class=\"busy\" width=\"10\" height=\"10\" rx=\"2\"/></svg>running tasks</li>",
        );
    }
    out.push_str("</ul></div>\n");
    Ok(())
}

/// Steps from the bottom, one for each value.
fn area(out: &mut String, class: &str, values: &[f32], most: f32) -> fmt::Result {
    let width = 1_000.0 / values.len().max(1) as f32;
    write!(out, "<path class=\"{class}\" d=\"M0 100")?;
    for (place, value) in values.iter().enumerate() {
        let height = 100.0 - (value / most).clamp(0.0, 1.0) * 100.0;
        let from = place as f32 * width;
        write!(out, "L{from:.1} {height:.1}H{:.1}", from + width)?;
    }
    out.push_str("V100Z\"/>");
    Ok(())
}

fn track(out: &mut String, bar: &Bar, length: Duration) -> fmt::Result {
    let tone = match bar.tone {
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::Quiet => "quiet",
        Tone::Open => "open",
    };
    let took = humane::duration(length.mul_f64((bar.to - bar.from).clamp(0.0, 1.0)));
    // What is too short to be seen is a line.
    let width = ((bar.to - bar.from) * 1_000.0).max(2.0);
    let from = (bar.from * 1_000.0).min(1_000.0 - width);
    writeln!(
        out,
        "<div class=\"lane\"><span class=\"label\">{0}</span><svg class=\"track\" \
         viewBox=\"0 0 1000 10\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{0}, \
         {took}\"><rect class=\"ground\" width=\"1000\" height=\"10\"/><rect class=\"{tone}\" \
         x=\"{from:.1}\" width=\"{width:.1}\" height=\"10\"><title>{0}: {took}</title></rect>\
         </svg></div>",
        Escaped(&bar.label)
    )
}

pub(super) fn spread(out: &mut String, spread: &Spread) -> fmt::Result {
    let longest = spread.run_times.iter().max().copied().unwrap_or_default().as_secs_f64();
    if longest <= 0.0 {
        return Ok(());
    }
    let median = spread.median.unwrap_or_default().as_secs_f64();
    write!(
        out,
        "<figure class=\"spread\">\n<figcaption>Stage <a class=\"to\" href=\"#stage-{0}\">{0}</a>: \
         run time of its {1}, shortest first · {2}</figcaption>\n<svg class=\"bars\" \
         viewBox=\"0 0 1000 100\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"run times \
         of the tasks of stage {0}\">",
        spread.stage,
        humane::count(spread.tasks, "task", "tasks"),
        Escaped(&spread.verdict)
    )?;
    let width = 1_000.0 / spread.run_times.len().max(1) as f64;
    for (place, time) in spread.run_times.iter().enumerate() {
        let time = time.as_secs_f64();
        let height = (time / longest * 100.0).max(1.0);
        let class = if median > 0.0 && time >= STANDS_OUT * median { "out" } else { "in" };
        write!(
            out,
            "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\"/>",
            place as f64 * width + width * 0.08,
            100.0 - height,
            width * 0.84
        )?;
    }
    if median > 0.0 {
        let y = 100.0 - median / longest * 100.0;
        write!(out, "<path class=\"median\" d=\"M0 {y:.1}H1000\"/>")?;
    }
    out.push_str("</svg>\n");
    writeln!(
        out,
        "<p class=\"sub\">median {} · p95 {} · slowest {}</p>\n</figure>",
        words::time(spread.median),
        words::time(spread.p95),
        words::time(spread.max)
    )
}
