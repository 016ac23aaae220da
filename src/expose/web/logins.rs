//! Names and passwords. A bcrypt hash costs tens of milliseconds of a whole
//! core on purpose: one is made at a time, off the threads that serve, and
//! what came of it is kept under a keyed digest of name, hash and password.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use aws_lc_rs::hmac;
use tokio::sync::Semaphore;

use crate::config::{Secret, WebFile};

/// Wrong logins that are remembered: a scraper with an old password costs one
/// hash, not one a scrape.
const MOST_WRONG: usize = 1_000;
/// Logins that wait for their hash, at most.
const MOST_WAITING: usize = 32;

/// Who may come in.
#[derive(Default)]
pub(super) struct Users {
    hashes: BTreeMap<String, Secret>,
    /// Stands in for the hash of a name that is not there: to tell takes as
    /// long as for one that is. Nothing hashes to it.
    nobody: String,
}

impl Users {
    pub(super) fn of(file: &WebFile) -> Self {
        let hashes: BTreeMap<String, Secret> =
            file.users().map(|(name, hash)| (name.to_owned(), hash.clone())).collect();
        // The costs of all users are usually one.
        let cost = |hash: &Secret| hash.expose().get(4..6).map(str::to_owned);
        let cost = hashes.values().filter_map(cost).max().unwrap_or_else(|| "10".to_owned());
        let nobody = format!("$2b${cost}$abcdefghijklmnopqrstuu{}", "a".repeat(31));
        Self { hashes, nobody }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }
}

/// Of one look at a name and password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Login {
    Right,
    Wrong,
    /// Too many wait already.
    Busy,
}

type Digest = [u8; 32];

/// What came of the logins so far.
pub(super) struct Logins {
    key: hmac::Key,
    /// By name: a hash has one password. As many as there are users.
    right: Mutex<BTreeMap<String, Digest>>,
    wrong: Mutex<HashSet<Digest>>,
    one_at_a_time: Semaphore,
    waiting: Semaphore,
    hashed: AtomicU64,
}

impl Default for Logins {
    fn default() -> Self {
        let mut secret = [0; 32];
        // It does not fail; were it to, digests would have a known key, and
        // leave this process as little as before.
        let _ = aws_lc_rs::rand::fill(&mut secret);
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, &secret),
            right: Mutex::default(),
            wrong: Mutex::default(),
            one_at_a_time: Semaphore::new(1),
            waiting: Semaphore::new(MOST_WAITING),
            hashed: AtomicU64::new(0),
        }
    }
}

impl fmt::Debug for Logins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logins").field("hashed", &self.hashed).finish_non_exhaustive()
    }
}

impl Logins {
    pub(super) fn hashed(&self) -> u64 {
        self.hashed.load(Ordering::Relaxed)
    }

    pub(super) async fn check(&self, users: &Users, name: &str, password: &[u8]) -> Login {
        let known = users.hashes.get(name).map(Secret::expose);
        let hash = known.unwrap_or(&users.nobody);
        let digest = self.digest(&[name.as_bytes(), hash.as_bytes(), password]);
        if let Some(login) = self.remembered(name, &digest) {
            return login;
        }
        let Ok(_waiting) = self.waiting.try_acquire() else { return Login::Busy };
        let Ok(_turn) = self.one_at_a_time.acquire().await else { return Login::Busy };
        // The same login may have been in front of us.
        if let Some(login) = self.remembered(name, &digest) {
            return login;
        }
        self.hashed.fetch_add(1, Ordering::Relaxed);
        let (hash, password) = (hash.to_owned(), password.to_vec());
        let verify = move || bcrypt::verify(&password, &hash).unwrap_or(false);
        let right = tokio::task::spawn_blocking(verify).await.unwrap_or(false) && known.is_some();
        if right {
            let mut remembered = locked(&self.right);
            remembered.retain(|name, _| users.hashes.contains_key(name));
            remembered.insert(name.to_owned(), digest);
            Login::Right
        } else {
            let mut remembered = locked(&self.wrong);
            if remembered.len() >= MOST_WRONG {
                remembered.clear();
            }
            remembered.insert(digest);
            Login::Wrong
        }
    }

