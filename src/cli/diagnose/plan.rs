//! From what was given on the command line to a list of things to read: every
//! log of a place, every attempt of a server.

use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use anyhow::{Context, bail};
use jiff::Timestamp;

use super::read::{Server, Work};
use super::session::Session;
use crate::config::{Location, Page, ServerUrl, Shown};
use crate::discover::{self, Role};
use crate::eventlog::{self, LogFiles};
use crate::fetch::files::{Files, ZipFiles, open_place};
use crate::fetch::{FetchError, FetchErrorKind};
use crate::rest::Api;
use crate::rest::applications::{self, ApplicationInfo, Filter, Status};

/// Of a History Server that lists more, so many are read where nothing else
/// was said.
const LATEST: usize = 10;

/// The applications wanted of each source.
#[derive(Debug, Clone, Default)]
pub(super) struct Wanted {
    /// Empty: all.
    pub(super) app_ids: Vec<String>,
    /// The latest so many.
    pub(super) latest: Option<usize>,
}

impl Wanted {
    pub(super) fn is(&self, app_id: &str) -> bool {
        self.app_ids.is_empty() || self.app_ids.iter().any(|wanted| wanted == app_id)
    }
}

/// What the pages among these sources show, of the first that shows one thing.
pub(super) fn shown(sources: &[String]) -> Option<Shown> {
    let mut pages = sources.iter().filter_map(|source| source.parse::<Page>().ok());
    pages.find_map(|page| page.shown)
}

/// What there is to read in one source, in order. What cannot be looked at is
/// a [`Work::Fault`] in its place.
pub(super) fn plan(source: &str, wanted: &Wanted, session: &Session) -> anyhow::Result<Vec<Work>> {
    if source.starts_with("http://") || source.starts_with("https://") {
        let page: Page = source.parse().map_err(anyhow::Error::msg)?;
        return session.wait(of_server(page, wanted, session));
    }
    of_place(&source.parse().map_err(anyhow::Error::msg)?, wanted, session)
}

fn of_place(place: &Location, wanted: &Wanted, session: &Session) -> anyhow::Result<Vec<Work>> {
    let files: Arc<dyn Files> = open_place(place, &session.access)?.into();
    let scan = eventlog::scan(&*files)?;
    if scan.logs.is_empty() && scan.skipped.is_empty() {
        bail!("{place} holds no event log");
    }
    let faults =
        scan.skipped.iter().filter(|_| session.has_nameless()).map(|(path, reason)| {
            Work::Fault(format!("{} {}", files.display(path), reason.message()))
        });
    let mut work: Vec<Work> = faults.collect();
    let only = scan.logs.len() == 1;
    for log in chosen(scan.logs, wanted) {
        let files = Arc::clone(&files);
        if !is_zip(&*files, &log, only) {
            work.push(Work::Log { files, log });
        } else if let Location::Remote(_) = place {
            work.push(Work::RemoteZip { files, log });
        } else {
            work.extend(local_zip(&files.display(&log.path)));
        }
    }
    Ok(work)
}

/// Each log of a zip is read on its own.
fn local_zip(path: &str) -> Vec<Work> {
    let opened = File::open(path).map_err(anyhow::Error::from);
    let opened = opened.with_context(|| format!("cannot read {path}"));
    match opened.and_then(|file| Ok(ZipFiles::of_file(file, path)?)) {
        Ok(zip) => zipped(zip),
        Err(error) => vec![Work::Fault(format!("{error:#}"))],
    }
}

/// What is in a zip.
pub(super) fn zipped(zip: ZipFiles) -> Vec<Work> {
    let zip: Arc<dyn Files> = Arc::new(zip);
    let logs = match eventlog::scan(&*zip) {
        Ok(scan) => scan.logs,
        Err(error) => return vec![Work::Fault(error.to_string())],
    };
    if logs.is_empty() {
        return vec![Work::Fault(format!("{} holds no event log", zip.display("")))];
    }
    logs.into_iter().map(|log| Work::Log { files: Arc::clone(&zip), log }).collect()
}

/// The logs to read. Names are only hints of who an application is: where
/// none fits an id that is wanted, all are read to find it.
fn chosen(mut logs: Vec<LogFiles>, wanted: &Wanted) -> Vec<LogFiles> {
    let fits = |log: &LogFiles, id: &str| {
        let id = id.to_ascii_lowercase();
        let rest = log.name.to_ascii_lowercase();
        rest.strip_prefix(&id).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    };
    let named = |id: &String| logs.iter().any(|log| fits(log, id) && !is_named_zip(&log.path));
    if !wanted.app_ids.is_empty() && wanted.app_ids.iter().all(named) {
        logs.retain(|log| wanted.app_ids.iter().any(|id| fits(log, id)));
    }
    if let Some(latest) = wanted.latest {
        logs.sort_by_key(|log| std::cmp::Reverse(log.modified));
        logs.truncate(latest);
    }
    logs
}

fn is_named_zip(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, suffix)| suffix.eq_ignore_ascii_case("zip"))
}

