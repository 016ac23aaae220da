//! Runs that wait for their turn: a bounded list.

use std::collections::BTreeMap;

use crate::metrics::RunView;
use crate::model::State;
use crate::store::RunKey;

/// See the module.
#[derive(Debug)]
pub(super) struct Waiting {
    runs: BTreeMap<RunKey, Entry>,
    most: usize,
    /// Of the next entry.
    number: u64,
}

#[derive(Debug)]
struct Entry {
    view: RunView,
    failures: u32,
    /// In the order in which they came.
    number: u64,
}

/// A run whose turn it is.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) key: RunKey,
    pub(super) view: RunView,
    /// How often it was sent in vain.
    pub(super) failures: u32,
    number: u64,
}

impl Waiting {
    pub(super) fn new(most: usize) -> Self {
        Self { runs: BTreeMap::new(), most, number: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.runs.len()
    }

    pub(super) fn contains(&self, key: &RunKey) -> bool {
        self.runs.contains_key(key)
    }

    /// Takes a run in, or a newer reading of one. Returns a run that had to
    /// go for want of room, for good: at first those that run go, which come
    /// again with their next reading; only then the one that came first.
    pub(super) fn put(&mut self, key: RunKey, view: RunView) -> Option<Turn> {
        if let Some(entry) = self.runs.get_mut(&key) {
            entry.view = view;
            return None;
        }
        self.number += 1;
        self.runs.insert(key, Entry { view, failures: 0, number: self.number });
        self.make_room()
    }

    /// Puts a run back whose turn was in vain, unless a newer reading of it
    /// waits already.
    pub(super) fn put_back(&mut self, turn: Turn) -> Option<Turn> {
        let Turn { key, view, failures, number } = turn;
        let entry = self.runs.entry(key).or_insert(Entry { view, failures, number });
        entry.failures = entry.failures.max(failures);
        entry.number = entry.number.min(number);
        self.make_room()
    }

    fn make_room(&mut self) -> Option<Turn> {
        if self.runs.len() <= self.most {
            return None;
        }
        let first = |running: bool| {
            let of_them = self.runs.iter().filter(|(_, one)| is_running(&one.view) == running);
            of_them.min_by_key(|(_, entry)| entry.number).map(|(key, _)| key.clone())
        };
        if let Some(key) = first(true) {
            self.runs.remove(&key);
            return None;
        }
        first(false).and_then(|key| self.runs.remove_entry(&key)).map(turn)
    }

    /// The next one that is not `held`: those that were never sent in vain
    /// before others, those that have ended before those that run, and so on
    /// in the order in which they came.
    pub(super) fn next(&mut self, held: impl Fn(&RunKey) -> bool) -> Option<Turn> {
        let free = self.runs.iter().filter(|(key, _)| !held(key));
        let first = free
            .min_by_key(|(_, one)| (one.failures, is_running(&one.view), one.number))
            .map(|(key, _)| key.clone())?;
        self.runs.remove_entry(&first).map(turn)
    }
}

fn turn((key, entry): (RunKey, Entry)) -> Turn {
    Turn { key, view: entry.view, failures: entry.failures, number: entry.number }
}

fn is_running(view: &RunView) -> bool {
    view.application.state == State::Running
}
