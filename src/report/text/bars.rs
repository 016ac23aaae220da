//! Plots in one line of characters each.

use crate::report::outline::{Bar, Split};

const EIGHTHS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A curve: one character a value, as high as its share of the largest.
pub(super) fn sparkline(values: &[f64], width: usize) -> String {
    let largest = values.iter().copied().fold(0.0, f64::max);
    if largest <= 0.0 || values.is_empty() {
        return String::new();
    }
    let width = width.min(values.len()).max(1);
    (0..width)
        .map(|column| {
            // The largest of its part: a peak must not get lost.
            let from = column * values.len() / width;
            let to = ((column + 1) * values.len() / width).max(from + 1);
            let peak = values.get(from..to).unwrap_or_default().iter().copied().fold(0.0, f64::max);
            let step = (peak / largest * 8.0).ceil().clamp(1.0, 8.0) as usize;
            EIGHTHS.get(step - 1).copied().unwrap_or('█')
        })
        .collect()
}

/// When something ran, on a line of so many characters for the whole run.
pub(super) fn span(bar: &Bar, width: usize) -> String {
    let at = |share: f64| ((share * width as f64) as usize).min(width);
    let from = at(bar.from).min(width.saturating_sub(1));
    let to = ((bar.to * width as f64).ceil() as usize).clamp(from + 1, width.max(1));
    (0..width).map(|column| if (from..to).contains(&column) { '█' } else { '·' }).collect()
}

/// Of a share, so many characters of `width`; something is never nothing.
pub(super) fn share(split: &Split, part: std::time::Duration, width: usize) -> String {
    let length = (split.share(part) * width as f64).round() as usize;
    "█".repeat(length.clamp(1, width))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_does_not_get_lost() {
        let mut values = vec![1.0; 200];
        values[150] = 16.0;
        let line = sparkline(&values, 20);
        assert_eq!(line.chars().count(), 20);
        assert_eq!(line.chars().filter(|c| *c == '█').count(), 1);
        assert_eq!(sparkline(&[], 20), "");
        assert_eq!(sparkline(&[0.0], 20), "");
    }
}
