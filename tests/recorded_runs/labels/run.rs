//! Runs about the application as a whole: driver, cores, memory, outcome.

use super::Expected;

pub(crate) const EXPECTED: &[Expected] = &[];
