//! Runs about what is read besides logs.

use super::Expected;

pub const EXPECTED: &[Expected] = &[];
