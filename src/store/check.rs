//! What must agree in every store, whatever it lies in: stored runs and the
//! totals they are in.

use std::collections::BTreeMap;

use super::{Counted, Meta, NameKey, RunKey, RunRecord, StoreError, Totals};

/// So many complaints are said; the others are only counted.
const SAID: usize = 10;

/// What is wrong, in the order in which it was found.
#[derive(Debug, Default)]
pub(super) struct Wrong {
    said: Vec<String>,
    more: u64,
}

impl Wrong {
    pub(super) fn add(&mut self, what: String) {
        if self.said.len() < SAID {
            self.said.push(what);
        } else {
            self.more += 1;
        }
    }

    pub(super) fn into_result(self, store: &str) -> Result<(), StoreError> {
        if self.said.is_empty() {
            return Ok(());
        }
        let more = match self.more {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let why = format!("it contradicts itself: {}{more}", self.said.join("; "));
        Err(StoreError::Unusable { what: store.to_owned(), why })
    }
}

/// Runs as they are checked, one after the other.
#[derive(Debug, Default)]
pub(super) struct Checked {
    pub(super) wrong: Wrong,
    /// Runs that are counted, by the name whose totals they are in.
    counted: BTreeMap<NameKey, u64>,
}

impl Checked {
    pub(super) fn run(&mut self, key: &RunKey, record: &RunRecord) {
        if record.counted == Counted::Yes {
            let cluster = key.id.cluster.clone();
            let name = NameKey { cluster, app_name: record.total_name.clone() };
            *self.counted.entry(name).or_default() += 1;
        }
    }

    /// Every counted run is in the totals of its name; where nothing was
    /// forgotten yet, nothing else is.
    pub(super) fn against(mut self, totals: &[(NameKey, Totals)], meta: &Meta) -> Wrong {
        for (name, totals) in totals {
            let stored = self.counted.remove(name).unwrap_or_default();
            let total: u64 = totals.runs.iter().sum();
            if total < stored || (total > stored && !meta.has_forgotten()) {
                self.wrong.add(format!(
                    "the totals of {}/{} are of {total} runs, of which {stored} are stored",
                    name.cluster, name.app_name
                ));
            }
        }
        for (name, stored) in self.counted {
            self.wrong.add(format!(
                "{}/{} has no totals, and {stored} runs that are counted",
                name.cluster, name.app_name
            ));
        }
        self.wrong
    }
}
