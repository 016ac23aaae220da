//! A client that is made anew when the files of its certificates change, or
//! when its connections can no longer be trusted.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::config::TlsConfig;

/// More is no certificate.
const LONGEST_FILE: u64 = 1 << 20;

/// How a client is made.
type Make<T> = Box<dyn Fn() -> Result<T, String> + Send + Sync>;

/// A client of type `T`, whose clones share connections.
pub(super) struct Renewed<T>(Arc<Inner<T>>);

struct Inner<T> {
    files: Vec<PathBuf>,
    make: Make<T>,
    /// Set where a connection hangs.
    worn: AtomicBool,
    current: Mutex<Current<T>>,
}

struct Current<T> {
    made_of: Vec<Option<Vec<u8>>>,
    client: T,
}

impl<T: Clone + Send + 'static> Renewed<T> {
    pub(super) fn new(
        tls: &TlsConfig,
        make: impl Fn() -> Result<T, String> + Send + Sync + 'static,
    ) -> Result<Self, String> {
        let files: Vec<PathBuf> =
            [&tls.ca_file, &tls.cert_file, &tls.key_file].into_iter().flatten().cloned().collect();
        let made_of = read(&files);
        let current = Current { made_of, client: make()? };
        Ok(Self(Arc::new(Inner {
            files,
            make: Box::new(make),
            worn: AtomicBool::new(false),
            current: Mutex::new(current),
        })))
    }

    /// The client of now. Where new files cannot be used (one of a pair is
    /// not written yet) it stays the one of before, with a word on why.
    pub(super) async fn get(&self) -> (T, Option<String>) {
        let inner = Arc::clone(&self.0);
        if inner.files.is_empty() {
            return inner.renewed(Vec::new());
        }
        // The files may lie on a network.
        let reading = tokio::task::spawn_blocking(move || {
            let made_of = read(&inner.files);
            inner.renewed(made_of)
        });
        match reading.await {
            Ok(found) => found,
            Err(_) => (self.0.current().client.clone(), None),
        }
    }

    /// Its connections are given up: the next attempt makes a new one.
    pub(super) fn wear_out(&self) {
        self.0.worn.store(true, Ordering::Relaxed);
    }
}

impl<T: Clone> Inner<T> {
    fn current(&self) -> std::sync::MutexGuard<'_, Current<T>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn renewed(&self, made_of: Vec<Option<Vec<u8>>>) -> (T, Option<String>) {
        let mut current = self.current();
        let worn = self.worn.swap(false, Ordering::Relaxed);
        if !worn && current.made_of == made_of {
            return (current.client.clone(), None);
        }
        match (self.make)() {
            Ok(client) => {
                *current = Current { made_of, client: client.clone() };
                (client, None)
            }
            Err(why) => (current.client.clone(), Some(why)),
        }
    }
}

/// Contents; `None` of what cannot be read.
fn read(files: &[PathBuf]) -> Vec<Option<Vec<u8>>> {
    use std::io::Read as _;
    files
        .iter()
        .map(|path| {
            let mut bytes = Vec::new();
            let file = std::fs::File::open(path).ok()?;
            file.take(LONGEST_FILE).read_to_end(&mut bytes).ok()?;
            Some(bytes)
        })
        .collect()
}
