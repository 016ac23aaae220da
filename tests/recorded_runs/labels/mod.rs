//! What each recorded run should be diagnosed as: by the people who made it
//! ill, before any rule looked at it.

mod inputs;
mod joins;
mod run;
mod scans;
mod stages;

use spark_exporter::diagnose::{Cause, Rule, Severity};

/// What a run's diagnosis has to say.
pub struct Expected {
    pub run: &'static str,
    /// Found, with this cause, at this severity or above.
    pub must: &'static [(Rule, Option<Cause>, Severity)],
    /// May be found besides, at this severity or below. A cold executor as
    /// `info` may be found anywhere.
    pub may: &'static [(Rule, Severity)],
}

pub const fn healthy(run: &'static str) -> Expected {
    Expected { run, must: &[], may: &[] }
}

pub const fn ill(run: &'static str, must: &'static [(Rule, Option<Cause>, Severity)]) -> Expected {
    Expected { run, must, may: &[] }
}

/// All labelled runs.
pub fn all() -> impl Iterator<Item = &'static Expected> {
    [stages::EXPECTED, joins::EXPECTED, scans::EXPECTED, run::EXPECTED, inputs::EXPECTED]
        .into_iter()
        .flatten()
}

pub fn of(run: &str) -> Option<&'static Expected> {
    all().find(|expected| expected.run == run)
}
