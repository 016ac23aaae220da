//! HDFS by Hadoop's own protocol, with the settings of `HADOOP_CONF_DIR`: a
//! name service of several NameNodes, Kerberos with a ticket.
//!
//! Of a file that is being written only what the NameNode knows of is read:
//! whole blocks, and what the writer said it had synced. WebHDFS reads on to
//! where the writer is.

use std::fmt;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use futures_util::{FutureExt, StreamExt};
use hdfs_native::client::FileStatus;
use hdfs_native::{Client, ClientBuilder, HdfsError};
use tokio::runtime::Handle;

use super::stream::{self, Begin, STALL};
use super::tree::Tree;
use super::{Access, Entry, EntryKind, Files, FilesError, FilesErrorKind, Listing, MOST_ENTRIES};
use crate::config::RemoteLocation;
use crate::fetch::text::glance;

/// What lies under a directory of HDFS.
pub(super) struct Hdfs {
    client: Client,
    /// Without slashes at its ends.
    root: String,
    display: String,
    runtime: Handle,
    most_bytes: u64,
    tree: Tree,
    /// Whether the root turned out to be one file.
    single: AtomicBool,
}

impl fmt::Debug for Hdfs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hdfs({})", self.display)
    }
}

impl Hdfs {
    /// Asks nothing of a server yet.
    ///
    /// # Errors
    /// When Hadoop's configuration files cannot be read.
    pub(super) fn at(location: &RemoteLocation, access: &Access) -> Result<Self, FilesError> {
        let display = location.to_string();
        let client = ClientBuilder::new()
            .with_url(format!("hdfs://{}", location.authority()))
            .with_io_runtime(access.runtime.clone())
            .build()
            .map_err(|error| failed(display.clone(), &error))?;
        Ok(Self {
            client,
            root: location.path().to_owned(),
            display,
            runtime: access.runtime.clone(),
            most_bytes: access.most_bytes,
            tree: Tree::default(),
            single: AtomicBool::new(false),
        })
    }

    fn path_of(&self, path: &str) -> String {
        match (self.root.as_str(), path) {
            (root, path) if path.is_empty() || self.is_root(path) => format!("/{root}"),
            ("", path) => format!("/{path}"),
            (root, path) => format!("/{root}/{path}"),
        }
    }

    fn is_root(&self, path: &str) -> bool {
        self.single.load(Ordering::Relaxed) && self.root.rsplit('/').next() == Some(path)
    }

    async fn directory(&self, directory: &str) -> Result<Vec<Entry>, FilesError> {
        let path = self.path_of(directory);
        let mut found = self.client.list_status_iter(&path, false).into_stream();
        let mut entries = Vec::new();
        while entries.len() < MOST_ENTRIES {
            let next = tokio::time::timeout(STALL, found.next()).await;
            let Some(status) = next.map_err(|_| self.stalled(directory))? else { break };
            let status = status.map_err(|error| failed(self.display(directory), &error))?;
            // A file lists itself.
            if directory.is_empty() && !status.isdir && status.path == path {
                self.single.store(true, Ordering::Relaxed);
            }
            entries.push(entry(&status));
        }
        Ok(entries)
    }

    fn stalled(&self, path: &str) -> FilesError {
        FilesError {
            place: self.display(path),
            kind: FilesErrorKind::Other,
            message: format!(
                "HDFS did not answer for {} s; check that the NameNode runs and can be reached",
                STALL.as_secs()
            ),
        }
    }
}

fn entry(status: &FileStatus) -> Entry {
    Entry {
        path: status.path.rsplit('/').next().unwrap_or_default().to_owned(),
        kind: if status.isdir { EntryKind::Directory } else { EntryKind::File },
        bytes: status.length as u64,
        modified: SystemTime::UNIX_EPOCH + Duration::from_millis(status.modification_time),
    }
}

fn failed(place: String, error: &HdfsError) -> FilesError {
    let said = error.to_string();
    let has = |word: &str| said.contains(word);
    let (kind, hint) = match error {
        HdfsError::FileNotFound(_) => (FilesErrorKind::NotFound, "check that it exists"),
        _ if has("FileNotFoundException") => (FilesErrorKind::NotFound, "check that it exists"),
        _ if has("AccessControlException") => (
            FilesErrorKind::Denied,
            "the user (HADOOP_USER_NAME, or the one of the Kerberos ticket) needs r-x on the \
             directory and r on its files",
        ),
        HdfsError::SASLError(_) | HdfsError::GSSAPIError(..) | HdfsError::NoSASLMechanism => (
            FilesErrorKind::Denied,
            "get a Kerberos ticket (kinit), and give Hadoop's settings by HADOOP_CONF_DIR",
        ),
        HdfsError::IOError(_) => (
            FilesErrorKind::Other,
            "check host and port of the NameNode's RPC (8020), and that it runs",
        ),
        _ => (FilesErrorKind::Other, "see HADOOP_CONF_DIR for a name service"),
    };
    FilesError { place, kind, message: format!("{}; {hint}", glance(said.as_bytes())) }
}

impl Files for Hdfs {
    fn list(&self) -> Result<Listing, FilesError> {
        self.tree.walk(|directory| self.runtime.block_on(self.directory(directory)))
    }

    fn open(&self, path: &str, from: u64) -> Result<Box<dyn Read + Send>, FilesError> {
        let whole = self.path_of(path);
        let length = self.runtime.block_on(async {
            let status = tokio::time::timeout(STALL, self.client.get_file_info(&whole)).await;
            let status = status.map_err(|_| self.stalled(path))?;
            status.map_err(|error| failed(self.display(path), &error))
        })?;
        let most = (length.length as u64).saturating_sub(from).min(self.most_bytes);
        if most == 0 {
            return Ok(Box::new(io::empty()));
        }
        let end = from + most;
        let (client, display) = (self.client.clone(), self.display(path));
        let begin: Begin = Box::new(move |from| {
            let (client, whole, display) = (client.clone(), whole.clone(), display.clone());
            async move {
                let file = client.read(&whole).await;
                let file = file.map_err(|error| failed(display.clone(), &error))?;
                // It may have been cut since: nothing is asked for beyond it.
                let end = end.min(file.file_length() as u64);
                let length = end.saturating_sub(from) as usize;
                let pieces =
                    file.read_range_stream(from.min(end) as usize, length).map(move |piece| {
                        piece.map_err(|error| failed(display.clone(), &error).message)
                    });
                Ok(pieces.boxed())
            }
            .boxed()
        });
        stream::open(&self.runtime, from, most, begin)
    }

    fn display(&self, path: &str) -> String {
        if path.is_empty() || self.is_root(path) {
            return self.display.clone();
        }
        format!("{}/{path}", self.display)
    }

    fn tells_growth(&self) -> bool {
        false
    }
}
