//! The configuration in force: the one place where a reload puts another.
//!
//! Whoever acts on it asks each time, so that a cycle, a judgement or a
//! publication goes by one configuration from its beginning to its end.

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::config::Config;

/// Clones show the same configuration.
#[derive(Debug, Clone)]
pub(super) struct Live(Arc<ArcSwap<Config>>);

impl Live {
    pub(super) fn new(config: Config) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(config)))
    }

    pub(super) fn get(&self) -> Arc<Config> {
        self.0.load_full()
    }

    pub(super) fn put(&self, config: Arc<Config>) {
        self.0.store(config);
    }
}
