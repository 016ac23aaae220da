//! What can be wrong with a store, and what to do about it.

use thiserror::Error;

/// Each says what failed, on which store, and what to do; never a password.
#[derive(Debug, Error)]
pub enum StoreError {
    /// It is there and cannot be used as it is: trying again does not help.
    #[error("{what}: {why}")]
    Unusable { what: String, why: String },
    /// It cannot be reached or written now: no connection, no space.
    #[error("{what}: {why}")]
    Unavailable { what: String, why: String },
    /// Somebody else changed the same at the same time, and neither could go
    /// on: [`super::Store`] tries again.
    #[error("{what}: {why}")]
    Contended { what: String, why: String },
}

impl StoreError {
    pub fn is_unusable(&self) -> bool {
        matches!(self, Self::Unusable { .. })
    }
}
