//! The embedded back end: one file that one daemon has for itself, or memory
//! alone.
//!
//! Each change is a transaction of redb that is on disk before its commit
//! returns. What was read once is trusted while the file is open, so it is
//! verified whenever it is opened; after an error, and after a panic of redb,
//! it is closed, and opened and verified anew by the next call.

mod change;
mod check;
mod delivered;
mod fault;
mod file;
mod overlay;
mod read;
mod tables;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use redb::{Database, Durability, ReadTransaction, ReadableDatabase};

use self::change::EmbeddedChange;
use self::fault::{Fault, caught};
use self::file::Identity;
use super::{
    Backend, Change, Delivered, LogSeen, Meta, NameKey, Oldest, RunKey, RunRecord, Size,
    StoreError, StoredRun, Totals,
};
use crate::model::RunId;

/// Reads some entries after a key, in the order of the keys.
type SomeAfter<T> = fn(&ReadTransaction, Option<&RunKey>) -> Result<Vec<(RunKey, T)>, Fault>;

/// Below so many free bytes a file is not compacted.
const WORTH_COMPACTING: u64 = 16 << 20;

/// A store in one file, or in memory.
#[derive(Debug)]
pub struct Embedded {
    path: Option<PathBuf>,
    /// Whether the file is only looked at.
    unchanged: bool,
    open: Mutex<Option<Open>>,
}

#[derive(Debug)]
struct Open {
    database: Arc<Database>,
    /// `None` in memory.
    identity: Option<Identity>,
}

impl Embedded {
    pub fn in_memory(now: Timestamp) -> Result<Self, StoreError> {
        let open = Open { database: Arc::new(file::in_memory(now)?), identity: None };
        Ok(Self { path: None, unchanged: false, open: Mutex::new(Some(open)) })
    }

    /// The store in the file `path`, made where nothing is there. Verifies all
    /// of it.
    pub fn open(path: &Path, now: Timestamp) -> Result<Self, StoreError> {
        let database = file::open_or_make(path, now)?;
        Self::opened(path, false, database)
    }

    /// The store in the file `path`, to be read without any change to the
    /// file, not even the repair after a crash.
    pub fn open_unchanged(path: &Path) -> Result<Self, StoreError> {
        let database = file::open_unchanged(path)?;
        Self::opened(path, true, database)
    }

    fn opened(path: &Path, unchanged: bool, database: Database) -> Result<Self, StoreError> {
        let identity = Identity::of(path).map_err(|error| fault::io(&file::name(path), &error))?;
        let open = Open { database: Arc::new(database), identity: Some(identity) };
        Ok(Self { path: Some(path.to_owned()), unchanged, open: Mutex::new(Some(open)) })
    }

    fn lock(&self) -> MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The open database, opened anew where it had to be closed.
    fn database(&self) -> Result<Arc<Database>, StoreError> {
        let mut open = self.lock();
        if let Some(Open { database, .. }) = &*open {
            return Ok(Arc::clone(database));
        }
        // What is in memory alone is gone with what failed.
        let Some(path) = &self.path else { return Err(self.gone()) };
        let database = if self.unchanged { file::open_unchanged(path) } else { file::open(path) }?;
        let identity = Identity::of(path).map_err(|error| fault::io(&self.name(), &error))?;
        let database = Arc::new(database);
        *open = Some(Open { database: Arc::clone(&database), identity: Some(identity) });
        Ok(database)
    }

    /// Refuses to write to a file that is not the one at its path any more.
    fn check_identity(&self) -> Result<(), StoreError> {
        let (Some(path), Some(Open { identity: Some(identity), .. })) = (&self.path, &*self.lock())
        else {
            return Ok(());
        };
        if Identity::of(path).ok() == Some(*identity) {
            return Ok(());
        }
        Err(StoreError::Unavailable {
            what: self.name(),
            why: "the file was removed or replaced while it is in use: put it back, or start the \
                  daemon again"
                .to_owned(),
        })
    }

    fn name(&self) -> String {
        self.path.as_deref().map_or_else(|| "the store in memory".to_owned(), file::name)
    }

    fn gone(&self) -> StoreError {
        StoreError::Unavailable {
            what: self.name(),
            why: "it was closed after an error".to_owned(),
        }
    }

    /// What failed, said of this store, which is closed where it must be.
    fn failed(&self, fault: Fault) -> StoreError {
        if fault.needs_reopening() && self.path.is_some() {
            let open = self.lock().take();
            let _ = caught(|| {
                drop(open);
                Ok(())
            });
        }
        fault.of(&self.name())
    }

    fn read<T>(
        &self,
        work: impl FnOnce(&ReadTransaction) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let database = self.database()?;
        let result = caught(|| work(&database.begin_read()?));
        drop(database);
        result.map_err(|fault| self.failed(fault))
    }
}

