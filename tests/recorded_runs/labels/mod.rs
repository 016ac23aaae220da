//! What each recorded run should be diagnosed as: by the people who made it
//! ill, before any rule looked at it.

mod inputs;
mod joins;
mod run;
mod scans;
mod stages;

use spark_exporter::diagnose::{Cause, Rule, Severity};

/// What a run's diagnosis has to say.
pub(crate) struct Expected {
    pub(crate) run: &'static str,
    /// Found, with this cause, at this severity or above.
    pub(crate) must: &'static [(Rule, Option<Cause>, Severity)],
    /// May be found besides, at this severity or below. A cold executor as
    /// `info` may be found anywhere.
    pub(crate) may: &'static [(Rule, Severity)],
}

pub(crate) const fn healthy(run: &'static str) -> Expected {
    Expected { run, must: &[], may: &[] }
}

pub(crate) const fn ill(
    run: &'static str,
    must: &'static [(Rule, Option<Cause>, Severity)],
) -> Expected {
    Expected { run, must, may: &[] }
}

/// All labelled runs.
pub(crate) fn all() -> impl Iterator<Item = &'static Expected> {
    [stages::EXPECTED, joins::EXPECTED, scans::EXPECTED, run::EXPECTED, inputs::EXPECTED]
        .into_iter()
        .flatten()
}

pub(crate) fn of(run: &str) -> Option<&'static Expected> {
    all().find(|expected| expected.run == run)
}

/// Rules that need what REST does not tell (plans of SQL, streams, heaps):
/// what they should find is not asked of a run that was read by REST.
pub(crate) const NEED_THE_LOG: &[Rule] = &[
    Rule::ShuffleHeavy,
    Rule::Memory,
    Rule::SpeculationWaste,
    Rule::Configuration,
    Rule::JoinExplosion,
    Rule::Cartesian,
    Rule::PartialAggregation,
    Rule::CountDistinct,
    Rule::PythonUdf,
    Rule::LargeBroadcast,
    Rule::MissedBroadcast,
    Rule::CacheEvicted,
    Rule::SmallFilesRead,
    Rule::SmallFilesWritten,
    Rule::FullScan,
    Rule::RepeatedSubplan,
    Rule::StreamingBehind,
];
