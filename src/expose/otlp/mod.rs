//! Everything by OTLP: metrics from the same snapshot that `/metrics` shows
//! ([`points`]), each application as a trace ([`spans`]), new and cleared
//! findings as log records ([`records`]).
//!
//! Nothing here is waited for by anybody: each publication is put down as the
//! latest [`Moment`], and whoever sends looks at it when it is its turn. So a
//! back end that is slow or dead delays no scrape, and nothing is queued but
//! runs that wait for their trace ([`runs`], bounded).
//!
//! ```text
//! Moment -> points          -> \
//!        -> runs -> spans   ->  deliver -> the back end
//!                -> records -> /
//! ```

pub mod deliver;
mod finding;
mod instance;
mod own;
pub mod points;
pub mod records;
mod resource;
pub mod runs;
mod senders;
pub mod spans;

pub use instance::instance;
pub use own::Own;
pub use senders::Senders;

use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::watch;

use crate::metrics::{RunView, Snapshot};

/// What the daemon holds, as it was published last.
#[derive(Debug)]
pub struct Moment {
    pub snapshot: Arc<Snapshot>,
    /// What `snapshot` was built from, ascending by identity.
    pub runs: Arc<[RunView]>,
    /// Whether every source has ended its first cycle: before, a run or a
    /// finding that is not there may only not have been read yet.
    pub ready: bool,
    pub at: Timestamp,
}

/// The latest moment; `None` before the first.
pub type Feed = watch::Receiver<Option<Arc<Moment>>>;
