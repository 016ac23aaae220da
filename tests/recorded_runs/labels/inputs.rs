//! Runs about what is read besides logs.

use super::Expected;

pub(crate) const EXPECTED: &[Expected] = &[];
