//! What was sent of runs to an OTLP back end, for whoever sends: in the store,
//! and in memory as long as the store is in trouble.

use std::sync::PoisonError;
use std::time::Instant;

use jiff::Timestamp;

use super::{Memory, WORK_FOR};
use crate::store::{Delivered, Found, News, RunKey, Store, StoreError};

/// Runs of which something waits to be noted, at most: what of the others was
/// sent while the store is in trouble may be sent again after a restart.
const MOST_WAITING: usize = 10_000;

impl Memory {
    /// What was sent of a run. Blocks.
    pub(in crate::watch) fn sent_of(&self, key: &RunKey) -> Found {
        // Nothing is on its way from one place to the other meanwhile.
        let _order = self.sent_order.lock().unwrap_or_else(PoisonError::into_inner);
        let stored = self.store().and_then(|store| self.tell(store.delivered(key)));
        let certain = stored.is_some();
        let mut delivered: Delivered = stored.flatten().unwrap_or_default();
        let inner = self.inner();
        let waiting = inner.sent.iter().find(|(known, _)| known.is_same_run(key));
        if let Some((_, news)) = waiting {
            delivered.add(news);
        }
        Found { delivered, certain }
    }

    /// Notes what was sent of a run. Blocks.
    pub(in crate::watch) fn add_sent(&self, key: &RunKey, news: News) {
        {
            let _order = self.sent_order.lock().unwrap_or_else(PoisonError::into_inner);
            let mut inner = self.inner();
            let known = inner.sent.keys().find(|known| known.is_same_run(key)).cloned();
            if known.is_some() || inner.sent.len() < MOST_WAITING {
                inner.sent.entry(known.unwrap_or_else(|| key.clone())).or_default().append(news);
            }
        }
        if let Some(store) = self.store() {
            self.tell(self.write_sent(&store, Instant::now()));
        }
    }

    /// Writes what waits to be noted, for a while.
    pub(super) fn write_sent(&self, store: &Store, begun: Instant) -> Result<(), StoreError> {
        let _order = self.sent_order.lock().unwrap_or_else(PoisonError::into_inner);
        while begun.elapsed() < WORK_FOR {
            let next = {
                let inner = self.inner();
                inner.sent.first_key_value().map(|(key, news)| (key.clone(), news.clone()))
            };
            let Some((key, news)) = next else { break };
            store.add_delivered(&key, &news, Timestamp::now())?;
            self.inner().sent.remove(&key);
        }
        Ok(())
    }
}
