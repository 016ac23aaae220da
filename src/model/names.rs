//! Texts of plans, kept short, and names of them kept once: for whoever reads
//! plans.

use std::collections::HashSet;
use std::sync::Arc;

/// Characters kept of a name.
const NAME_LENGTH: usize = 200;

/// Names that come again and again are kept once. Beyond a number that no
/// release of Spark needs, new ones are kept each.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names(HashSet<Arc<str>>);

impl Names {
    const MOST: usize = 10_000;

    pub(crate) fn get(&mut self, name: &str) -> Arc<str> {
        let name = shorten(name, NAME_LENGTH);
        if let Some(known) = self.0.get(name.as_str()) {
            return Arc::clone(known);
        }
        let name: Arc<str> = name.into();
        if self.0.len() < Self::MOST {
            self.0.insert(Arc::clone(&name));
        }
        name
    }
}

/// The text without the middle of what is too long.
pub(crate) fn shorten(text: &str, most: usize) -> String {
    // Bytes are at least as many as characters.
    if text.len() <= most || text.chars().count() <= most {
        return text.to_owned();
    }
    let tail = most / 4;
    let head: String = text.chars().take(most - tail - 1).collect();
    let mut end: Vec<char> = text.chars().rev().take(tail).collect();
    end.reverse();
    head + "…" + &end.into_iter().collect::<String>()
}
