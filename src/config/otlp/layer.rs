//! What one place says of a destination, and how places are laid over each
//! other: key by key, the first that says anything.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::settings::{Compression, Protocol};
use crate::config::{Secret, TlsConfig};

/// An endpoint as it was written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Written {
    pub(super) text: String,
    /// Without a scheme: `collector:4317`.
    pub(super) bare: bool,
}

/// Of one destination; what is `None` or empty is not said.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Said {
    pub(super) endpoint: Option<Written>,
    /// What an endpoint without a scheme means.
    pub(super) insecure: Option<bool>,
    pub(super) protocol: Option<Protocol>,
    pub(super) headers: BTreeMap<String, Secret>,
    pub(super) header_files: BTreeMap<String, PathBuf>,
    pub(super) timeout: Option<Duration>,
    pub(super) compression: Option<Compression>,
    pub(super) tls: Option<TlsConfig>,
    pub(super) request_size: Option<u64>,
}

/// A place that says something of a signal's destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// `otlp.traces`
    FileSignal,
    /// `otlp`, flags included.
    File,
    /// `OTEL_EXPORTER_OTLP_TRACES_*`
    EnvironmentSignal,
    /// `OTEL_EXPORTER_OTLP_*`
    Environment,
}

impl Place {
    /// Whether an endpoint from here is meant for all signals.
    pub(super) fn is_general(self) -> bool {
        matches!(self, Self::File | Self::Environment)
    }

    pub(super) fn is_file(self) -> bool {
        matches!(self, Self::FileSignal | Self::File)
    }
}

/// Headers by name in lower case: with their values, and with the files that
/// have them.
pub(super) type Headers = (Vec<(String, Secret)>, Vec<(String, PathBuf)>);

/// What all places say of one signal's destination, the strongest first.
pub(super) struct Layers<'a>(pub(super) [(Place, &'a Said); 4]);

impl<'a> Layers<'a> {
    /// The first place that says it.
    pub(super) fn first<T>(&self, key: impl Fn(&'a Said) -> Option<T>) -> Option<(Place, T)> {
        self.0.iter().find_map(|(place, said)| key(said).map(|value| (*place, value)))
    }

    pub(super) fn value<T>(&self, key: impl Fn(&'a Said) -> Option<T>) -> Option<T> {
        self.first(key).map(|(_, value)| value)
    }

    /// Headers are one key: whoever names other ones for a signal does not
    /// want the credentials of the general destination sent there.
    pub(super) fn headers(&self) -> Headers {
        let place = self
            .0
            .iter()
            .find(|(_, said)| !said.headers.is_empty() || !said.header_files.is_empty());
        let Some((_, said)) = place else { return Default::default() };
        (
            said.headers
                .iter()
                .map(|(name, value)| (name.to_ascii_lowercase(), value.clone()))
                .collect(),
            said.header_files
                .iter()
                .map(|(name, path)| (name.to_ascii_lowercase(), path.clone()))
                .collect(),
        )
    }
}
