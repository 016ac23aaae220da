//! Where log lines go and what they look like: standard error, as logfmt
//! (default, as Prometheus' own servers write), JSON, or text for a person.

use std::fmt;
use std::io::IsTerminal;
use std::str::FromStr;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::SubscriberInitExt;

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

/// Sends log lines of `level` and above to standard error. Call once.
///
/// # Errors
/// When `level` does not parse, or logging was set up before.
pub fn init(level: &str, format: LogFormat) -> Result<(), LoggingError> {
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter(level)?)
        .with_writer(std::io::stderr)
        .with_ansi(format == LogFormat::Text && std::io::stderr().is_terminal());
    match format {
        LogFormat::Logfmt => builder.event_format(Logfmt).finish().try_init()?,
        LogFormat::Json => {
            builder.json().flatten_event(true).with_current_span(false).finish().try_init()?;
        }
        LogFormat::Text => builder.with_target(false).finish().try_init()?,
    }
    Ok(())
}

/// A bare level speaks of our own lines; the libraries below us stay at
/// `warn`, unless asked for by name.
fn filter(level: &str) -> Result<EnvFilter, LoggingError> {
    let wrong = || LoggingError::Level(level.to_owned());
    let level = level.trim();
    let directives = match level.to_ascii_lowercase().as_str() {
        bare @ ("error" | "off") => bare.to_owned(),
        bare @ ("warn" | "info" | "debug" | "trace") => format!("warn,spark_exporter={bare}"),
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
