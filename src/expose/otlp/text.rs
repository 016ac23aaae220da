//! Texts in attributes: on one line, bounded, without what looks like a
//! secret.

use crate::report::privacy;

/// Cut to so many characters.
pub(super) fn short(text: &str, most: usize) -> String {
    privacy::cut(text, most)
}
