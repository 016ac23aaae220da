//! One thing to read, read and diagnosed.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail};
use jiff::Timestamp;

use super::session::Session;
use super::{plan, saved};
use crate::config::{Page, ServerUrl};
use crate::diagnose::diagnose;
use crate::discover::{self, Role};
use crate::eventlog::{self, Listed, LogFiles, ReadOptions};
use crate::fetch::files::{Files, ZipFiles};
use crate::model::{Application, Source};
use crate::report::Diagnosed;
use crate::rest::applications::{ApplicationAttemptInfo, ApplicationInfo};
use crate::rest::running::RunningApplication;
use crate::rest::{Api, completed, logs};

/// A History Server.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) url: ServerUrl,
}

#[derive(Debug)]
pub(super) enum Work {
    Log {
        files: Arc<dyn Files>,
        log: LogFiles,
    },
    /// A zip that has to be downloaded first.
    RemoteZip {
        files: Arc<dyn Files>,
        log: LogFiles,
    },
    Attempt {
        server: Arc<Server>,
        application: ApplicationInfo,
        attempt: ApplicationAttemptInfo,
    },
    Driver {
        url: ServerUrl,
    },
    /// Saved answers of the REST API about one run.
    Saved {
        files: Vec<PathBuf>,
    },
    /// A UI whose address stood in a driver's log.
    Followed {
        url: String,
    },
    /// Made of texts for people: there is no run to read.
    Text {
        application: Box<Application>,
        place: String,
    },
    /// Known beforehand to be unreadable, with the reason.
    Fault(String),
}

/// A run, and where it was read.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) run: Diagnosed,
    pub(super) place: String,
}

impl Work {
    /// Bytes that will be read, as far as is known.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Log { log, .. } | Self::RemoteZip { log, .. } => log.bytes,
            _ => 0,
        }
    }

    /// One run, or those of a zip; without those of other shards. Errors are in words for a person.
    pub(super) fn read(self, wanted: &[String], session: &Session) -> Vec<anyhow::Result<Read>> {
        let Self::RemoteZip { files, log } = self else {
            let read = self.read_one(wanted, session, true).transpose();
            return read.into_iter().collect();
        };
        match download(files, &log, session) {
            // Its bytes counted when they came.
            Ok(zip) => plan::zipped(zip)
                .into_iter()
                .filter_map(|work| work.read_one(wanted, session, false).transpose())
                .collect(),
            Err(error) => vec![Err(error)],
        }
    }

    /// `None`: another shard reads it.
    fn read_one(
        self,
        wanted: &[String],
        session: &Session,
        counts: bool,
    ) -> anyhow::Result<Option<Read>> {
        let read = self.read_ours(wanted, session, counts);
        match &read {
            Ok(Some(_)) => session.share.take(),
            Ok(None) => session.share.leave(),
            Err(_) => {}
        }
        read
    }

    fn read_ours(
        self,
        wanted: &[String],
        session: &Session,
        counts: bool,
    ) -> anyhow::Result<Option<Read>> {
        let ours = |name: &str| session.is_ours(name);
        let (mut application, place) = match self {
            Self::Fault(message) => anyhow::bail!(message),
            Self::RemoteZip { .. } => anyhow::bail!("a zip within a zip is not read"),
            Self::Log { files, log } => {
                let place = files.display(&log.path);
                session.progress.reading(&place);
                let counting = session.progress.counting(Arc::clone(&files));
                let files: &dyn Files = if counts { &counting } else { &*files };
                let named = Cell::new(None);
                let wants = |name: &str| {
                    named.set(Some(ours(name)));
                    ours(name)
                };
                let read = eventlog::read_if(&log, files, &options(session), &wants);
                let outcome = match read {
                    Err(error) if !session.tells(named.get(), &error) => return Ok(None),
                    read => read?,
                };
                if log.in_progress == Some(true) {
                    session.progress.complain(&format!(
                        "{place} is still being written: read as far as it goes now"
                    ));
                }
                (outcome.application, place)
            }
            Self::Driver { url } => {
                session.progress.reading(&url.to_string());
                let mut reader = RunningApplication::new(&session.cluster, url.clone());
                let polled = reader.poll_if(&session.driver, Timestamp::now(), &ours);
                let Some(application) = session.wait(polled)? else { return Ok(None) };
                (application, url.to_string())
            }
            Self::Saved { files } => saved::read(&files, wanted, session)?,
            Self::Followed { url } => (followed(&url, session)?, url),
            Self::Text { application, place } => (*application, place),
            Self::Attempt { application, .. } if !ours(application.name_or_id()) => {
                return Ok(None);
            }
            Self::Attempt { server, application, attempt } => {
                let place = format!("{} {}", server.url, application.id.get());
                session.progress.reading(&place);
                (of_server(&server.url, &application, &attempt, session)?, place)
            }
        };
        if !ours(&application.name) {
            return Ok(None);
        }
        let is_text = matches!(application.source, Source::DriverLog | Source::Explain);
        if !is_text {
            session.texts.enrich(&mut application, &session.progress);
        }
        let mut diagnosis =
            diagnose(&application, &session.config.thresholds_for(&application.name))
                .priced(&application, &session.config.prices);
        session.texts.judge(&application, &mut diagnosis);
        Ok(Some(Read { run: Diagnosed { application: slim(application), diagnosis }, place }))
    }
}

