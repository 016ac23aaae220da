//! Opens the store that the configuration names.

use tokio::runtime::Handle;

use super::{Store, StoreError};
use crate::config::Storage;

/// Opens, or makes, the store. Blocks.
pub fn open(storage: &Storage, names: usize, runtime: &Handle) -> Result<Store, StoreError> {
    let _ = (storage, names, runtime);
    let what = "store".to_owned();
    Err(StoreError::Unusable { what, why: "there is no back end yet".to_owned() })
}
