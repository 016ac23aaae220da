//! Which runs are this daemon's, where several divide them by name.
//!
//! Sources ask as soon as they know a name, so that the others' runs cost
//! next to nothing; [`Watcher::take_in`](super::Watcher) asks once more, and
//! has the last word. What never gets a name far enough to be asked about (a
//! log that cannot be read, one left unread for its age) is told of by one
//! shard as well: whose `_unnamed` is.

use std::cell::Cell;

use super::Watcher;
use crate::config::UNNAMED;
use crate::eventlog::ReadError;
use crate::metrics::app_name;

/// Whose a run is, as far as its source told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Owner {
    Ours,
    /// Nobody looked yet: each shard tells of it until it has.
    Unseen,
    /// It has no name, or not yet.
    #[default]
    Unknown,
    Another,
}

impl Owner {
    /// Of a run that could not be read: what only this daemon could not reach,
    /// it tells of itself.
    pub(super) fn of_error(self, error: &ReadError) -> Self {
        if self == Self::Unknown && error.is_of_place() { Self::Unseen } else { self }
    }
}

impl Watcher {
    /// Whether runs of applications with this name, as Spark tells it, are
    /// read here.
    pub(super) fn is_ours(&self, cluster: &str, name: &str) -> bool {
        let config = self.config();
        let sharding = config.sharding;
        !sharding.is_divided()
            || sharding.owns(cluster, &app_name(name, &config.names, &config.limits))
    }

    /// As [`Watcher::is_ours`], noted in `owner`.
    pub(super) fn ask_owner(&self, cluster: &str, name: &str, owner: &Cell<Owner>) -> bool {
        let ours = self.is_ours(cluster, name);
        owner.set(if ours { Owner::Ours } else { Owner::Another });
        ours
    }

    /// Whether this daemon is the one that tells of such a run where it is not
    /// covered.
    pub(super) fn tells(&self, cluster: &str, owner: Owner) -> bool {
        match owner {
            Owner::Ours | Owner::Unseen => true,
            Owner::Unknown => self.config().sharding.owns(cluster, UNNAMED),
            Owner::Another => false,
        }
    }
}
