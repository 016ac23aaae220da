//! Runs about scans, files, caches, Python and streaming.

use super::Expected;

pub(crate) const EXPECTED: &[Expected] = &[];
