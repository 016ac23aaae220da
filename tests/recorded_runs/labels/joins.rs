//! Runs about joins, aggregates and exchanges.

use super::Expected;

pub(crate) const EXPECTED: &[Expected] = &[];
