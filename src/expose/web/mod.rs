//! Who may read the web end and how it speaks: the file of
//! `--web.config.file`, as it is now.
//!
//! File, certificates and authorities are looked at every few seconds. What
//! changed is made anew beside what is in force and takes its place whole:
//! connections that are open stay, the next request is judged by the new
//! users, the next connection gets the new certificate. What cannot be used
//! changes nothing, and is said.

mod client_certificate;
mod guard;
mod logins;
mod rate;
mod tls;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use http::{HeaderName, HeaderValue};
use jiff::Timestamp;
use rustls::ServerConfig;
use tokio_util::sync::CancellationToken;

pub(super) use self::guard::{admit, headers};
use self::logins::Logins;
use self::rate::Bucket;
use crate::config::WebFile;
use crate::telemetry::Telemetry;
use crate::telemetry::events::{WebConfigLoaded, WebConfigRefused};

/// Between two looks at the files.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// The largest file that is read: bundles of all public authorities have a
/// quarter of a megabyte.
const MOST_BYTES: u64 = 4 << 20;

/// What the web end goes by. Share it in an `Arc`.
pub struct WebConfig {
    path: Option<PathBuf>,
    now: ArcSwap<Rules>,
    /// What the files held when they were last looked at.
    seen: Mutex<Vec<u8>>,
    logins: Logins,
    telemetry: Arc<Telemetry>,
}

/// What one reading of the files came to.
#[derive(Default)]
struct Rules {
    file: WebFile,
    tls: Option<Arc<ServerConfig>>,
    headers: Vec<(HeaderName, HeaderValue)>,
    users: logins::Users,
    bucket: Option<Arc<Bucket>>,
}

impl WebConfig {
    /// Plain HTTP, for everybody.
    pub fn open(telemetry: Arc<Telemetry>) -> Self {
        Self {
            path: None,
            now: ArcSwap::from_pointee(Rules::default()),
            seen: Mutex::default(),
            logins: Logins::default(),
            telemetry,
        }
    }

    /// As the file says. Blocks.
    ///
    /// # Errors
    /// In words for a person, without a secret, where the file or what it
    /// names cannot be used.
    pub fn load(path: &Path, telemetry: Arc<Telemetry>) -> Result<Self, String> {
        let (rules, seen) = Rules::read(path, None);
        let rules = rules?;
        WebConfigLoaded { at: Timestamp::now(), tls: rules.tls.is_some(), first: true }
            .emit(&telemetry);
        Ok(Self {
            path: Some(path.to_owned()),
            now: ArcSwap::from_pointee(rules),
            seen: Mutex::new(seen),
            ..Self::open(telemetry)
        })
    }

    /// Looks whether anything changed, and takes it in. Blocks. `force`: also
    /// says again what could not be used before.
    ///
    /// # Errors
    /// Where it cannot be used: what was in force stays so.
    pub fn look(&self, force: bool) -> Result<bool, String> {
        let Some(path) = &self.path else { return Ok(false) };
        // Nobody else looks meanwhile.
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.now.load_full();
        let (rules, now) = Rules::read(path, Some(&before));
        let changed = *seen != now;
        *seen = now;
        if !changed && !force {
            return Ok(false);
        }
        match rules.and_then(|rules| rules.closes_nothing_less_than(&before)) {
            Ok(rules) => {
                let tls = rules.tls.is_some();
                // In force before it is said to be.
                if changed {
                    self.now.store(Arc::new(rules));
                }
                WebConfigLoaded { at: Timestamp::now(), tls, first: false }.emit(&self.telemetry);
                Ok(changed)
            }
            Err(message) => {
                WebConfigRefused { message: message.clone() }.emit(&self.telemetry);
                Err(message)
            }
        }
    }

    /// Looks again and again until `stop`.
    pub async fn watch(self: Arc<Self>, stop: CancellationToken) {
        if self.path.is_none() {
            return;
        }
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            let web = Arc::clone(&self);
            // What is wrong is said by its event.
            let _ = tokio::task::spawn_blocking(move || web.look(false)).await;
        }
    }

    /// For a connection that begins now.
    pub(super) fn tls(&self) -> Option<Arc<ServerConfig>> {
        self.now.load().tls.clone()
    }

    /// Passwords that were hashed so far.
    pub fn hashed(&self) -> u64 {
        self.logins.hashed()
    }
}

impl fmt::Debug for WebConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebConfig").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Rules {
    /// What the files say now, and a fingerprint of what was read: equal ones
    /// need not be looked into again. The bucket of `before` goes on where
    /// its limit is the same.
    fn read(path: &Path, before: Option<&Self>) -> (Result<Self, String>, Vec<u8>) {
        let mut read = tls::Read::default();
        let rules = Self::read_with(path, before, &mut read);
        (rules, read.fingerprint())
    }

    fn read_with(path: &Path, before: Option<&Self>, read: &mut tls::Read) -> Result<Self, String> {
        let what = || format!("the web configuration file {}", path.display());
        let bytes = read.file(path).map_err(|why| format!("{}: {why}", what()))?;
        let text = String::from_utf8(bytes).map_err(|_| format!("{}: it is no text", what()))?;
        let file = WebFile::from_text(&text, path).map_err(|error| error.to_string())?;
        let tls = match file.tls() {
            None => None,
            Some(tls) => {
                let made = tls::server(tls, file.http2(), read);
                Some(Arc::new(made.map_err(|why| format!("{}: {why}", what()))?))
            }
        };
        let header = |(name, value): (&str, &str)| {
            Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?))
        };
        let bucket = file.rate_limit().map(|(interval, burst)| {
            before
                .filter(|before| before.file.rate_limit == file.rate_limit)
                .and_then(|before| before.bucket.clone())
                .unwrap_or_else(|| Arc::new(Bucket::new(interval, burst)))
        });
        Ok(Self {
            tls,
            // They were checked with the file.
            headers: file.headers().filter_map(header).collect(),
            users: logins::Users::of(&file),
            bucket,
            file,
        })
    }

    /// A file that is being written, or was cut short, must not open a port
    /// that was closed: for that somebody has to start the daemon anew.
    fn closes_nothing_less_than(self, before: &Self) -> Result<Self, String> {
        let less = match (
            before.tls.is_some() && self.tls.is_none(),
            !before.users.is_empty() && self.users.is_empty(),
        ) {
            (true, true) => "TLS and all users",
            (true, false) => "TLS",
            (false, true) => "all users",
            (false, false) => return Ok(self),
        };
        Err(format!(
            "the web configuration file no longer has {less}: the port is not opened to more \
             people while the daemon runs; restart it if that is meant"
        ))
    }
}
