//! From the settings to a store.

use jiff::Timestamp;
use tokio::runtime::Handle;

use super::embedded::Embedded;
use super::{Backend, Keep, Store, StoreError};
use crate::config::{Size, Storage, StoreUrl};

/// Of runs in memory alone, where the operator sets no limit.
const IN_MEMORY: Size = Size::mib(64);

/// Opens the store that `storage` names, making it where nothing is; in memory
/// where it names none. `names`: of so many the totals are kept
/// (`limits.app_names`). `runtime`: on which connections to a server live; call
/// this, and the store, where blocking is allowed.
pub fn open(storage: &Storage, names: usize, runtime: &Handle) -> Result<Store, StoreError> {
    let now = Timestamp::now();
    let backend: Box<dyn Backend> = match (&storage.url, &storage.path) {
        (Some(url), _) => server(url, storage, Some(now), runtime)?,
        (None, Some(path)) => Box::new(Embedded::open(path, now)?),
        (None, None) => Box::new(Embedded::in_memory(now)?),
    };
    let retention = &storage.retention;
    let in_memory = storage.url.is_none() && storage.path.is_none();
    let size = retention.size.or(in_memory.then_some(IN_MEMORY)).map(Size::bytes);
    let keep = Keep { time: retention.time.get(), size, names };
    Ok(Store::new(backend, keep))
}

/// Opens the store that `storage` names to look at it: nothing is made,
/// repaired or migrated. `None` where it names none.
pub fn open_unchanged(
    storage: &Storage,
    runtime: &Handle,
) -> Result<Option<Box<dyn Backend>>, StoreError> {
    Ok(match (&storage.url, &storage.path) {
        (Some(url), _) => Some(server(url, storage, None, runtime)?),
        (None, Some(path)) => Some(Box::new(Embedded::open_unchanged(path)?)),
        (None, None) => None,
    })
}

/// `made`: the time at which it is made where it is not there.
#[cfg(feature = "postgres")]
fn server(
    url: &StoreUrl,
    storage: &Storage,
    made: Option<Timestamp>,
    runtime: &Handle,
) -> Result<Box<dyn Backend>, StoreError> {
    Ok(Box::new(super::postgres::Postgres::open(url, storage, made, runtime)?))
}

#[cfg(not(feature = "postgres"))]
fn server(
    url: &StoreUrl,
    _storage: &Storage,
    _made: Option<Timestamp>,
    _runtime: &Handle,
) -> Result<Box<dyn Backend>, StoreError> {
    Err(StoreError::Unusable {
        what: format!("the store {url}"),
        why: "this spark-exporter was built without PostgreSQL: build it with `cargo build \
              --features postgres`, or give a file by storage.path"
            .to_owned(),
    })
}