/// The driver at an address that a log told: asked without credentials, since
/// anybody may have written it there.
fn followed(text: &str, session: &Session) -> anyhow::Result<Application> {
    let page: Page = text.parse().map_err(anyhow::Error::msg)?;
    session.progress.reading(&page.server.to_string());
    let asked = async {
        let endpoint = discover::probe(&session.plain, &page.server).await?;
        if endpoint.role != Role::Driver {
            bail!(
                "the log's UI address {} is now a History Server's: give that with --app-id",
                page.server
            );
        }
        let mut reader = RunningApplication::new(&session.cluster, page.server.clone());
        Ok(reader.poll(&session.plain, Timestamp::now()).await?)
    };
    session.wait(asked).context("the UI that the log names cannot be read")
}

fn download(files: Arc<dyn Files>, log: &LogFiles, session: &Session) -> anyhow::Result<ZipFiles> {
    let place = files.display(&log.path);
    session.progress.reading(&place);
    let mut reader = session.progress.counting(files).open(&log.path, 0)?;
    let file = session.spool.copy(&mut reader).with_context(|| format!("cannot read {place}"))?;
    Ok(ZipFiles::new(file, place, log.modified)?)
}

fn options(session: &Session) -> ReadOptions<'_> {
    ReadOptions { cluster: &session.cluster, limits: &session.config.limits }
}

/// Its log, or what the server's API tells where that cannot be had.
fn of_server(
    url: &ServerUrl,
    application: &ApplicationInfo,
    attempt: &ApplicationAttemptInfo,
    session: &Session,
) -> anyhow::Result<Application> {
    let api = Api::new(&session.history_server, url);
    let downloaded = session.wait(logs::get(&api, application, attempt, &session.spool));
    let (why, rest_may_help) = match downloaded {
        Err(error) => (error.to_string(), error.rest_may_help()),
        Ok(zip) => {
            let listed = Listed::from((application, attempt));
            match eventlog::read_listed(&zip, &listed, &options(session)) {
                Ok(outcome) => {
                    if !attempt.is_completed() {
                        session.progress.complain(&format!(
                            "{} runs: its log was read as far as the server has it",
                            application.id.get()
                        ));
                    }
                    return Ok(outcome.application);
                }
                Err(error) => (error.to_string(), true),
            }
        }
    };
    if !(rest_may_help && session.config.read.rest_fallback) {
        anyhow::bail!(why);
    }
    session.progress.complain(&format!("{why}; asking the server's REST API instead"));
    let options = completed::Options::within(&session.config.limits);
    let read = completed::read(&api, &session.cluster, application, attempt, options);
    session.wait(read).context("nor by the REST API")
}

/// Without what only diagnosing needs: task spans are most of a run's memory.
fn slim(mut application: Application) -> Application {
    for stage in &mut application.stages {
        stage.timeline = None;
    }
    application
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Limits};
    use crate::fetch::files::LocalFiles;

    fn read(path: &str, limits: Limits) -> Vec<anyhow::Result<Read>> {
        let files: Arc<dyn Files> = Arc::new(LocalFiles::at(path.as_ref()).expect("there"));
        let log = eventlog::scan(&*files).expect("a listing").logs.remove(0);
        let config = Config { limits, ..Config::default() };
        let session = Session::new(config, "c").expect("a session");
        Work::RemoteZip { files, log }.read(&[], &session)
    }

    /// As from a bucket: from its beginning to its end, into a file.
    #[test]
    fn a_zip_that_lies_elsewhere_is_downloaded_first() {
        let path = "tests/fixtures/zip/attempts-4.3.0.zip";
        let ids: Vec<String> = read(path, Limits::default())
            .into_iter()
            .map(|read| read.expect("readable"))
            .inspect(|read| assert!(read.place.contains("attempts-4.3.0.zip!/"), "{}", read.place))
            .map(|read| read.run.application.id.to_string())
            .collect();
        assert_eq!(ids, ["c/local-1796009084799/1", "c/local-1796009084799/2"]);

        let limits = Limits { spool_size: "1KiB".parse().expect("a size"), ..Limits::default() };
        let read = read(path, limits);
        let [Err(error)] = read.as_slice() else { panic!("too large, {read:?}") };
        let error = format!("{error:#}");
        assert!(error.contains(path) && error.contains("limits.spool_size"), "{error}");
    }
}
