//! `/-/reload`: asks the daemon to read its configuration again, and waits for
//! what comes of it.

use bytes::Bytes;
use http::header::{ALLOW, HOST, ORIGIN};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use http_body_util::Full;
use tokio::sync::{mpsc, oneshot};

use super::routes::{plain, with_text};

/// What the daemon is asked for, and where its answer goes: what to tell
/// whoever asked, or why the configuration was not taken.
pub type ReloadRequest = oneshot::Sender<Result<String, String>>;

/// Who reads the configuration again, one time after the other.
#[derive(Debug, Clone)]
pub struct Reloader(mpsc::Sender<ReloadRequest>);

impl Reloader {
    pub fn new() -> (Self, mpsc::Receiver<ReloadRequest>) {
        let (sender, receiver) = mpsc::channel(1);
        (Self(sender), receiver)
    }
}

/// `reloader`: where the operator lets people do this by HTTP.
pub(super) async fn reload(
    method: &Method,
    headers: &HeaderMap,
    reloader: Option<&Reloader>,
) -> Response<Full<Bytes>> {
    let Some(reloader) = reloader else {
        let text = "This is off: start the daemon with --web.enable-lifecycle, or send it \
                    SIGHUP.\n";
        return plain(StatusCode::FORBIDDEN, text);
    };
    if !matches!(*method, Method::POST | Method::PUT) {
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "Only POST and PUT.\n");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST, PUT"));
        return response;
    }
    if is_of_another_site(headers) {
        return plain(StatusCode::FORBIDDEN, "Not from a page of another site.\n");
    }
    let (answer, answered) = oneshot::channel();
    if reloader.0.send(answer).await.is_err() {
        return super::routes::stopping();
    }
    match answered.await {
        Ok(Ok(text)) => with_text(StatusCode::OK, text),
        Ok(Err(why)) => with_text(StatusCode::INTERNAL_SERVER_ERROR, why),
        Err(_) => super::routes::stopping(),
    }
}

/// Whether a browser sends this for a page from elsewhere, with credentials
/// that it keeps: no person asked for it then.
fn is_of_another_site(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = text("sec-fetch-site") {
        return !matches!(site, "same-origin" | "none");
    }
    let Some(origin) = headers.get(ORIGIN) else { return false };
    let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    origin.map(|(_, host)| host) != host
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_other_sites_are_told_apart() {
        for (headers, elsewhere) in [
            (vec![], false),
            (vec![("host", "a:1"), ("origin", "http://a:1")], false),
            (vec![("host", "a:1"), ("origin", "http://b:1")], true),
            (vec![("host", "a:1"), ("origin", "null")], true),
            (vec![("sec-fetch-site", "same-origin")], false),
            (vec![("sec-fetch-site", "none")], false),
            (vec![("sec-fetch-site", "cross-site")], true),
            (vec![("sec-fetch-site", "same-site")], true),
        ] {
            let mut map = HeaderMap::new();
            for (name, value) in &headers {
                map.insert(*name, HeaderValue::from_static(value));
            }
            assert_eq!(is_of_another_site(&map), elsewhere, "{headers:?}");
        }
    }
}
