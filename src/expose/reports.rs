//! `/applications/...`: the report of one run, as a page, as Markdown (`.md`)
//! and as JSON (`.json`). Made when it is asked for, off the async threads, a
//! few at a time, and kept until the run is read anew.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderValue, RETRY_AFTER};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use tokio::time::timeout;

pub(super) use super::address::PREFIX;
use super::negotiate::{self, Encoding};
use super::report_cache::Form;
use super::routes::{negotiated_response, plain, stopping};
use super::state::{ExposeState, Published};
use super::{address, body};
use crate::metrics::RunView;
use crate::report::{self, Place, Texts, View};

/// How long to wait for one's turn.
const TURN: Duration = Duration::from_secs(10);
/// Of the JSON, uncompressed; pages are far smaller by their own bounds.
const MOST_BYTES: usize = 32 * 1024 * 1024;
/// Stage attempts in the JSON, the costliest.
const MOST_STAGES: usize = 1_000;

const NOT_HELD: &str = "No such application is held: it has left since its retention is over, or \
                        was not read. / lists those that are.\n";
const TOO_LARGE: &str =
    "This run's JSON is too large to be served: spark-exporter diagnose --format json prints it.\n";
const BUSY: &str = "Other reports are being made: ask again.\n";

pub(super) async fn answer<B>(request: &Request<B>, state: &ExposeState) -> Response<Full<Bytes>> {
    let rest = request.uri().path().strip_prefix(PREFIX).unwrap_or_default();
    let Some((run, form)) = find(rest, &state.current()) else {
        return plain(StatusCode::NOT_FOUND, NOT_HELD);
    };
    let encoding = negotiate::encoding(request.headers());
    let body = match state.reports.get(&run, form, encoding) {
        Some(body) => body,
        None => match make(run, form, encoding, state).await {
            Ok(body) => body,
            Err(response) => return response,
        },
    };
    let content_type = match form {
        Form::Html => "text/html; charset=utf-8",
        Form::Markdown => "text/markdown; charset=utf-8",
        Form::Json => "application/json",
    };
    negotiated_response(content_type, encoding, HeaderValue::from_static("Accept-Encoding"), body)
}

/// The run that is meant, and the form: an id that ends as a form does is
/// still an id.
fn find(rest: &str, published: &Published) -> Option<(RunView, Form)> {
    let forms = [("", Form::Html), (".md", Form::Markdown), (".json", Form::Json)];
    forms.into_iter().find_map(|(suffix, form)| {
        let id = address::parse(rest.strip_suffix(suffix)?)?;
        let is_it = |run: &&RunView| {
            let held = &run.application.id;
            held.cluster == id.cluster
                && held.app_id == id.app_id
                && (id.attempt_id.is_none() || held.attempt_id == id.attempt_id)
        };
        // Of several attempts, and of two runs with one id, the latest.
        let run = published.runs.iter().filter(is_it).max_by_key(|run| run.application.start)?;
        Some((run.clone(), form))
    })
}

async fn make(
    run: RunView,
    form: Form,
    encoding: Encoding,
    state: &ExposeState,
) -> Result<Bytes, Response<Full<Bytes>>> {
    let reports = &state.reports;
    let turn = timeout(TURN, Arc::clone(&reports.making).acquire_owned()).await;
    let Ok(Ok(turn)) = turn else {
        let mut response = plain(StatusCode::SERVICE_UNAVAILABLE, BUSY);
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("5"));
        return Err(response);
    };
    // Somebody may have made it meanwhile.
    if let Some(body) = reports.get(&run, form, encoding) {
        return Ok(body);
    }
    let texts = reports.texts();
    let view = run.clone();
    let made = tokio::task::spawn_blocking(move || {
        let text = text(&view, form, texts);
        drop(turn);
        text.map(|text| body::text(text, encoding))
    });
    match made.await {
        Ok(Some(body)) => {
            reports.keep(&run, form, encoding, texts, &body);
            Ok(body)
        }
        Ok(None) => Err(plain(StatusCode::INTERNAL_SERVER_ERROR, TOO_LARGE)),
        Err(_) => Err(stopping()),
    }
}

/// `None`: it is too large.
fn text(run: &RunView, form: Form, texts: Texts) -> Option<String> {
    let view = View { application: &run.application, diagnosis: &run.diagnosis };
    match form {
        Form::Html => {
            let address = address::of(&run.application.id);
            Some(report::html(view, texts, Place::Daemon { address: &address }))
        }
        Form::Markdown => Some(report::markdown(view, texts)),
        Form::Json => {
            let mut out = Limited(Vec::new());
            report::json_of_one(&mut out, view, texts, MOST_STAGES).ok()?;
            String::from_utf8(out.0).ok()
        }
    }
}

/// Takes so many bytes and no more.
struct Limited(Vec<u8>);

impl io::Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MOST_BYTES {
            return Err(io::Error::other("too large"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
