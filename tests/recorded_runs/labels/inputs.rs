//! Runs about what is read besides logs, and about predictions.

use super::{Expected, healthy};

pub(crate) const EXPECTED: &[Expected] =
    &[healthy("executors-1"), healthy("executors-2"), healthy("executors-4")];
