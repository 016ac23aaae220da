//! Runs about joins, aggregates and exchanges.

use super::Expected;

pub const EXPECTED: &[Expected] = &[];
