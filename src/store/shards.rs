//! Which names were this store's at what time, where several daemons divide
//! them and each has a store of its own.
//!
//! After another number of shards, runs of names that came here turn up that
//! the shard they come from has counted already: they are history here,
//! compared with and not counted, as if the store had been made when they
//! came. So a resize is no burst of failures. A store that all daemons share
//! needs none of this: it knows what was counted.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::backend::Change;
use super::{NameKey, Store, StoreError};
use crate::config::{Shard, Sharding};

/// So many resizes are remembered; before them the store is taken to have had
/// what it had at the first of these.
const MOST: usize = 32;

/// The part that the store's daemon covered from a time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardSince {
    pub shard: u32,
    pub total_shards: u32,
    /// Milliseconds since the epoch.
    pub since_ms: i64,
}

impl ShardSince {
    fn sharding(self) -> Sharding {
        Sharding { shard: Shard(self.shard), total_shards: self.total_shards }
    }
}

impl Store {
    /// The store of the daemon that covers this part, from now on.
    pub fn of_shard(mut self, sharding: Sharding, now: Timestamp) -> Result<Self, StoreError> {
        let is_new = {
            let size = self.backend.size()?;
            size.runs == 0 && size.names == 0
        };
        let (parts, before) = self.change(|change| note(change, sharding, is_new, now))?;
        self.parts = parts;
        self.resized_from = before.map(ShardSince::sharding);
        self.sharding = sharding;
        Ok(self)
    }

    /// What its daemon covered before, where that was another part.
    pub fn resized_from(&self) -> Option<Sharding> {
        self.resized_from
    }

    /// Whether a run of the name that ended then was this store's to count.
    pub(super) fn was_ours(&self, name: &NameKey, end_ms: i64) -> bool {
        let then = self.parts.iter().rev().find(|part| part.since_ms <= end_ms);
        then.or(self.parts.first())
            .is_none_or(|part| part.sharding().owns(&name.cluster, &name.app_name))
    }
}

type Noted = ((Vec<ShardSince>, Option<ShardSince>), bool);

fn note(
    change: &mut dyn Change,
    sharding: Sharding,
    is_new: bool,
    now: Timestamp,
) -> Result<Noted, StoreError> {
    let Some(mut parts) = change.shards()? else { return Ok(((Vec::new(), None), false)) };
    let part = |sharding: Sharding, since_ms| ShardSince {
        shard: sharding.shard.0,
        total_shards: sharding.total_shards,
        since_ms,
    };
    if parts.is_empty() || is_new {
        // What it holds is of a daemon that knew of no shards.
        let first = if is_new { sharding } else { Sharding::default() };
        parts = vec![part(first, i64::MIN)];
    }
    let last = parts.last().copied().filter(|last| last.sharding() != sharding);
    if last.is_some() {
        parts.push(part(sharding, now.as_millisecond()));
        parts.drain(..parts.len().saturating_sub(MOST));
    }
    let changed = change.shards()?.as_ref() != Some(&parts);
    if changed {
        change.put_shards(&parts)?;
    }
    Ok(((parts, last), changed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Kind, RunId, Source, State};
    use crate::store::embedded::Embedded;
    use crate::store::{Keep, Recorded, RunKey, StoredRun};
    use std::time::Duration;

    const CLUSTER: &str = "c";

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_790_000_000 + second).expect("a time")
    }

    fn of(shard: u32, total_shards: u32) -> Sharding {
        Sharding { shard: Shard(shard), total_shards }
    }

    fn opened(path: &std::path::Path, sharding: Sharding, now: Timestamp) -> Store {
        let keep = Keep { time: Duration::from_hours(24 * 30), size: None, names: 1_000 };
        let store = Store::new(Box::new(Embedded::open(path, now).expect("opened")), keep);
        store.of_shard(sharding, now).expect("noted")
    }

    fn record(store: &Store, app_name: &str, end: i64) -> Recorded {
        use crate::diagnose::Diagnosis;
        use crate::model::Application;
        let app_id = format!("{app_name}-{end}");
        let id = RunId { cluster: CLUSTER.into(), app_id, attempt_id: None };
        let mut application = Application::new(id, Source::EventLog, at(end));
        application.kind = Kind::Batch;
        application.start = Some(at(end - 5));
        application.end = Some(at(end));
        application.state = State::Failed;
        let run = StoredRun::of(&application, &Diagnosis::default(), app_name, None, None);
        store.record(&RunKey::of(&application), &run, at(end), at(end + 1)).expect("recorded")
    }

    /// A name that this part has, and one that another has.
    fn names(sharding: Sharding) -> (String, String) {
        let name = |ours| {
            let mut all = (0..).map(|number| format!("job {number}"));
            all.find(|name| sharding.owns(CLUSTER, name) == ours).expect("one of many")
        };
        (name(true), name(false))
    }

    #[test]
    fn what_another_shard_counted_is_history_here() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store.redb");
        let (ours, others) = names(of(0, 2));
        let store = opened(&path, of(0, 2), at(0));
        assert_eq!(store.resized_from(), None, "it is new");
        assert_eq!(record(&store, &ours, 10), Recorded::Counted);
        drop(store);
        // Down to one: all names come here, with their logs of the last days.
        let store = opened(&path, of(0, 1), at(100));
        assert_eq!(store.resized_from(), Some(of(0, 2)));
        assert_eq!(record(&store, &ours, 20), Recorded::Counted, "it was ours all along");
        assert_eq!(record(&store, &others, 20), Recorded::Kept, "shard 1 counted it");
        assert_eq!(record(&store, &others, 120), Recorded::Counted);
        drop(store);
        let store = opened(&path, of(0, 1), at(200));
        assert_eq!(store.resized_from(), None);
        assert_eq!(record(&store, &others, 30), Recorded::Kept, "still");
        assert_eq!(record(&store, &others, 130), Recorded::Counted);
        store.backend().check().expect("whole");
    }

    #[test]
    fn a_store_of_before_there_were_shards_had_everything() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store.redb");
        let keep = Keep { time: Duration::from_hours(24 * 30), size: None, names: 1_000 };
        let old = Store::new(Box::new(Embedded::open(&path, at(0)).expect("opened")), keep);
        assert_eq!(record(&old, "any", 10), Recorded::Counted);
        drop(old);
        let (ours, _) = names(of(0, 2));
        let store = opened(&path, of(0, 2), at(100));
        assert_eq!(store.resized_from(), Some(of(0, 1)));
        assert_eq!(record(&store, &ours, 50), Recorded::Counted);
    }

    #[test]
    fn resizes_are_bounded() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store.redb");
        record(&opened(&path, of(0, 1), at(0)), "any", 10);
        for number in 0..2 * MOST {
            let total = 1 + number as u32 % 2;
            opened(&path, of(0, total), at(100 + number as i64));
        }
        let store = opened(&path, of(0, 1), at(1_000));
        assert_eq!(store.parts.len(), MOST);
    }
}