/// A file that was given alone may be a zip whatever its name.
fn is_zip(files: &dyn Files, log: &LogFiles, only: bool) -> bool {
    let [file] = log.files.as_slice() else { return false };
    let mut start = [0; 4];
    (only || is_named_zip(&file.path))
        && files.open(&file.path, 0).is_ok_and(|mut reader| reader.read_exact(&mut start).is_ok())
        && matches!(&start, b"PK\x03\x04" | b"PK\x05\x06")
}

async fn of_server(page: Page, wanted: &Wanted, session: &Session) -> anyhow::Result<Vec<Work>> {
    let Page { server: url, application, shown: _ } = page;
    let endpoint = discover::probe(&session.driver, &url).await;
    let endpoint = endpoint.map_err(|error| of_yarn(&url, error))?;
    if endpoint.role == Role::Driver {
        return Ok(vec![Work::Driver { url }]);
    }
    let server = Arc::new(Server { url: url.clone() });
    let api = Api::new(&session.history_server, &url);
    let mut attempts = Vec::new();
    let mut add = |application: &ApplicationInfo, only: Option<&str>, running: bool| {
        for attempt in &application.attempts {
            if (running || attempt.is_completed())
                && only.is_none_or(|only| attempt.attempt_id.get() == only)
            {
                attempts.push((application.clone(), attempt.clone()));
            }
        }
    };
    // Whoever names an application wants it even while it runs.
    if let Some((id, attempt)) = &application {
        add(&applications::one(&api, id).await?, attempt.as_deref(), true);
    } else if wanted.app_ids.is_empty() {
        let filter = Filter { status: Some(Status::Completed), ..Filter::default() };
        for application in applications::get(&api, filter).await? {
            add(&application, None, false);
        }
    } else {
        for id in &wanted.app_ids {
            match applications::one(&api, id).await {
                Ok(application) => add(&application, None, true),
                // Another source may know it.
                Err(error) if error.kind == FetchErrorKind::UnknownApplication => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    if attempts.is_empty() && wanted.app_ids.is_empty() {
        bail!("{}", nothing_listed(&url, application.as_ref()));
    }
    attempts.sort_by_key(|(_, attempt)| {
        std::cmp::Reverse(attempt.end().or(attempt.last_updated()).unwrap_or(Timestamp::MIN))
    });
    let latest = wanted.latest.unwrap_or(LATEST);
    let named = application.is_some() || !wanted.app_ids.is_empty();
    if attempts.len() > latest && (!named || wanted.latest.is_some()) {
        if wanted.latest.is_none() {
            session.progress.complain(&format!(
                "{url} lists {} finished applications: reading the {latest} latest; --latest or \
                 --app-id chooses others",
                attempts.len()
            ));
        }
        attempts.truncate(latest);
    }
    let work = attempts.into_iter().map(|(application, attempt)| Work::Attempt {
        server: Arc::clone(&server),
        application,
        attempt,
    });
    Ok(work.collect())
}

/// YARN's proxy leads to a driver only while that runs.
fn of_yarn(url: &ServerUrl, error: FetchError) -> anyhow::Error {
    let redirected = error.status.is_some_and(|status| (300..400).contains(&status));
    let of_yarn = url.to_string().contains("/proxy/application_");
    if of_yarn && (redirected || error.kind == FetchErrorKind::NotJson) {
        return anyhow::Error::from(error).context(
            "YARN's proxy did not lead to a driver: it does so only while the application runs, \
             and then sends people on to the History Server. Give that server's URL with \
             --app-id, or credentials where the proxy wants a login",
        );
    }
    error.into()
}

fn nothing_listed(url: &ServerUrl, application: Option<&(String, Option<String>)>) -> String {
    match application {
        None => format!("the History Server at {url} lists no finished application"),
        Some((id, attempt)) => format!(
            "the History Server at {url} lists no attempt {} of {id}",
            attempt.as_deref().unwrap_or("at all")
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    fn log(path: &str, age: u64) -> LogFiles {
        LogFiles {
            path: path.to_owned(),
            name: path.trim_end_matches(".zstd").to_owned(),
            files: Vec::new(),
            bytes: 1,
            modified: SystemTime::UNIX_EPOCH + Duration::from_secs(1_000 - age),
            in_progress: None,
            compacted: false,
            missing_files: false,
        }
    }

    fn names(logs: &[&str], ids: &[&str], latest: Option<usize>) -> Vec<String> {
        let logs = logs.iter().enumerate().map(|(age, path)| log(path, age as u64)).collect();
        let app_ids = ids.iter().map(ToString::to_string).collect();
        let chosen = chosen(logs, &Wanted { app_ids, latest });
        chosen.into_iter().map(|log| log.path).collect()
    }

    #[test]
    fn names_save_reading_where_they_tell() {
        let logs = ["app-1.zstd", "app-11", "app-1_2", "application_2_1"];
        assert_eq!(names(&logs, &["app-1"], None), ["app-1.zstd", "app-1_2"]);
        assert_eq!(names(&logs, &["application_2"], None), ["application_2_1"]);
        assert_eq!(names(&logs, &["app-1", "app-9"], None), logs, "app-9 may have another name");
        assert_eq!(names(&logs, &[], None), logs);
    }

    #[test]
    fn the_latest_are_those_that_changed_last() {
        assert_eq!(names(&["a", "b", "c"], &[], Some(2)), ["a", "b"]);
    }
}
