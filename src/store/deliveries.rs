//! What was sent of runs: noted once it was accepted, and forgotten with the
//! run.
//!
//! Two daemons that share a store and see the same run at the same moment may
//! both send a part before either has noted it. Spans have the same ids then,
//! so a back end that knows them has them once; a record of a finding may be
//! there twice. Nothing is lost: what both noted adds up.

use jiff::Timestamp;

use super::{Delivered, News, RunKey, Store, StoreError};

/// Of the runs that are looked at to be forgotten, so many at a time.
const LOOK_AT: usize = 10_000;

impl Store {
    /// What was sent of the run, where anything was.
    pub fn delivered(&self, key: &RunKey) -> Result<Option<Delivered>, StoreError> {
        let key = key.normal();
        Ok(key.among(self.backend.delivered(&key.id)?).map(|(_, delivered)| delivered))
    }

    /// Notes what was accepted of the run.
    pub fn add_delivered(
        &self,
        key: &RunKey,
        news: &News,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let key = key.normal();
        self.change(|change| {
            let known = key.among(change.delivered(&key.id)?);
            let (known_key, mut delivered) =
                known.unwrap_or_else(|| (key.clone(), Delivered::default()));
            delivered.add(news);
            delivered.at_ms = now.as_millisecond();
            let tells_start = known_key.start_ms == 0 && key.start_ms != 0;
            if tells_start {
                change.remove_delivered(&known_key)?;
            }
            change.put_delivered(if tells_start { &key } else { &known_key }, &delivered)?;
            Ok(((), true))
        })
    }

    /// Forgets what was sent of runs that are not stored and of which nothing
    /// was sent for so long: they never ended, or were never read to their
    /// end. That of stored runs goes with them.
    pub(super) fn forget_delivered(&self, before_ms: i64) -> Result<(), StoreError> {
        for key in self.backend.delivered_before(before_ms, LOOK_AT)? {
            self.change(|change| {
                if key.among(change.runs(&key.id)?).is_some() {
                    return Ok(((), false));
                }
                let known = change.delivered(&key.id)?.into_iter().find(|(known, _)| *known == key);
                let over = known.is_some_and(|(_, delivered)| delivered.at_ms < before_ms);
                if over {
                    change.remove_delivered(&key)?;
                }
                Ok(((), over))
            })?;
        }
        Ok(())
    }
}
