//! What is to be done with each log of a listing: pure, and in time
//! proportional to their number, since there may be a hundred thousand.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, SystemTime};

use super::follow::{Fate, Followed};
use crate::eventlog::LogFiles;
use crate::store::LogSeen;

/// Listings in which a followed log may be missing: while it is renamed, an
/// object store may show neither name.
const MISSING: u64 = 3;

/// A log as it was when it was read: it is read again only if it changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reading {
    bytes: u64,
    /// Milliseconds since the epoch: what is stored is no finer.
    modified_ms: i64,
    /// Why nothing came of it.
    skipped: Option<&'static str>,
    /// Number of the listing that showed it last.
    seen: u64,
}

/// How to judge a log.
#[derive(Debug, Clone)]
pub(super) struct Policy {
    pub(super) now: SystemTime,
    pub(super) lookback: Option<Duration>,
    pub(super) stale_after: Duration,
    /// Whether size and time of a listing can be trusted.
    pub(super) tells_growth: bool,
}

impl Policy {
    /// Whether who writes a log that changed last at `changed` is not taken
    /// to be running any more.
    pub(super) fn is_stale(&self, changed: SystemTime) -> bool {
        self.age(changed) >= self.stale_after
    }

    fn age(&self, changed: SystemTime) -> Duration {
        self.now.duration_since(changed).unwrap_or_default()
    }
}

/// What is known of a place from the cycles before.
#[derive(Default)]
pub(super) struct Known {
    readings: HashMap<String, Reading>,
    pub(super) followed: HashMap<String, Followed>,
    /// Logs of applications that other shards cover, with the number of the
    /// listing that showed each last: a log's application stays the same.
    elsewhere: HashMap<String, u64>,
    /// Of listings.
    number: u64,
}

/// What a cycle is to do.
#[derive(Default)]
pub(super) struct Plan {
    /// Logs of running applications, and those of them that have ended:
    /// by [`key`], newest first.
    pub(super) follow: Vec<(String, LogFiles, Fate)>,
    /// To be read whole, newest first.
    pub(super) read: Vec<LogFiles>,
    pub(super) skipped: Skipped,
    /// How many are known to be other shards'.
    pub(super) elsewhere: u64,
    /// Followed logs that are not there any more.
    pub(super) left: Vec<Followed>,
}

/// Logs that nothing comes of.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Skipped {
    /// Too old to be looked at.
    pub(super) lookback: u64,
    /// By what came of reading them, earlier.
    pub(super) read: BTreeMap<&'static str, u64>,
}

