//! Where log lines go and what they look like: standard error, as logfmt
//! (default, as Prometheus' own servers write), JSON, or text for a person.
//! Whoever else wants them, or the spans of the daemon's own work, adds a
//! [`Listener`].

use std::fmt;
use std::io::IsTerminal;
use std::str::FromStr;

use tracing::Metadata;
use tracing_subscriber::filter::{FilterExt, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};

use super::logfmt::Logfmt;

/// `--log.format`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogFormat {
    #[default]
    Logfmt,
    Json,
    /// For a person; coloured on a terminal only.
    Text,
}

impl LogFormat {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Logfmt => "logfmt",
            Self::Json => "json",
            Self::Text => "text",
        }
    }
}

impl fmt::Display for LogFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for LogFormat {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::Logfmt, Self::Json, Self::Text]
            .into_iter()
            .find(|format| format.as_str() == text)
            .ok_or_else(|| format!("{text:?} is not a log format: use logfmt, json or text"))
    }
}

/// Why logging could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum LoggingError {
    #[error(
        "{0:?} is not a log level: use error, warn, info, debug or trace, or directives such as \
         info,spark_exporter=debug"
    )]
    Level(String),
    #[error("logging was set up already: {0}")]
    AlreadySet(#[from] tracing_subscriber::util::TryInitError),
}

/// Somebody who is told of log lines, or of spans, beside standard error.
pub type Listener = Box<dyn Layer<Registry> + Send + Sync>;

/// Sends log lines of `level` and above to standard error, and to the
/// listeners what they ask for. Call once.
///
/// # Errors
/// When `level` does not parse, or logging was set up before.
pub fn init(
    level: &str,
    format: LogFormat,
    mut listeners: Vec<Listener>,
) -> Result<(), LoggingError> {
    // Spans are for the others: a line says by itself what it is about.
    let lines = filter(level)?.and(filter_fn(is_line));
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    listeners.push(match format {
        LogFormat::Logfmt => layer.event_format(Logfmt).with_filter(lines).boxed(),
        LogFormat::Json => {
            let json = layer.json().flatten_event(true).with_current_span(false);
            json.with_span_list(false).with_filter(lines).boxed()
        }
        LogFormat::Text => {
            let colours = std::io::stderr().is_terminal();
            layer.with_target(false).with_ansi(colours).with_filter(lines).boxed()
        }
    });
    Ok(Registry::default().with(listeners).try_init()?)
}

/// A listener of the log lines that `level` lets through, as far as they are
/// our own: those of the libraries that send them would make more of them.
///
/// # Errors
/// When `level` does not parse.
pub fn listen_to_lines(
    level: &str,
    layer: impl Layer<Registry> + Send + Sync,
) -> Result<Listener, LoggingError> {
    let ours = filter_fn(|metadata| metadata.is_event() && is_ours(metadata));
    Ok(layer.with_filter(filter(level)?.and(ours)).boxed())
}

/// A listener of the spans of the daemon's own work.
pub fn listen_to_spans(layer: impl Layer<Registry> + Send + Sync) -> Listener {
    layer.with_filter(filter_fn(|metadata| metadata.is_span() && is_ours(metadata))).boxed()
}

fn is_line(metadata: &Metadata<'_>) -> bool {
    metadata.is_event()
}

fn is_ours(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with("spark_exporter")
}

/// A bare level speaks of our own lines; the libraries below us stay at
/// `warn`, unless asked for by name. What a watch of Kubernetes warns of with
/// each try we say ourselves, once.
fn filter(level: &str) -> Result<EnvFilter, LoggingError> {
    let wrong = || LoggingError::Level(level.to_owned());
    let level = level.trim();
    let directives = match level.to_ascii_lowercase().as_str() {
        bare @ ("error" | "off") => bare.to_owned(),
        bare @ ("warn" | "info" | "debug" | "trace") => {
            format!("warn,kube_runtime=error,spark_exporter={bare}")
        }
        // One word that is no level would be taken for the name of a module.
        _ if !level.contains('=') => return Err(wrong()),
        _ => level.to_owned(),
    };
    EnvFilter::try_new(directives).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels() {
        for level in ["info", "DEBUG", "error", "info,spark_exporter=trace"] {
            assert!(filter(level).is_ok(), "{level}");
        }
        for level in ["", "loud", "a=b=c", "spark_exporter=loud"] {
            assert!(filter(level).is_err(), "{level}");
        }
    }

    #[test]
    fn formats() {
        assert_eq!("json".parse(), Ok(LogFormat::Json));
        assert!("xml".parse::<LogFormat>().is_err());
    }
}
