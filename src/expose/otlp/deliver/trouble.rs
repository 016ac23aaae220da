//! What was said of a back end already: trouble is told once, again when it
//! is another one, and when it is over.

use std::time::{Duration, Instant};

use super::answer::Reason;

#[derive(Debug, Default)]
pub(super) struct Trouble {
    told: Option<Told>,
    objection: Option<(bool, String)>,
}

#[derive(Debug)]
struct Told {
    since: Instant,
    outcome: &'static str,
    reason: Reason,
}

impl Trouble {
    /// Whether this was told before.
    pub(super) fn failed(&mut self, outcome: &'static str, reason: Reason) -> bool {
        match &mut self.told {
            Some(told) if (told.outcome, told.reason) == (outcome, reason) => true,
            Some(told) => {
                (told.outcome, told.reason) = (outcome, reason);
                false
            }
            None => {
                self.told = Some(Told { since: Instant::now(), outcome, reason });
                false
            }
        }
    }

    /// How long the trouble lasted that is over now.
    pub(super) fn taken(&mut self) -> Option<Duration> {
        self.told.take().map(|told| told.since.elapsed())
    }

    /// Whether this objection was told before. Numbers in it change from
    /// request to request and make it no other one.
    pub(super) fn objected(&mut self, rejected: bool, message: &str) -> bool {
        let kind: String = message.chars().filter(|c| !c.is_ascii_digit()).collect();
        let objection = Some((rejected, kind));
        let told = self.objection == objection;
        self.objection = objection;
        told
    }

    pub(super) fn no_objection(&mut self) {
        self.objection = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn told_once_and_again_when_it_changes_or_ends() {
        let mut trouble = Trouble::default();
        assert!(!trouble.failed("given_up", Reason::Timeout));
        assert!(trouble.failed("given_up", Reason::Timeout));
        assert!(!trouble.failed("given_up", Reason::Unreachable));
        assert!(!trouble.failed("refused", Reason::Unreachable));
        assert!(trouble.taken().is_some() && trouble.taken().is_none());
        assert!(!trouble.failed("refused", Reason::Unreachable));
    }

    #[test]
    fn objections_differ_in_words() {
        let mut trouble = Trouble::default();
        assert!(!trouble.objected(true, "3 points are too old"));
        assert!(trouble.objected(true, "17 points are too old"));
        assert!(!trouble.objected(false, "a new version is there"));
        trouble.no_objection();
        assert!(!trouble.objected(false, "a new version is there"));
    }
}
