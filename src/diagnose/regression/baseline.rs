//! Which earlier runs a run can be held against, and what they usually take.
//!
//! Median and median absolute deviation (MAD): one slow run among the earlier
//! ones moves neither. 1.4826 x MAD estimates the standard deviation of what is
//! spread normally (Rousseeuw and Croux, 1993); of few values it is too small,
//! and `small_sample` mends that. Runs that are very alike have next to no
//! spread, and a cluster is never as steady as that: hence its floors.

use std::time::Duration;

use super::Baseline;
use crate::config::thresholds::Regression;
use crate::diagnose::RunSummary;
use crate::diagnose::context::seconds;
use crate::model::{DataQuality, Kind, Source};

/// MAD to standard deviation of a normal distribution.
const MAD_TO_DEVIATION: f64 = 1.4826;

/// Where one of these is missing, a duration or an amount of data may be that
/// of a part of the run.
const HOLES: [DataQuality; 9] = [
    DataQuality::LogTruncated,
    DataQuality::LogIncomplete,
    DataQuality::LogCompacted,
    DataQuality::CompressionRatio,
    DataQuality::NoApplicationStart,
    DataQuality::DroppedEvents,
    DataQuality::StagesEvicted,
    DataQuality::EndpointsMissing,
    // One application is a cluster with whatever notebooks ran on it.
    DataQuality::Databricks,
];

/// A run with those it is held against.
pub(super) struct Held<'a> {
    pub(super) duration: Duration,
    /// The latest first.
    pub(super) peers: Vec<&'a RunSummary>,
    pub(super) baseline: Baseline,
    /// Its data / the median of theirs, and what was counted.
    pub(super) data_ratio: Option<f64>,
    pub(super) data_what: &'static str,
}

impl<'a> Held<'a> {
    /// `None` where the run or too few of the others can be judged.
    pub(super) fn of(
        run: &RunSummary,
        before: &'a [RunSummary],
        thresholds: &Regression,
    ) -> Option<Self> {
        let (start, duration) = judged(run)?;
        let mut peers: Vec<(i64, &RunSummary)> = before
            .iter()
            .filter_map(|other| Some((judged(other)?.0, other)))
            .filter(|(began, other)| {
                *began < start && is_comparable(run, other, thresholds.data_ratio)
            })
            .collect();
        peers.sort_by_key(|(began, _)| std::cmp::Reverse(*began));
        peers.truncate(thresholds.runs);
        if peers.len() < thresholds.at_least.max(1) {
            return None;
        }
        let peers: Vec<&RunSummary> = peers.into_iter().map(|(_, peer)| peer).collect();
        let durations = || peers.iter().filter_map(|peer| Some(judged(peer)?.1.as_secs_f64()));
        let middle = median(durations())?;
        let spread = median(durations().map(|duration| (duration - middle).abs()))?;
        let baseline =
            Baseline { runs: peers.len(), median: seconds(middle), spread: seconds(spread) };
        let data = peers.iter().filter_map(|peer| basis(run, peer));
        let what = data.clone().next().map_or("", |(what, _)| what);
        let data_ratio = median(data.filter(|(name, _)| *name == what).map(|(_, ratio)| ratio));
        Some(Self { duration, peers, baseline, data_ratio, data_what: what })
    }

    /// What it would have taken, had it been as fast as usual: more data may
    /// take as much longer.
    fn expected(&self) -> f64 {
        self.baseline.median.as_secs_f64() * self.data_ratio.unwrap_or(1.0).max(1.0)
    }

    /// From here it is slow.
    pub(super) fn bar(&self, thresholds: &Regression) -> Duration {
        let expected = self.expected();
        let deviation = self.baseline.spread.as_secs_f64()
            * MAD_TO_DEVIATION
            * small_sample(self.baseline.runs);
        let deviation = deviation
            .max(expected * thresholds.spread_ratio)
            .max(thresholds.spread.get().as_secs_f64());
        seconds((expected * thresholds.ratio).max(expected + thresholds.spreads * deviation))
    }

    pub(super) fn is_slow(&self, thresholds: &Regression) -> bool {
        self.duration >= self.bar(thresholds)
    }

    /// Time beyond what it would have taken.
    pub(super) fn excess(&self) -> Duration {
        seconds(self.duration.as_secs_f64() - self.expected())
    }

    pub(super) fn ratio(&self) -> Option<f64> {
        crate::diagnose::context::ratio(self.duration, self.baseline.median)
    }

    /// Earlier runs that took about as long.
    pub(super) fn as_slow(&self) -> usize {
        let long = self.duration.mul_f64(0.9);
        let took = |peer: &&&RunSummary| judged(peer).is_some_and(|(_, took)| took >= long);
        self.peers.iter().filter(took).count()
    }
}

/// Start and duration of a run that can be judged: a batch that ended, read as
/// a whole.
fn judged(run: &RunSummary) -> Option<(i64, Duration)> {
    let told =
        matches!(run.source, Some(Source::EventLog | Source::HistoryServer | Source::Driver));
    let whole = run.end_known && !HOLES.iter().any(|hole| run.has(*hole));
    let duration = run.duration_ms.filter(|duration| *duration > 0)?;
    (told && whole && run.kind == Kind::Batch)
        .then_some((run.start_ms?, Duration::from_millis(duration)))
}

/// The first measure of its data that is known, and not 0, of both: how much
/// more the run had.
fn basis(run: &RunSummary, other: &RunSummary) -> Option<(&'static str, f64)> {
    let (a, b) = (amounts(other), amounts(run));
    a.into_iter().zip(b).find_map(|((what, before), (_, now))| {
        let (before, now) = (before.filter(|n| *n > 0)?, now.filter(|n| *n > 0)?);
        Some((what, now as f64 / before as f64))
    })
}

/// Records before bytes: some readers of files do not count bytes.
fn amounts(run: &RunSummary) -> [(&'static str, Option<u64>); 5] {
    let data = &run.data;
    [
        ("records read from storage", data.input_records),
        ("bytes read from storage", data.input_bytes),
        ("records written to storage", data.output_records),
        ("bytes written to storage", data.output_bytes),
        ("records shuffled", data.shuffle_write_records),
    ]
}

/// Whether both had about as much data. Of runs that moved none at all the
/// time is comparable; where only one did, it is not.
fn is_comparable(run: &RunSummary, other: &RunSummary, within: f64) -> bool {
    if let Some((_, ratio)) = basis(run, other) {
        return ratio <= within && ratio >= 1.0 / within.max(1e-9);
    }
    let none = |run: &RunSummary| amounts(run).iter().all(|(_, n)| n.unwrap_or(0) == 0);
    none(run) && none(other)
}

/// The middle value, or the mean of the two in the middle.
pub(super) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    let upper = *values.get(half)?;
    if values.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = *values.get(half.checked_sub(1)?)?;
    Some(f64::midpoint(lower, upper))
}

/// What a MAD of so few values must be multiplied by to be right on average
/// (Croux and Rousseeuw, 1992), and by how much it is widened because it and the
/// median are themselves only estimates. Without the latter one run in 40 of a
/// name whose durations vary by 15 % (log-normal) was a regression of five
/// before it; with it one in 60, and of twenty before it one in 200.
fn small_sample(count: usize) -> f64 {
    const FACTORS: [f64; 8] = [1.196, 1.495, 1.363, 1.206, 1.200, 1.140, 1.129, 1.107];
    let unbiased = match count {
        0 | 1 => 1.0,
        2..=9 => FACTORS[count - 2],
        _ => count as f64 / (count as f64 - 0.8),
    };
    unbiased * (1.0 + 2.0 / count.max(1) as f64)
}