/// Since the epoch.
pub(super) fn millis(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// What a log is called before and after its application ended.
pub(super) fn key(log: &LogFiles) -> String {
    log.finished_path().to_owned()
}

impl Known {
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn remember(&mut self, key: String, log: &LogFiles, skipped: Option<&'static str>) {
        let (bytes, modified_ms) = (log.bytes, millis(log.modified));
        self.readings.insert(key, Reading { bytes, modified_ms, skipped, seen: self.number });
    }

    /// It named an application that another shard covers.
    pub(super) fn leave_to_others(&mut self, key: String) {
        self.elsewhere.insert(key, self.number);
    }

    /// Forgets which logs were read, but for these.
    pub(super) fn restart(&mut self, read: Vec<LogSeen>) {
        let seen = self.number;
        let reading = |LogSeen { key, bytes, modified_ms, .. }| {
            (key, Reading { bytes, modified_ms, skipped: None, seen })
        };
        self.readings = read.into_iter().map(reading).collect();
    }

    /// The logs that are followed are looked at in the next cycle though they
    /// do not grow: thresholds, names or prices may be others.
    pub(super) fn judge_again(&mut self) {
        for followed in self.followed.values_mut() {
            followed.judge_again = true;
        }
    }

    pub(super) fn plan(&mut self, mut logs: Vec<LogFiles>, policy: &Policy) -> Plan {
        self.number += 1;
        logs.sort_by_key(|log| std::cmp::Reverse(log.modified));
        // While it is renamed, an object store may show both names.
        let closed: HashSet<String> = logs.iter().filter(|log| is_closed(log)).map(key).collect();
        let mut plan = Plan::default();
        for log in logs {
            let key = key(&log);
            if is_closed(&log) || !closed.contains(&key) {
                self.judge(key, log, policy, &mut plan);
            }
        }
        // What is no longer listed needs no memory.
        let number = self.number;
        self.readings.retain(|_, reading| reading.seen == number);
        self.elsewhere.retain(|_, seen| *seen == number);
        plan.left = self
            .followed
            .extract_if(|_, followed| followed.seen + MISSING <= number)
            .map(|(_, followed)| followed)
            .collect();
        plan
    }

    fn judge(&mut self, key: String, mut log: LogFiles, policy: &Policy, plan: &mut Plan) {
        if let Some(seen) = self.elsewhere.get_mut(&key) {
            *seen = self.number;
            plan.elsewhere += 1;
            return;
        }
        if let Some(followed) = self.followed.get_mut(&key) {
            followed.seen = self.number;
            let fate = match (is_closed(&log), followed.is_stale(&log, policy)) {
                (true, _) => Fate::Ended,
                (false, true) => Fate::Stale,
                (false, false) if policy.tells_growth && followed.is_of(&log) => return,
                (false, false) => Fate::Going,
            };
            plan.follow.push((key, log, fate));
            return;
        }
        if policy.lookback.is_some_and(|lookback| policy.age(log.modified) > lookback) {
            plan.skipped.lookback += 1;
            return;
        }
        if let Some(reading) = self.readings.get_mut(&key) {
            reading.seen = self.number;
            if reading.bytes == log.bytes && reading.modified_ms == millis(log.modified) {
                if let Some(reason) = reading.skipped {
                    *plan.skipped.read.entry(reason).or_default() += 1;
                }
                return;
            }
        }
        if is_closed(&log) {
            plan.read.push(log);
        } else if policy.tells_growth && policy.is_stale(log.modified) {
            // Nobody writes it any more: read once, as one without an end.
            log.in_progress = None;
            plan.read.push(log);
        } else {
            plan.follow.push((key, log, Fate::Going));
        }
    }

    /// Followed logs that did not change for too long while their place
    /// could not be listed.
    pub(super) fn leave_stale(&mut self, policy: &Policy) -> Vec<Followed> {
        let stale = |followed: &Followed| policy.is_stale(followed.changed);
        self.followed.extract_if(|_, followed| stale(followed)).map(|(_, left)| left).collect()
    }
}

/// Whether its name says that nobody writes it any more.
pub(super) fn is_closed(log: &LogFiles) -> bool {
    log.in_progress == Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600;

    fn at(second: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 + second)
    }

    fn policy(second: u64) -> Policy {
        Policy {
            now: at(second),
            lookback: None,
            stale_after: Duration::from_secs(HOUR),
            tells_growth: true,
        }
    }

    fn log(path: &str, modified: u64) -> LogFiles {
        LogFiles {
            path: path.to_owned(),
            name: path.to_owned(),
            files: Vec::new(),
            bytes: 10,
            modified: at(modified),
            in_progress: Some(path.ends_with(".inprogress")),
            compacted: false,
            missing_files: false,
        }
    }

    fn paths(logs: &[LogFiles]) -> Vec<&str> {
        logs.iter().map(|log| log.path.as_str()).collect()
    }

    #[test]
    fn newest_first_and_each_once_until_it_changes() {
        let mut known = Known::default();
        let listing = || vec![log("a", 1), log("c", 3), log("b", 2)];
        let plan = known.plan(listing(), &policy(10));
        assert_eq!(paths(&plan.read), ["c", "b", "a"]);
        for read in &plan.read {
            let skipped = (read.path == "b").then_some("unreadable");
            known.remember(key(read), read, skipped);
        }
        let plan = known.plan(listing(), &policy(20));
        assert!(plan.read.is_empty() && plan.follow.is_empty());
        assert_eq!(plan.skipped.read, BTreeMap::from([("unreadable", 1)]));
        let plan = known.plan(vec![log("a", 7), log("c", 3)], &policy(30));
        assert_eq!(paths(&plan.read), ["a"], "it changed");
        assert!(!known.readings.contains_key("b"), "what is gone is forgotten");
    }

    #[test]
    fn a_log_of_another_shard_is_left_alone_until_it_is_gone() {
        let mut known = Known::default();
        let listing = |modified| vec![log("a", modified), log("b.inprogress", modified)];
        let plan = known.plan(listing(1), &policy(10));
        assert_eq!((plan.read.len(), plan.follow.len(), plan.elsewhere), (1, 1, 0));
        known.leave_to_others("a".to_owned());
        known.leave_to_others("b".to_owned());
        // Whatever becomes of it, and under both its names.
        for (modified, renamed) in [(20, false), (30, true)] {
            let mut listing = listing(modified);
            if renamed {
                listing[1] = log("b", modified);
            }
            let plan = known.plan(listing, &policy(40));
            assert_eq!((plan.read.len(), plan.follow.len(), plan.elsewhere), (0, 0, 2));
        }
        known.plan(Vec::new(), &policy(50));
        assert!(known.elsewhere.is_empty(), "what is gone is forgotten");
        assert_eq!(known.plan(listing(1), &policy(60)).read.len(), 1);
    }

    #[test]
    fn old_logs_are_left_out_where_a_look_back_is_set() {
        let mut known = Known::default();
        let policy = Policy { lookback: Some(Duration::from_secs(5)), ..policy(10) };
        let plan = known.plan(vec![log("old", 1), log("new", 9)], &policy);
        assert_eq!(paths(&plan.read), ["new"]);
        assert_eq!(plan.skipped, Skipped { lookback: 1, ..Skipped::default() });
    }

    #[test]
    fn running_logs_are_followed_and_stale_ones_read_once() {
        let mut known = Known::default();
        let fresh = log("a.inprogress", 2 * HOUR);
        let mut marker = log("rolling", 2 * HOUR);
        marker.in_progress = None;
        let stale = log("b.inprogress", 1);
        let plan = known.plan(vec![fresh, marker, stale], &policy(2 * HOUR + 5));
        let followed: Vec<&str> = plan.follow.iter().map(|(key, ..)| key.as_str()).collect();
        assert_eq!(followed, ["a", "rolling"]);
        assert_eq!(paths(&plan.read), ["b.inprogress"]);
        assert_eq!(plan.read[0].in_progress, None, "read as one that nobody writes any more");
        known.remember("b".to_owned(), &plan.read[0], None);
        let plan = known.plan(vec![log("b.inprogress", 1)], &policy(2 * HOUR + 35));
        assert!(plan.read.is_empty() && plan.follow.is_empty());
        // Somebody writes it again.
        let plan = known.plan(vec![log("b.inprogress", 2 * HOUR + 60)], &policy(2 * HOUR + 65));
        assert_eq!(plan.follow.len(), 1);
    }

    #[test]
    fn where_listings_are_late_an_old_log_is_looked_at() {
        let mut known = Known::default();
        let policy = Policy { tells_growth: false, ..policy(9 * HOUR) };
        let plan = known.plan(vec![log("a.inprogress", 1)], &policy);
        assert_eq!(plan.follow.len(), 1);
    }

    #[test]
    fn one_log_under_two_names_is_the_finished_one() {
        let mut known = Known::default();
        let plan = known.plan(vec![log("a.inprogress", 9), log("a", 8)], &policy(10));
        assert_eq!(paths(&plan.read), ["a"]);
        assert!(plan.follow.is_empty());
    }

    #[test]
    fn a_hundred_thousand_logs_are_planned_at_once() {
        let mut known = Known::default();
        let listing: Vec<LogFiles> = (0..100_000).map(|n| log(&format!("app-{n}"), n)).collect();
        for read in known.plan(listing.clone(), &policy(100_000)).read {
            known.remember(key(&read), &read, None);
        }
        let begun = std::time::Instant::now();
        let plan = known.plan(listing, &policy(100_030));
        assert!(plan.read.is_empty());
        // Each against each would take minutes.
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    }
}
