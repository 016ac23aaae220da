//! One kind of object in one namespace, listed and then watched, for ever.
//!
//! After any failure it begins anew with a list: what went meanwhile is then
//! missing there and told gone, whatever the reason: a connection that broke,
//! a server that started again, a version that it has forgotten (410).

use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use kube::api::{ApiResource, ObjectMeta};
use kube::core::DynamicResourceScope;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::Sender;
use tokio::time::{Instant, timeout};

use super::failure::{Failure, Reason};
use super::{Change, Told, WatchId};

/// Objects of one page of a list: 100 pods are some megabytes.
const PAGE: u32 = 100;
/// The server ends a watch after so many seconds, and it is taken up where it
/// ended.
const WATCH: u32 = 240;
/// For the next object of a list.
const LIST: Duration = Duration::from_mins(1);
/// A watch that failed is up again once it held for so long after its list:
/// who may list but not watch would be up and down with each try.
const HOLDS: Duration = Duration::from_secs(3);
/// Between the first tries, and between later ones at most.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_mins(1);
/// A watch that held so long begins with short waits again.
const STEADY: Duration = Duration::from_mins(1);
/// Objects of one watch; of more nothing is told.
const MOST_OBJECTS: usize = 50_000;

/// Where to look.
pub(super) struct Scope {
    pub(super) client: Client,
    pub(super) namespace: Option<Arc<str>>,
}

impl Scope {
    pub(super) fn api<K>(&self, resource: &ApiResource) -> Api<K>
    where
        K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>,
    {
        let client = self.client.clone();
        match &self.namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, resource),
            None => Api::all_with(client, resource),
        }
    }
}

/// Settings of a watch of the objects with these labels.
pub(super) fn selecting(labels: Option<String>) -> watcher::Config {
    let config = watcher::Config::default().page_size(PAGE).timeout(WATCH);
    watcher::Config { label_selector: labels, ..config }
}

/// Whether somebody still listens.
pub(super) type Heard = Result<(), Deaf>;

/// Nobody does: the watch ends.
#[derive(Debug)]
pub(super) struct Deaf;

/// What one watch knows, and whom it tells.
pub(super) struct Feed {
    watch: WatchId,
    sender: Sender<Told>,
    client: Client,
    /// By uid.
    known: HashMap<String, Change>,
    wait: Duration,
    failed: bool,
    /// Whether it was told that there are too many.
    full: bool,
}

impl Feed {
    pub(super) fn new(watch: WatchId, sender: Sender<Told>, client: Client) -> Self {
        let known = HashMap::new();
        Self { watch, sender, client, known, wait: FIRST_WAIT, failed: false, full: false }
    }

    pub(super) async fn tell(&self, change: Change) -> Heard {
        let told = Told { watch: self.watch.clone(), objects: self.known.len(), change };
        self.sender.send(told).await.map_err(|_| Deaf)
    }

    /// An object as it is now; `None`: it is none of ours (any more).
    async fn apply(&mut self, uid: &str, change: Option<Change>) -> Heard {
        let Some(change) = change else {
            // It is there, and was ours.
            let Some(known) = self.known.remove(uid) else { return Ok(()) };
            return self.tell(unselected(known)).await;
        };
        if self.known.get(uid) == Some(&change) {
            return Ok(());
        }
        if !self.known.contains_key(uid) && self.known.len() >= MOST_OBJECTS {
            if !std::mem::replace(&mut self.full, true) {
                let message = format!("more than {MOST_OBJECTS} objects: the rest is left out");
                self.tell(Change::Failed(Failure::of(Reason::TooMany, message))).await?;
            }
            return Ok(());
        }
        self.known.insert(uid.to_owned(), change.clone());
        self.tell(change).await
    }

    /// An object that went; `last` is how it was then, where that is known.
    async fn gone(&mut self, uid: &str, last: Option<Change>) -> Heard {
        let Some(known) = self.known.remove(uid) else { return Ok(()) };
        self.full = false;
        let last = last.unwrap_or(known);
        if self.is_still_there(&last).await {
            return self.tell(unselected(last)).await;
        }
        self.tell(last.gone()).await
    }