impl Embedded {
    /// Hands over what `some_after` finds, one view of it from the first run
    /// to the last.
    fn each<T>(
        &self,
        some_after: SomeAfter<T>,
        each: &mut dyn FnMut(RunKey, T) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let database = self.database()?;
        let transaction =
            caught(|| Ok(database.begin_read()?)).map_err(|fault| self.failed(fault))?;
        drop(database);
        let some_after = |after: Option<&RunKey>| {
            caught(|| some_after(&transaction, after)).map_err(|fault| self.failed(fault))
        };
        read::each_run(some_after, each)
    }
}

impl Backend for Embedded {
    fn begin(&self) -> Result<Box<dyn Change + '_>, StoreError> {
        let database = self.database()?;
        self.check_identity()?;
        let begun = caught(|| {
            let mut transaction = database.begin_write()?;
            transaction.set_durability(Durability::Immediate)?;
            Ok(transaction)
        });
        drop(database);
        let transaction = begun.map_err(|fault| self.failed(fault))?;
        Ok(Box::new(EmbeddedChange::new(self, transaction)))
    }

    fn about(&self) -> String {
        self.name()
    }

    fn version(&self) -> u32 {
        // One that is only looked at may be older.
        self.read(file::version_of).unwrap_or(tables::VERSION)
    }

    fn meta(&self) -> Result<Meta, StoreError> {
        self.read(read::meta)
    }

    fn totals(&self) -> Result<Vec<(NameKey, Totals)>, StoreError> {
        self.read(read::totals)
    }

    fn runs(&self, id: &RunId) -> Result<Vec<(RunKey, RunRecord)>, StoreError> {
        self.read(|transaction| read::runs_of(&transaction.open_table(tables::RUNS)?, id))
    }

    fn runs_by_name(
        &self,
        name: &NameKey,
        limit: usize,
    ) -> Result<Vec<(RunKey, StoredRun)>, StoreError> {
        self.read(|transaction| read::runs_by_name(transaction, name, limit))
    }

    fn uncounted(&self) -> Result<Vec<(RunKey, RunRecord)>, StoreError> {
        self.read(read::uncounted)
    }

    fn logs(&self, cluster: &str, place: &str) -> Result<Vec<(LogSeen, i64)>, StoreError> {
        self.read(|transaction| read::logs(transaction, cluster, place))
    }

    fn oldest(&self, limit: usize) -> Result<Vec<Oldest>, StoreError> {
        self.read(|transaction| read::oldest(transaction, limit))
    }

    fn latest_end_ms(&self) -> Result<Option<i64>, StoreError> {
        self.read(read::latest_end_ms)
    }

    fn delivered(&self, id: &RunId) -> Result<Vec<(RunKey, Delivered)>, StoreError> {
        self.read(|transaction| delivered::find(transaction, id))
    }

    fn delivered_before(&self, time_ms: i64, limit: usize) -> Result<Vec<RunKey>, StoreError> {
        self.read(|transaction| delivered::before(transaction, time_ms, limit))
    }

    fn each_delivered(
        &self,
        each: &mut dyn FnMut(RunKey, Delivered) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.each(delivered::some_after, each)
    }

    fn size(&self) -> Result<Size, StoreError> {
        let size = self.read(read::size)?;
        let total_bytes = match &self.path {
            Some(path) => Some(
                std::fs::metadata(path).map_err(|error| fault::io(&self.name(), &error))?.len(),
            ),
            None => None,
        };
        Ok(Size { total_bytes, ..size })
    }

    /// Only where nobody else is at it just now: it is a matter of space, and
    /// the next time is soon enough.
    fn compact(&self) -> Result<(), StoreError> {
        let size = self.size()?;
        let Some(length) = size.total_bytes else { return Ok(()) };
        // Pages that are half full are no reason.
        if length < size.run_bytes.saturating_mul(3).saturating_add(WORTH_COMPACTING) {
            return Ok(());
        }
        let mut open = self.lock();
        let Some(database) = open.as_mut().and_then(|open| Arc::get_mut(&mut open.database)) else {
            return Ok(());
        };
        let result = caught(|| match database.compact() {
            Ok(_) | Err(redb::CompactionError::TransactionInProgress) => Ok(()),
            Err(error) => Err(error.into()),
        });
        drop(open);
        result.map_err(|fault| self.failed(fault))
    }

    fn check(&self) -> Result<(), StoreError> {
        let wrong = self.read(check::all)?;
        wrong.into_result(&self.name())
    }

    fn each_run(
        &self,
        each: &mut dyn FnMut(RunKey, StoredRun) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.each(read::runs_after, each)
    }
}
