//! Puts exemplars behind the buckets of histograms while they are written.
//!
//! `prometheus-client` writes exemplars only of histograms that it counted
//! itself: there is no way to make one of its `Exemplar`s. So the text passes
//! through a writer that knows which of the next lines have one.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::metrics::sample::{Exemplar, Histogram};

/// Shared by whoever walks the histograms and the writer beneath.
#[derive(Debug, Clone, Default)]
pub(super) struct Margin(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// Of the lines to come, the first one first.
    lines: Mutex<VecDeque<Option<Exemplar>>>,
    /// How many those are: looked at for each piece of text, where a lock
    /// would cost as much as the writing.
    left: AtomicUsize,
}

impl Margin {
    /// Of the lines of a histogram: its sum, its count, its buckets.
    pub(super) fn expect(&self, histogram: &Histogram) {
        if histogram.exemplars.is_empty() {
            return;
        }
        let mut lines = VecDeque::from(vec![None; 2 + histogram.counts.len()]);
        for exemplar in &histogram.exemplars {
            let bucket = Histogram::bucket_of(histogram.bounds, exemplar.value);
            if let Some(line) = lines.get_mut(2 + bucket) {
                *line = Some(*exemplar);
            }
        }
        self.0.left.store(lines.len(), Ordering::Relaxed);
        *self.0.lines.lock().unwrap_or_else(PoisonError::into_inner) = lines;
    }

    fn is_empty(&self) -> bool {
        self.0.left.load(Ordering::Relaxed) == 0
    }

    /// Of the line that ends now.
    fn next(&self) -> Option<Exemplar> {
        let mut lines = self.0.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let next = lines.pop_front().flatten();
        self.0.left.store(lines.len(), Ordering::Relaxed);
        next
    }
}

/// Hands text on, with exemplars at the ends of lines.
#[derive(Debug)]
pub(super) struct Writer<'a, W> {
    pub(super) out: &'a mut W,
    pub(super) margin: Margin,
}

impl<W: fmt::Write> fmt::Write for Writer<'_, W> {
    fn write_str(&mut self, mut text: &str) -> fmt::Result {
        while !self.margin.is_empty()
            && let Some((line, rest)) = text.split_once('\n')
        {
            self.out.write_str(line)?;
            if let Some(Exemplar { value, at, trace_id, span_id }) = self.margin.next() {
                // 63 characters of labels; OpenMetrics allows 128.
                let at = at.as_millisecond() as f64 / 1_000.0;
                write!(
                    self.out,
                    " # {{trace_id=\"{trace_id}\",span_id=\"{span_id}\"}} {value} {at:.3}"
                )?;
            }
            self.out.write_char('\n')?;
            text = rest;
        }
        self.out.write_str(text)
    }
}
