//! Reading the configuration again while the daemon runs: on SIGHUP, and on
//! `/-/reload` where that is on. One time after the other; what is not taken
//! changes nothing.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::signal::unix::Signal;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::serve::Serve;
use crate::config::Config;
use crate::expose::{LiveTexts, ReloadRequest, WebConfig};
use crate::report::{Texts, privacy};
use crate::telemetry::Telemetry;
use crate::telemetry::events::{ConfigLoaded, ConfigRefused, RestartNeeded};
use crate::watch::Watcher;

/// Everything that a reload touches.
pub(super) struct Reload {
    pub(super) serve: Arc<Serve>,
    pub(super) watcher: Arc<Watcher>,
    pub(super) web: Arc<WebConfig>,
    pub(super) texts: Arc<LiveTexts>,
    pub(super) telemetry: Arc<Telemetry>,
    /// In force now.
    pub(super) config: Config,
}

impl Reload {
    /// Until `stop`.
    pub(super) async fn run(
        mut self,
        mut hangup: Signal,
        mut requests: mpsc::Receiver<ReloadRequest>,
        stop: CancellationToken,
    ) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                Some(()) = hangup.recv() => {
                    // What is wrong is said by its event.
                    let _ = self.reload().await;
                }
                Some(answer) = requests.recv() => {
                    let _ = answer.send(self.reload().await);
                }
                else => return,
            }
        }
    }

    /// What to tell whoever asked, or what is wrong; both files are looked at
    /// in any case.
    async fn reload(&mut self) -> Result<String, String> {
        let web = Arc::clone(&self.web);
        let web = tokio::task::spawn_blocking(move || web.look(true)).await;
        let web = web.unwrap_or_else(|error| Err(error.to_string())).map(|_| ());
        let config = self.reload_config().await;
        match (config, web) {
            (Ok(text), Ok(())) => Ok(text),
            (Err(one), Err(other)) => Err(format!("{one}\n{other}\n")),
            (Err(why), Ok(())) | (Ok(_), Err(why)) => Err(format!("{why}\n")),
        }
    }

    async fn reload_config(&mut self) -> Result<String, String> {
        if !self.serve.has_config_file() {
            return Ok("Reloaded: there is no --config.file.\n".to_owned());
        }
        let taken = self.try_reload().await;
        taken.map_err(|message| {
            let message = privacy::plain(&message);
            ConfigRefused { message: message.clone() }.emit(&self.telemetry);
            format!("The configuration was not taken, the one before stays in force: {message}")
        })
    }

    async fn try_reload(&mut self) -> Result<String, String> {
        let serve = Arc::clone(&self.serve);
        let read = tokio::task::spawn_blocking(move || serve.settings()).await;
        let read = read.map_err(|error| error.to_string())?;
        let mut config = read.map_err(|error| format!("{error:#}"))?;
        let mut waiting = keep_what_needs_a_restart(&self.config, &mut config);
        let applied = self.watcher.reload(config.clone()).await.map_err(|why| why.to_string())?;
        self.texts.set(texts(&config));
        self.config = config;
        let sources = Some((applied.started, applied.stopped, applied.kept));
        ConfigLoaded { at: Timestamp::now(), sources }.emit(&self.telemetry);
        let mut text = format!(
            "Reloaded. Sources: {} new, {} gone, {} as before.\n",
            applied.started, applied.stopped, applied.kept
        );
        waiting.extend(applied.waiting);
        for setting in waiting {
            RestartNeeded { setting }.emit(&self.telemetry);
            text += "Changed, and only read at the start: ";
            text += setting;
            text.push('\n');
        }
        Ok(text)
    }
}

pub(super) fn texts(config: &Config) -> Texts {
    if config.web.show_sql { Texts::Shown } else { Texts::Hidden }
}

/// Puts what is in use since the start in the place of what changed; returns
/// the keys of what did. What decides whose a run is, the watcher keeps.
fn keep_what_needs_a_restart(old: &Config, new: &mut Config) -> Vec<&'static str> {
    let mut changed = Vec::new();
    let mut keep = |key, differs: bool| {
        if differs {
            changed.push(key);
        }
    };
    keep("storage", old.storage != new.storage);
    new.storage = old.storage.clone();
    keep("otlp", old.otlp != new.otlp);
    new.otlp = old.otlp.clone();
    let (before, limits) = (&old.limits, &mut new.limits);
    keep("limits.concurrent_logs", before.concurrent_logs != limits.concurrent_logs);
    limits.concurrent_logs = before.concurrent_logs;
    keep("limits.followed_logs", before.followed_logs != limits.followed_logs);
    limits.followed_logs = before.followed_logs;
    keep("limits.spool_size", before.spool_size != limits.spool_size);
    limits.spool_size = before.spool_size;
    keep("limits.app_names", before.app_names != limits.app_names);
    limits.app_names = before.app_names;
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_a_restart_is_named_and_kept() {
        let old = Config::parse("storage: {temp_path: /a}\nlimits: {followed_logs: 3}\n").unwrap();
        let text = "storage: {temp_path: /b}\nretention: 1h\notlp: {endpoint: 'http://c:4318'}\n\
                    limits: {followed_logs: 4, applications: 7, spool_size: 1GiB, app_names: 9,\n\
                    \x20 concurrent_logs: 1}\n";
        let mut new = Config::parse(text).unwrap();
        let changed = keep_what_needs_a_restart(&old, &mut new);
        assert_eq!(
            changed,
            [
                "storage",
                "otlp",
                "limits.concurrent_logs",
                "limits.followed_logs",
                "limits.spool_size",
                "limits.app_names"
            ]
        );
        assert_eq!((&new.storage, &new.otlp), (&old.storage, &old.otlp));
        assert_eq!(new.limits.followed_logs, 3);
        assert_eq!((new.limits.applications, new.retention.0.get().as_secs()), (7, 3_600));
        assert!(keep_what_needs_a_restart(&old, &mut old.clone()).is_empty());
    }
}
