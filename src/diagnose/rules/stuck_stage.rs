//! `stuck_stage`: not written yet.

use super::context::Context;
use super::draft::Draft;
use super::{About, Rule};

pub(super) const ABOUT: About = About {
    rule: Rule::StuckStage,
    meaning: "",
    details: "",
    evidence: &[],
    fires: &[],
    near_misses: &[],
    resists: &[],
};

pub(super) fn find(_: &Context<'_>, _: &mut Vec<Draft>) {}