    fn remembered(&self, name: &str, digest: &Digest) -> Option<Login> {
        if locked(&self.right).get(name) == Some(digest) {
            return Some(Login::Right);
        }
        locked(&self.wrong).contains(digest).then_some(Login::Wrong)
    }

    /// Each part with its length, so that no two logins look alike.
    fn digest(&self, parts: &[&[u8]]) -> Digest {
        let mut context = hmac::Context::with_key(&self.key);
        for part in parts {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
        let mut digest = [0; 32];
        digest.copy_from_slice(context.sign().as_ref());
        digest
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change is one insertion.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users(all: &[(&str, &str)]) -> Users {
        let lines = all.iter().map(|(name, password)| {
            format!("  {name}: {}\n", bcrypt::hash(password, 4).expect("hashed"))
        });
        let text = format!("basic_auth_users:\n{}", lines.collect::<String>());
        Users::of(&WebFile::parse(&text).expect("a file"))
    }

    #[tokio::test]
    async fn each_login_is_hashed_once_and_a_name_that_is_not_there_like_one_that_is() {
        let users = users(&[("alice", "one"), ("bob", "two")]);
        let logins = Logins::default();
        for (name, password, login, hashed) in [
            ("alice", "one", Login::Right, 1),
            ("alice", "one", Login::Right, 1),
            ("alice", "two", Login::Wrong, 2),
            ("alice", "two", Login::Wrong, 2),
            ("bob", "two", Login::Right, 3),
            ("mallory", "one", Login::Wrong, 4),
            ("mallory", "one", Login::Wrong, 4),
            ("", "", Login::Wrong, 5),
            ("alice", "one", Login::Right, 5),
        ] {
            let found = logins.check(&users, name, password.as_bytes()).await;
            assert_eq!((found, logins.hashed()), (login, hashed), "{name} {password}");
        }
    }

    /// A guess at the stand-in's password lets nobody in.
    #[test]
    fn nobody_is_a_hash_of_the_same_cost() {
        let users = users(&[("alice", "one")]);
        let parts: bcrypt::HashParts = users.nobody.parse().expect("a hash");
        assert_eq!(parts.get_cost(), 4);
        assert!(!bcrypt::verify("one", &users.nobody).expect("it can be tried"));
    }

    #[tokio::test]
    async fn a_changed_password_is_not_remembered() {
        let logins = Logins::default();
        assert_eq!(logins.check(&users(&[("a", "old")]), "a", b"old").await, Login::Right);
        let new = users(&[("a", "new")]);
        assert_eq!(logins.check(&new, "a", b"old").await, Login::Wrong);
        assert_eq!(logins.check(&new, "a", b"new").await, Login::Right);
    }

    #[tokio::test]
    async fn wrong_logins_have_a_bound_and_do_not_push_right_ones_out() {
        let users = users(&[("alice", "one")]);
        let logins = Logins::default();
        assert_eq!(logins.check(&users, "alice", b"one").await, Login::Right);
        for number in 0..MOST_WRONG {
            locked(&logins.wrong).insert(logins.digest(&[&number.to_be_bytes()]));
        }
        assert_eq!(logins.check(&users, "alice", b"guess").await, Login::Wrong);
        assert_eq!(locked(&logins.wrong).len(), 1);
        let hashed = logins.hashed();
        assert_eq!(logins.check(&users, "alice", b"one").await, Login::Right);
        assert_eq!(logins.hashed(), hashed);
    }

    #[tokio::test]
    async fn who_would_wait_too_long_is_told_so() {
        let users = users(&[("alice", "one")]);
        let logins = Logins::default();
        let _all = logins.waiting.acquire_many(MOST_WAITING as u32).await.expect("open");
        assert_eq!(logins.check(&users, "alice", b"one").await, Login::Busy);
    }
}
