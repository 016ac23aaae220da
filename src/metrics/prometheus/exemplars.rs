//! Puts exemplars behind the buckets of histograms while they are written.
//!
//! `prometheus-client` writes exemplars only of histograms that it counted
//! itself: there is no way to make one of its `Exemplar`s. So the text of a
//! metric passes through a writer that knows which of its lines have one.

use std::collections::VecDeque;
use std::fmt;

use crate::metrics::sample::{Exemplar, Histogram, Value};
use crate::metrics::snapshot::Family;

/// Hands the text of one metric on, with exemplars at the ends of lines.
#[derive(Debug)]
pub(super) struct Writer<'a, W> {
    out: &'a mut W,
    /// Of the lines to come, comments left out.
    lines: VecDeque<Option<Exemplar>>,
    /// Whether the line that has begun is a comment; `None` before it begins.
    comment: Option<bool>,
}

/// Whether the metric has any.
pub(super) fn has_exemplars(family: &Family) -> bool {
    family.samples.iter().any(|sample| match &sample.value {
        Value::Histogram(histogram) => !histogram.exemplars.is_empty(),
        Value::Number(_) => false,
    })
}

impl<'a, W> Writer<'a, W> {
    /// For the text of this metric.
    pub(super) fn new(out: &'a mut W, family: &Family) -> Self {
        let mut lines = VecDeque::with_capacity(family.series());
        for sample in &family.samples {
            match &sample.value {
                Value::Histogram(histogram) => lines.extend(of_histogram(histogram)),
                Value::Number(_) => lines.push_back(None),
            }
        }
        Self { out, lines, comment: None }
    }
}

/// Of its lines: sum, count, buckets.
fn of_histogram(histogram: &Histogram) -> Vec<Option<Exemplar>> {
    let mut lines = vec![None; 2 + histogram.counts.len()];
    for exemplar in &histogram.exemplars {
        let bucket = Histogram::bucket_of(histogram.bounds, exemplar.value);
        if let Some(line) = lines.get_mut(2 + bucket) {
            *line = Some(*exemplar);
        }
    }
    lines
}

impl<W: fmt::Write> fmt::Write for Writer<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for part in text.split_inclusive('\n') {
            let comment = *self.comment.get_or_insert(part.starts_with('#'));
            let Some(line) = part.strip_suffix('\n') else {
                self.out.write_str(part)?;
                continue;
            };
            self.comment = None;
            self.out.write_str(line)?;
            let exemplar = if comment { None } else { self.lines.pop_front().flatten() };
            if let Some(Exemplar { value, at, trace_id, span_id }) = exemplar {
                // 63 characters of labels; OpenMetrics allows 128.
                let at = at.as_millisecond() as f64 / 1_000.0;
                write!(
                    self.out,
                    " # {{trace_id=\"{trace_id}\",span_id=\"{span_id}\"}} {value} {at:.3}"
                )?;
            }
            self.out.write_char('\n')?;
        }
        Ok(())
    }
}
