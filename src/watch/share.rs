//! Which runs are this daemon's, where several divide them by name.
//!
//! Sources ask as soon as they know a name, so that the others' runs cost
//! next to nothing; [`Watcher::take_in`](super::Watcher) asks once more, and
//! has the last word. What never gets a name far enough to be asked about (a
//! log that cannot be read, one left unread for its age) is told of by one
//! shard as well: whose `_unnamed` is.

use std::cell::Cell;

use super::Watcher;
use crate::config::{Config, UNNAMED};
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

/// Keeps whose each run is, in a configuration that is to follow `before`
/// while runs are held: shards that change one after the other would for a
/// while show runs twice, or not at all. Returns the keys of what was kept.
pub(super) fn keep_owners(before: &Config, config: &mut Config) -> Vec<&'static str> {
    let mut kept = Vec::new();
    let mut keep = |key, differs: bool| {
        if differs {
            kept.push(key);
        }
    };
    keep("sharding", before.sharding != config.sharding);
    config.sharding = before.sharding;
    if before.sharding.is_divided() {
        let (names, limits) = (&mut config.names, &mut config.limits);
        keep("names.rules", before.names.rules != names.rules);
        names.rules.clone_from(&before.names.rules);
        keep("names.default_rules", before.names.default_rules != names.default_rules);
        names.default_rules = before.names.default_rules;
        keep("limits.label_length", before.limits.label_length != limits.label_length);
        limits.label_length = before.limits.label_length;
    }
    kept
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reload_gives_no_name_another_owner() {
        let parsed = |yaml: &str| Config::parse(yaml).expect("valid");
        let rules = "names: {rules: [{pattern: 'a.*', replacement: b}]}\nretention: 1h\n";
        let divided = parsed("sharding: {shard: 1, total_shards: 3}");
        let mut config = parsed(rules);
        assert_eq!(keep_owners(&divided, &mut config), ["sharding", "names.rules"]);
        assert_eq!((config.sharding, &config.names), (divided.sharding, &divided.names));
        assert_eq!(config.retention, parsed(rules).retention, "what else it says is taken");
        let mut config = parsed(
            "sharding: {shard: 1, total_shards: 3}\nnames: {default_rules: false}\n\
             limits: {label_length: 20}",
        );
        let kept = ["names.default_rules", "limits.label_length"];
        assert_eq!(keep_owners(&divided, &mut config), kept);
        assert_eq!(config.names, divided.names);
        assert_eq!(config.limits.label_length, divided.limits.label_length);
        // Where nothing is divided, names may change.
        let mut config = parsed(rules);
        assert!(keep_owners(&Config::default(), &mut config).is_empty());
        assert_eq!(config.names, parsed(rules).names);
        let mut config = divided.clone();
        assert_eq!(keep_owners(&Config::default(), &mut config), ["sharding"]);
        assert!(!config.sharding.is_divided());
    }
}