    /// Whether a driver's pod that left a watch is but none of those selected
    /// any more: who takes a label away deletes nothing. Asked only where
    /// nothing else tells; without an answer it is gone.
    async fn is_still_there(&self, change: &Change) -> bool {
        let Change::Driver(driver) = change else { return false };
        let pod = &driver.pod.pod;
        if pod.deletion.is_some() || pod.end.is_some() || pod.phase.is_over() {
            return false;
        }
        let path = format!("/api/v1/namespaces/{}/pods/{}", pod.name.namespace, pod.name.name);
        let Ok(ask) = http::Request::get(path).body(Vec::new()) else { return false };
        match timeout(LIST, self.client.request::<Named>(ask)).await {
            Ok(Ok(found)) => found.metadata.uid.as_ref() == Some(&pod.name.uid),
            _ => false,
        }
    }

    /// All that is not in a new list.
    async fn missing(&mut self, listed: &HashSet<String>) -> Heard {
        let gone: Vec<String> =
            self.known.keys().filter(|uid| !listed.contains(*uid)).cloned().collect();
        for uid in gone {
            self.gone(&uid, None).await?;
        }
        Ok(())
    }

    /// All of it, where the kind itself is gone.
    pub(super) async fn clear(&mut self) -> Heard {
        self.missing(&HashSet::new()).await
    }

    /// Tells why it broke and waits; longer each time.
    pub(super) async fn failed(&mut self, mut failure: Failure) -> Heard {
        // A version that the server forgot is no trouble of the server's.
        let again = if failure.reason == Reason::Expired { FIRST_WAIT } else { self.wait };
        failure.retry_in = again.mul_f64(0.8 + 0.4 * fastrand::f64());
        let wait = failure.retry_in;
        self.failed = true;
        self.wait = (self.wait * 2).min(LONGEST_WAIT);
        self.tell(Change::Failed(failure)).await?;
        tokio::time::sleep(wait).await;
        Ok(())
    }

    /// Lists and watches until that fails.
    pub(super) async fn follow<K>(
        &mut self,
        api: Api<K>,
        config: watcher::Config,
        read: &(impl Fn(K) -> Option<Change> + Send + Sync),
    ) -> Result<Failure, Deaf>
    where
        K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        let mut events = pin!(watcher(api, config));
        let mut listed: Option<HashSet<String>> = None;
        let mut since = Instant::now();
        loop {
            let patience = match (&listed, self.failed) {
                (Some(_), _) => LIST,
                (None, true) => HOLDS.saturating_sub(since.elapsed()),
                // The library and the client bound it.
                (None, false) => Duration::MAX,
            };
            let event = match timeout(patience, events.next()).await {
                Ok(Some(Ok(event))) => event,
                Ok(Some(Err(error))) => {
                    if listed.is_none() && since.elapsed() >= STEADY {
                        self.wait = FIRST_WAIT;
                    }
                    return Ok(Failure::from(&error));
                }
                Ok(None) => return Ok(Failure::of(Reason::Unreachable, "the watch ended")),
                Err(_) if listed.is_some() => {
                    let late = format!("no answer to a list within {} s", LIST.as_secs());
                    return Ok(Failure::of(Reason::Timeout, late));
                }
                Err(_) => {
                    self.failed = false;
                    self.tell(Change::Listed).await?;
                    continue;
                }
            };
            match event {
                Event::Init => listed = Some(HashSet::new()),
                Event::InitApply(object) => {
                    let (uid, change) = seen(object, read);
                    self.apply(&uid, change).await?;
                    if let Some(listed) = &mut listed {
                        listed.insert(uid);
                    }
                }
                Event::InitDone => {
                    self.missing(&listed.take().unwrap_or_default()).await?;
                    since = Instant::now();
                    if !self.failed {
                        self.tell(Change::Listed).await?;
                    }
                }
                Event::Apply(object) => {
                    let (uid, change) = seen(object, read);
                    self.apply(&uid, change).await?;
                }
                Event::Delete(object) => {
                    let (uid, last) = seen(object, read);
                    self.gone(&uid, last).await?;
                }
            }
        }
    }
}

/// An object, as far as it is told from others.
#[derive(Debug, serde::Deserialize)]
struct Named {
    metadata: ObjectMeta,
}

fn unselected(known: Change) -> Change {
    match known {
        Change::Driver(driver) => Change::Unselected(driver),
        other => other.gone(),
    }
}

/// Its uid, and what it is to us; all else of it is dropped here.
fn seen<K: Resource>(
    object: K,
    read: &(impl Fn(K) -> Option<Change> + Send + Sync),
) -> (String, Option<Change>) {
    let uid = object.meta().uid.clone().unwrap_or_default();
    (uid, read(object))
}
