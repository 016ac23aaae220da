//! Runs about scans, files, caches, Python and streaming.

use super::Expected;

pub const EXPECTED: &[Expected] = &[];
