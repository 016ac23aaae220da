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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use super::super::Live;
    use super::*;
    use crate::config::Config;
    use crate::model::RunId;
    use crate::store::Keep;
    use crate::store::embedded::Embedded;
    use crate::telemetry::Telemetry;

    const KEEP: Keep = Keep { time: Duration::from_hours(24), size: None, names: 10 };

    /// A memory whose store is in `folder`, and in trouble while `down`.
    fn remembering(folder: &std::path::Path, down: &Arc<AtomicBool>) -> Memory {
        let (path, down) = (folder.join("store.db"), Arc::clone(down));
        let open = move || {
            if down.load(Ordering::SeqCst) {
                let (what, why) = ("the store".to_owned(), "it is away".to_owned());
                return Err(StoreError::Unavailable { what, why });
            }
            let file = Embedded::open(&path, Timestamp::UNIX_EPOCH)?;
            Ok(Store::new(Box::new(file), KEEP))
        };
        Memory::new(Live::new(Config::default()), Arc::new(Telemetry::default()), open)
    }

    fn key(app_id: &str) -> RunKey {
        let id = RunId { cluster: "c".into(), app_id: app_id.into(), attempt_id: None };
        RunKey { id, start_ms: 5_000 }
    }

    fn jobs(ids: &[u64]) -> News {
        let mut news = News::default();
        for id in ids {
            news.spans.jobs.insert(*id);
        }
        news
    }

    #[test]
    fn while_the_store_is_in_trouble_it_is_kept_and_then_written() {
        let folder = tempfile::tempdir().unwrap();
        let down = Arc::new(AtomicBool::new(false));
        let memory = remembering(folder.path(), &down);
        memory.add_sent(&key("a"), jobs(&[0]));
        let found = memory.sent_of(&key("a"));
        assert!(found.certain && found.delivered.spans.jobs.contains(0));
        // It goes away.
        down.store(true, Ordering::SeqCst);
        memory.inner().store = None;
        memory.add_sent(&key("a"), jobs(&[1]));
        let mut other = key("a");
        other.start_ms += 300;
        memory.add_sent(&other, jobs(&[2]));
        memory.add_sent(&key("b"), jobs(&[7]));
        let found = memory.sent_of(&key("a"));
        assert!(!found.certain, "there may be more");
        assert_eq!(found.delivered.spans.jobs.len(), 2);
        assert_eq!(memory.inner().sent.len(), 2);
        // And comes back.
        down.store(false, Ordering::SeqCst);
        memory.inner().retry_at = None;
        let found = memory.sent_of(&key("a"));
        assert!(found.certain);
        assert_eq!(found.delivered.spans.jobs.len(), 3);
        memory.add_sent(&key("c"), jobs(&[9]));
        assert!(memory.inner().sent.is_empty(), "all of it is written");
        drop(memory);
        // The next daemon knows.
        let memory = remembering(folder.path(), &down);
        for (app_id, count) in [("a", 3), ("b", 1), ("c", 1), ("d", 0)] {
            let found = memory.sent_of(&key(app_id));
            assert!(found.certain);
            assert_eq!(found.delivered.spans.jobs.len(), count, "{app_id}");
        }
    }

    #[test]
    fn what_waits_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let down = Arc::new(AtomicBool::new(true));
        let memory = remembering(folder.path(), &down);
        memory.inner().sent =
            (0..MOST_WAITING).map(|number| (key(&number.to_string()), jobs(&[1]))).collect();
        memory.add_sent(&key("one more"), jobs(&[1]));
        memory.add_sent(&key("17"), jobs(&[2]));
        assert_eq!(memory.inner().sent.len(), MOST_WAITING);
        assert_eq!(memory.sent_of(&key("17")).delivered.spans.jobs.len(), 2);
    }
}
