//! What a rule says about itself: `docs/diagnostics.md` is made of it, and
//! reports explain findings with it.

use super::{Rule, rules};

/// One rule for a reader. Texts are Markdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About {
    pub rule: Rule,
    /// What it means that it fires, in a sentence or two.
    pub meaning: &'static str,
    /// When it fires (the formula), each threshold by its name with its
    /// source, causes, what it costs, when it stays silent.
    pub details: &'static str,
    /// Each name of its evidence, with what it is.
    pub evidence: &'static [(&'static str, &'static str)],
    /// Recorded runs (`examples/logs`) in which it fires ...
    pub fires: &'static [&'static str],
    /// ... in which it almost does ...
    pub near_misses: &'static [&'static str],
    /// ... and in which something else looks like it, or it looks like
    /// something else: the run, and the wrong verdict that is not given.
    pub resists: &'static [(&'static str, &'static str)],
}

/// Every rule, in the order of [`Rule::ALL`].
pub fn about(rule: Rule) -> &'static About {
    rules::about(rule)
}
