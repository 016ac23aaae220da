//! Files that are read again while the daemon runs: its configuration, and
//! that of the web end.

use jiff::Timestamp;
use tracing::{error, info, warn};

use crate::telemetry::Telemetry;

/// The file of `--web.config.file` and what it names are in force.
#[derive(Debug)]
pub struct WebConfigLoaded {
    pub at: Timestamp,
    /// Whether the port speaks TLS.
    pub tls: bool,
    /// Whether this is the start.
    pub first: bool,
}

impl WebConfigLoaded {
    pub fn emit(self, telemetry: &Telemetry) {
        let Self { at, tls, first } = self;
        if !first {
            info!(tls, "web configuration read again");
        }
        let status = &mut telemetry.counters().web_config;
        *status = Some(crate::telemetry::ReloadStatus { good: true, last_success: at });
    }
}

/// They changed and cannot be used: what was in force before is so still.
#[derive(Debug)]
pub struct WebConfigRefused {
    /// Names files and keys, and nothing that is in them.
    pub message: String,
}

impl WebConfigRefused {
    pub fn emit(self, telemetry: &Telemetry) {
        error!(error = self.message, "web configuration not taken: the one before stays in force");
        if let Some(status) = &mut telemetry.counters().web_config {
            status.good = false;
        }
    }
}

/// The daemon's configuration is in force.
#[derive(Debug)]
pub struct ConfigLoaded {
    pub at: Timestamp,
    /// Sources begun, ended and left as they are; `None` at the start.
    pub sources: Option<(usize, usize, usize)>,
}

impl ConfigLoaded {
    pub fn emit(self, telemetry: &Telemetry) {
        if let Some((started, stopped, kept)) = self.sources {
            info!(
                sources_started = started,
                sources_stopped = stopped,
                sources_kept = kept,
                "configuration read again"
            );
        }
        telemetry.counters().config =
            Some(crate::telemetry::ReloadStatus { good: true, last_success: self.at });
    }
}

/// The configuration was to be read again and cannot be used: the one before
/// is in force still.
#[derive(Debug)]
pub struct ConfigRefused {
    pub message: String,
}

impl ConfigRefused {
    pub fn emit(self, telemetry: &Telemetry) {
        error!(error = self.message, "configuration not taken: the one before stays in force");
        if let Some(status) = &mut telemetry.counters().config {
            status.good = false;
        }
    }
}

/// A setting changed in the file that is only read at the start.
#[derive(Debug)]
pub struct RestartNeeded {
    /// Its key in the file.
    pub setting: &'static str,
}

impl RestartNeeded {
    pub fn emit(self, _: &Telemetry) {
        warn!(
            setting = self.setting,
            "changed in the configuration, and only read at the start: it stays as it was until \
             the daemon is restarted"
        );
    }
}
