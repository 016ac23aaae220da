//! `spark-exporter store check` and `store export`: what is in the store, for
//! people.

mod check;
mod export;

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use tokio::runtime::Runtime;

use super::Outcome;
use super::serve::parsed;
use crate::config::{Config, Secret, Storage, StoreUrl, TlsConfig};
use crate::store::{self, Backend};

/// Where the store is.
#[derive(Debug, Clone, Args)]
pub(super) struct StoreFlags {
    /// File in which runs are remembered across restarts [default: none, in
    /// memory]
    #[arg(long = "storage.path", value_name = "FILE")]
    path: Option<PathBuf>,
    /// PostgreSQL in which they are remembered instead, by several daemons
    /// together: postgres://USER@HOST:PORT/DATABASE (cargo feature postgres)
    // A value that may hold a password: shown by nothing.
    #[arg(long = "storage.url", value_name = "URL", value_parser = secret)]
    url: Option<Secret>,
    /// File with its password, read at each connect [default: PGPASSWORD of
    /// the environment]
    #[arg(long = "storage.password-file", value_name = "FILE")]
    password_file: Option<PathBuf>,
}

#[expect(clippy::unnecessary_wraps, reason = "the parser of a flag may fail")]
fn secret(text: &str) -> Result<Secret, std::convert::Infallible> {
    Ok(Secret::new(text))
}

impl StoreFlags {
    /// Lays them over the file's settings: one place given here replaces the
    /// other there.
    pub(super) fn add_to(&self, storage: &mut Storage) -> anyhow::Result<()> {
        if self.path.is_some() && self.url.is_some() {
            bail!(
                "--storage.path and --storage.url exclude each other: the store is a file or a \
                 PostgreSQL; leave one out"
            );
        }
        if let Some(url) = &self.url {
            let url: Vec<StoreUrl> = parsed("--storage.url", &[url.expose().to_owned()])?;
            storage.url = url.into_iter().next();
            storage.path = None;
        }
        if self.path.is_some() {
            storage.path.clone_from(&self.path);
            storage.url = None;
            storage.password_file = None;
            storage.tls_config = TlsConfig::default();
        }
        if self.password_file.is_some() {
            storage.password_file.clone_from(&self.password_file);
        }
        Ok(())
    }
}

/// Which store a command looks into.
#[derive(Debug, Clone, Args)]
pub struct Which {
    /// Configuration file (YAML) whose storage is meant
    #[arg(long = "config.file", value_name = "FILE")]
    config_file: Option<PathBuf>,
    #[command(flatten)]
    flags: StoreFlags,
}

impl Which {
    fn storage(&self) -> anyhow::Result<Storage> {
        let mut storage = match &self.config_file {
            Some(path) => Config::load(path)?.storage,
            None => Storage::default(),
        };
        self.flags.add_to(&mut storage)?;
        storage.validate().map_err(anyhow::Error::msg)?;
        Ok(storage)
    }

    /// Opens it so that nothing in it changes.
    fn open(&self, runtime: &Runtime) -> anyhow::Result<Box<dyn Backend>> {
        store::open_unchanged(&self.storage()?, runtime.handle())?.context(
            "no store is named: give --storage.path FILE, --storage.url URL, or --config.file \
             FILE with one",
        )
    }
}

#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// Read all of it, and say whether it is whole
    ///
    /// Changes nothing. Exits with 0 where it is whole, and with 2 where it is
    /// not or cannot be read. A file cannot be read while a daemon has it.
    Check {
        #[command(flatten)]
        which: Which,
    },
    /// Write all of it as JSON lines
    ///
    /// One object a line: {"meta": ...} first, then {"totals": ...} for each
    /// name, then {"run": ...} for each run. Changes nothing. A file cannot be
    /// read while a daemon has it.
    Export {
        #[command(flatten)]
        which: Which,
        /// File to write to, which is there once it is whole [default:
        /// standard output]
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

impl StoreCommand {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .context("cannot start the asynchronous runtime")?;
        match self {
            Self::Check { which } => check::run(&*which.open(&runtime)?),
            Self::Export { which, output } => {
                export::run(&*which.open(&runtime)?, output.as_deref())
            }
        }
    }
}
