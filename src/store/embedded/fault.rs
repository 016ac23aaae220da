//! What can go wrong inside the file, before it is said which file.

use std::any::Any;
use std::io::ErrorKind;

use crate::store::StoreError;

#[derive(Debug)]
pub(super) enum Fault {
    Redb(Box<redb::Error>),
    /// The pages are whole, and what is in them is not ours or makes no sense.
    Damaged(String),
    /// It is whole, and not for us.
    Refused(String),
    /// redb panicked: what it holds in memory cannot be trusted any more.
    Panicked(String),
}

impl<E: Into<redb::Error>> From<E> for Fault {
    fn from(error: E) -> Self {
        Self::Redb(Box::new(error.into()))
    }
}

/// Runs `work`, and makes a fault of a panic in it: redb trusts pages that it
/// verified once, and panics where one changed under it since.
pub(super) fn caught<T>(work: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
        Ok(result) => result,
        Err(payload) => Err(Fault::Panicked(text(&*payload))),
    }
}

fn text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no reason given").to_owned()
}

impl Fault {
    /// Whether the database has to be opened anew before it is used again.
    pub(super) fn needs_reopening(&self) -> bool {
        match self {
            Self::Redb(error) => !matches!(**error, redb::Error::ValueTooLarge(_)),
            Self::Damaged(_) | Self::Refused(_) => false,
            Self::Panicked(_) => true,
        }
    }

    /// With the store it happened to.
    pub(super) fn of(self, store: &str) -> StoreError {
        let unusable = |why: String| StoreError::Unusable { what: store.to_owned(), why };
        let unavailable = |why: String| StoreError::Unavailable { what: store.to_owned(), why };
        let error = match self {
            Self::Damaged(why) => return unusable(damaged(&why)),
            Self::Refused(why) => return unusable(why),
            Self::Panicked(why) => {
                return unavailable(format!(
                    "reading or writing it failed ({why}); it is opened and verified anew next time"
                ));
            }
            Self::Redb(error) => *error,
        };
        match error {
            redb::Error::Io(error) => io(store, &error),
            redb::Error::Corrupted(why) => unusable(damaged(&why)),
            redb::Error::UpgradeRequired(_) => unusable(
                "it is in an older format of redb that is not read any more; move it away to \
                 begin anew"
                    .to_owned(),
            ),
            redb::Error::DatabaseAlreadyOpen | redb::Error::LockProtocolMismatch => unavailable(
                "another process uses it: one daemon has it for itself; stop that one, give this \
                 one a file of its own, or share a PostgreSQL by storage.url"
                    .to_owned(),
            ),
            redb::Error::PreviousIo | redb::Error::DatabaseClosed => {
                unavailable("it was closed after an error; it is opened anew next time".to_owned())
            }
            redb::Error::TableTypeMismatch { .. }
            | redb::Error::TableIsMultimap(_)
            | redb::Error::TableIsNotMultimap(_)
            | redb::Error::TypeDefinitionChanged { .. }
            | redb::Error::TableDoesNotExist(_) => unusable(damaged(&error.to_string())),
            redb::Error::ValueTooLarge(_) => unusable(error.to_string()),
            other => unavailable(other.to_string()),
        }
    }
}

fn damaged(why: &str) -> String {
    format!(
        "it is damaged ({why}); nothing in it was changed: restore a copy of it, or move it away \
         to begin anew, with counters from 0"
    )
}

/// Of an error of the file system.
pub(super) fn io(store: &str, error: &std::io::Error) -> StoreError {
    let unusable = |why: String| StoreError::Unusable { what: store.to_owned(), why };
    let unavailable = |why: String| StoreError::Unavailable { what: store.to_owned(), why };
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => unavailable(
            format!("no space for it ({error}): make room, or lower storage.retention.size"),
        ),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => unusable(format!(
            "it cannot be written ({error}): give a folder and a file that this user may read \
             and write"
        )),
        ErrorKind::InvalidData | ErrorKind::UnexpectedEof => unusable(damaged(&error.to_string())),
        _ => unavailable(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_that_may_pass_is_told_from_what_stays() {
        for (kind, unusable, part) in [
            (ErrorKind::StorageFull, false, "make room"),
            (ErrorKind::QuotaExceeded, false, "make room"),
            (ErrorKind::PermissionDenied, true, "may read and write"),
            (ErrorKind::ReadOnlyFilesystem, true, "may read and write"),
            (ErrorKind::UnexpectedEof, true, "restore a copy"),
            (ErrorKind::TimedOut, false, "timed out"),
        ] {
            let error = Fault::from(redb::Error::Io(kind.into())).of("the store /s");
            assert_eq!(error.is_unusable(), unusable, "{error}");
            let text = error.to_string();
            assert!(text.starts_with("the store /s: ") && text.contains(part), "{text}");
        }
    }

    #[test]
    fn a_panic_is_an_error_and_opens_it_anew() {
        let fault = caught::<()>(|| panic!("page {}", 7)).unwrap_err();
        assert!(fault.needs_reopening());
        let error = fault.of("the store /s");
        assert!(!error.is_unusable() && error.to_string().contains("page 7"), "{error}");
    }
}
