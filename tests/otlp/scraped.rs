//! What `/metrics` says, series by series, under the names that a point by
//! OTLP gets in Prometheus.

use std::collections::BTreeMap;

use crate::received::{Attributes, Point, PointKind};

/// Name (of a bucket, count or sum too) and labels without empty ones.
pub(crate) type Series = (String, Attributes);

#[derive(Debug, Default)]
pub(crate) struct Scrape {
    pub(crate) series: BTreeMap<Series, f64>,
    /// By family.
    pub(crate) kinds: BTreeMap<String, String>,
    pub(crate) help: BTreeMap<String, String>,
}

impl Scrape {
    /// Prometheus' text format 0.0.4.
    pub(crate) fn parse(text: &str) -> Self {
        let mut scrape = Self::default();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                scrape.kinds.insert(name.to_owned(), kind.to_owned());
            } else if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').unwrap();
                scrape
                    .help
                    .insert(name.to_owned(), help.replace("\\n", "\n").replace("\\\\", "\\"));
            } else if !line.is_empty() {
                let (series, value) = a_series(line);
                let twice = scrape.series.insert(series, value);
                assert!(twice.is_none(), "twice: {line}");
            }
        }
        scrape
    }

    /// The family that a series belongs to.
    pub(crate) fn family<'a>(&self, name: &'a str) -> &'a str {
        ["_bucket", "_count", "_sum"]
            .iter()
            .filter_map(|end| name.strip_suffix(end))
            .find(|family| self.kinds.get(*family).is_some_and(|kind| kind == "histogram"))
            .unwrap_or(name)
    }
}

fn a_series(line: &str) -> (Series, f64) {
    let end = line.find(['{', ' ']).unwrap();
    let name = line[..end].to_owned();
    let mut labels = Attributes::new();
    let mut rest = &line[end..];
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            let (label, after) = rest.split_once("=\"").unwrap();
            let (value, after) = quoted(after);
            if !value.is_empty() {
                labels.insert(label.to_owned(), value);
            }
            rest = after.strip_prefix(',').unwrap_or(after);
        }
        rest = &rest[1..];
    }
    let value = rest.trim().parse().unwrap_or_else(|_| panic!("no value: {line}"));
    ((name, labels), value)
}

/// What stands before the closing quote, and what comes after it.
fn quoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((place, character)) = characters.next() {
        match character {
            '"' => return (value, &text[place + 1..]),
            '\\' => match characters.next().unwrap().1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    panic!("no end: {text}");
}

/// The name that OpenTelemetry's specification gives a metric in Prometheus.
/// Written out here once more: what the daemon does is held against it.
pub(crate) fn prometheus_name(point: &Point) -> String {
    let mut name = point.name.replace('.', "_");
    let unit = match point.unit.as_str() {
        "s" => "_seconds",
        "By" => "_bytes",
        "By/s" => "_bytes_per_second",
        "1" if matches!(point.kind, PointKind::Gauge(_)) => "_ratio",
        per_second if per_second.ends_with("}/s") => "_per_second",
        _ => "",
    };
    if !name.ends_with(unit) {
        name += unit;
    }
    if matches!(point.kind, PointKind::Sum { monotonic: true, .. }) {
        name += "_total";
    }
    name
}

/// A point as the series that Prometheus would make of it.
pub(crate) fn series_of(point: &Point) -> Vec<(Series, f64)> {
    let name = prometheus_name(point);
    match &point.kind {
        PointKind::Gauge(value) | PointKind::Sum { value, .. } => {
            vec![((name, point.attributes.clone()), *value)]
        }
        PointKind::Histogram { bounds, counts, count, sum, .. } => {
            assert_eq!(counts.len(), bounds.len() + 1, "{name}");
            let mut all = Vec::new();
            let mut so_far = 0;
            let ends = bounds.iter().map(f64::to_string).chain(["+Inf".to_owned()]);
            for (end, added) in ends.zip(counts) {
                so_far += added;
                let mut labels = point.attributes.clone();
                labels.insert("le".to_owned(), end);
                all.push(((format!("{name}_bucket"), labels), so_far as f64));
            }
            assert_eq!(so_far, *count, "{name}: what is in buckets is all there is");
            all.push(((format!("{name}_count"), point.attributes.clone()), *count as f64));
            all.push(((format!("{name}_sum"), point.attributes.clone()), *sum));
            all
        }
    }
}
