//! Why a place or a file of it could not be read.

use std::io;

/// What a caller may want to tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilesErrorKind {
    /// Not there, or not there any more.
    NotFound,
    /// No right to read it.
    Denied,
    /// Anything else: a server that is down, a broken disk.
    Other,
}

/// One sentence for a person, without secrets.
#[derive(Debug, Clone, thiserror::Error)]
#[error("cannot read {place}: {message}")]
pub struct FilesError {
    /// The file or place, as [`super::Files::display`] writes it.
    pub place: String,
    pub kind: FilesErrorKind,
    /// What happened and, where one can say it, what to do.
    pub message: String,
}

impl FilesError {
    pub(crate) fn io(place: String, error: &io::Error) -> Self {
        let (kind, hint) = match error.kind() {
            io::ErrorKind::NotFound => (FilesErrorKind::NotFound, "check that it exists"),
            io::ErrorKind::PermissionDenied => {
                (FilesErrorKind::Denied, "check that this user may read it")
            }
            _ => (FilesErrorKind::Other, "check that it exists and that this user may read it"),
        };
        Self { place, kind, message: format!("{error}; {hint}") }
    }
}
