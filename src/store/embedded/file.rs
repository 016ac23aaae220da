//! Opening and making the file: what is not ours is recognised before
//! anything in it is changed, and a store that is begun anew appears whole or
//! not at all.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use jiff::Timestamp;
use redb::backends::{FileBackend, InMemoryBackend};
use redb::{Builder, Database, ReadTransaction, ReadableDatabase, TableHandle};

use super::fault::{Fault, caught, io};
use super::overlay::Overlay;
use super::tables::{
    BY_END, BY_LOG, BY_NAME, BY_SINCE, Found, MAGIC, META, META_FACTS, META_MAGIC, META_RUN_BYTES,
    META_VERSION, RUNS, SUMMARIES, TOTALS, UNCOUNTED, VERSION, found, json, make_delivered,
    migrate,
};
use crate::store::{Meta, StoreError};

/// Of redb, in bytes: reads are few and small.
const CACHE: usize = 16 << 20;
/// How a file of redb begins.
const REDB_MAGIC: &[u8] = b"redb\x1A\x0A\xA9\x0D\x0A";

/// Which file it is, whatever its path says later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    pub(super) fn of(path: &Path) -> std::io::Result<Self> {
        let metadata = std::fs::metadata(path)?;
        Ok(Self { device: metadata.dev(), inode: metadata.ino() })
    }
}

pub(super) fn name(path: &Path) -> String {
    format!("the store {}", path.display())
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE);
    builder
}

pub(super) fn in_memory(now: Timestamp) -> Result<Database, StoreError> {
    let make = || -> Result<Database, Fault> {
        let database = builder().create_with_backend(InMemoryBackend::new())?;
        fill(&database, now)?;
        Ok(database)
    };
    caught(make).map_err(|fault| fault.of("the store in memory"))
}

/// Opens the store at `path`, making it where nothing is.
pub(super) fn open_or_make(path: &Path, now: Timestamp) -> Result<Database, StoreError> {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => make(path, now)?,
        _ => {}
    }
    open(path)
}

/// Opens a store that is there, verified page by page.
pub(super) fn open(path: &Path) -> Result<Database, StoreError> {
    // Verified before redb may repair or change anything in the file itself.
    drop(open_unchanged(path)?);
    let open = || -> Result<Database, Fault> {
        let database = builder().open(path)?;
        let version = version(&database)?;
        if version != VERSION {
            let transaction = database.begin_write()?;
            migrate(&transaction, version)?;
            transaction.commit()?;
        }
        Ok(database)
    };
    caught(open).map_err(|fault| fault.of(&name(path)))
}

/// Opens a store that is there, verified page by page, so that nothing in the
/// file changes.
pub(super) fn open_unchanged(path: &Path) -> Result<Database, StoreError> {
    recognise(path)?;
    let open = || -> Result<Database, Fault> {
        let mut builder = builder();
        builder.set_check_integrity_on_open(true);
        let database = builder.create_with_backend(Overlay::new(File::open(path)?)?)?;
        version(&database)?;
        Ok(database)
    };
    caught(open).map_err(|fault| fault.of(&name(path)))
}

fn version(database: &Database) -> Result<u32, Fault> {
    version_of(&database.begin_read()?)
}

pub(super) fn version_of(transaction: &ReadTransaction) -> Result<u32, Fault> {
    let tables = transaction.list_tables()?;
    let ours = tables.into_iter().any(|table| table.name() == META.name());
    let found = if ours { found(&transaction.open_table(META)?)? } else { Found::Foreign };
    match found {
        Found::Version(version @ 1..=VERSION) => Ok(version),
        Found::Version(version) => Err(Fault::Refused(format!(
            "it is of version {version}, made by a newer spark-exporter; this one knows up to \
             version {VERSION}: run the newer one, or give another file"
        ))),
        Found::Foreign => {
            Err(Fault::Refused("it is a database of another program: give another file".to_owned()))
        }
    }
}

/// Refuses what is not a file of redb, by what it is.
fn recognise(path: &Path) -> Result<(), StoreError> {
    let what = name(path);
    let unusable = |why: &str| StoreError::Unusable { what: what.clone(), why: why.to_owned() };
    let metadata = std::fs::metadata(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => unusable("there is no such file"),
        _ => io(&what, &error),
    })?;
    if metadata.is_dir() {
        return Err(unusable("it is a folder: name a file in it, for example spark-exporter.db"));
    }
    if !metadata.is_file() {
        return Err(unusable("it is not a regular file: give another path"));
    }
    if metadata.len() == 0 {
        return Err(unusable(
            "it is empty, which a store never is: restore a copy of it, or remove it to begin \
             anew, with counters from 0",
        ));
    }
    let mut begin = Vec::new();
    File::open(path)
        .and_then(|file| file.take(REDB_MAGIC.len() as u64).read_to_end(&mut begin))
        .map_err(|error| io(&what, &error))?;
    if begin == REDB_MAGIC {
        return Ok(());
    }
    Err(unusable(
        "it is not a store of spark-exporter, or its beginning is damaged; it was left as it is: \
         give another file, or restore a copy of it",
    ))
}

/// Makes a store beside `path` and gives it that name once it is whole.
fn make(path: &Path, now: Timestamp) -> Result<(), StoreError> {
    let what = name(path);
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        return Err(StoreError::Unusable {
            what,
            why: format!(
                "its folder {} is not there: make it, writable for the user that the daemon runs \
                 as",
                folder.display()
            ),
        });
    }
    // Readable for its owner alone.
    let made = tempfile::Builder::new()
        .prefix(".spark-exporter-")
        .suffix(".new")
        .tempfile_in(folder)
        .map_err(|error| io(&what, &error))?;
    let fill_it = || -> Result<(), Fault> {
        let file = OpenOptions::new().read(true).write(true).open(made.path())?;
        let database = builder().create_with_backend(FileBackend::new(file)?)?;
        fill(&database, now)?;
        database.close()?;
        made.as_file().sync_all()?;
        Ok(())
    };
    caught(fill_it).map_err(|fault| fault.of(&what))?;
    match made.persist_noclobber(path) {
        Ok(_) => {}
        // Another daemon was faster; whether it has it to itself is seen next.
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => return Ok(()),
        Err(error) => return Err(io(&what, &error.error)),
    }
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| io(&what, &error))
}

/// Makes all tables, so that reading never meets one that is not there.
fn fill(database: &Database, now: Timestamp) -> Result<(), Fault> {
    let transaction = database.begin_write()?;
    {
        let mut meta = transaction.open_table(META)?;
        let facts = json(&Meta::begun(now))?;
        meta.insert(META_MAGIC, MAGIC)?;
        meta.insert(META_VERSION, u64::from(VERSION).to_le_bytes().as_slice())?;
        meta.insert(META_FACTS, facts.as_slice())?;
        meta.insert(META_RUN_BYTES, 0_u64.to_le_bytes().as_slice())?;
        transaction.open_table(RUNS)?;
        transaction.open_table(SUMMARIES)?;
        transaction.open_table(BY_NAME)?;
        transaction.open_table(BY_LOG)?;
        transaction.open_table(BY_SINCE)?;
        transaction.open_table(BY_END)?;
        transaction.open_table(UNCOUNTED)?;
        transaction.open_table(TOTALS)?;
    }
    make_delivered(&transaction)?;
    transaction.commit()?;
    Ok(())
}
