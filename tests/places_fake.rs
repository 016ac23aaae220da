//! What places send and what they make of answers, against servers that are
//! not what they seem: to whom credentials go, which redirect is followed,
//! and that settings reach the stores of which there is no real one here.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::Read;
use std::sync::{Arc, Mutex};

use spark_exporter::config::{BasicAuth, Cluster, HeaderValues, Limits, Secret};
#[cfg(all(feature = "gcs", feature = "azure"))]
use spark_exporter::fetch::files::FilesErrorKind;
use spark_exporter::fetch::files::{Access, Files, open_place};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::runtime::Handle;

/// A server that answers each request by its first line, and keeps what it
/// was sent.
struct Fake {
    address: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    /// `answer` makes status line, headers and body of a request's target.
    async fn start(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((mut connection, _)) = listener.accept().await {
                let mut request = Vec::new();
                let mut buffer = [0; 4096];
                while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                    match connection.read(&mut buffer).await {
                        Ok(count) if count > 0 => request.extend_from_slice(&buffer[..count]),
                        _ => break,
                    }
                }
                let request = String::from_utf8_lossy(&request).into_owned();
                let target = request.split(' ').nth(1).unwrap_or_default().to_owned();
                seen.lock().unwrap().push(request);
                let answer = answer(&target);
                let _ = connection.write_all(answer.as_bytes()).await;
                let _ = connection.shutdown().await;
            }
        });
        Self { address, requests }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn with_credentials() -> Cluster {
    let mut cluster = Cluster::default();
    cluster.http_config.basic_auth = Some(BasicAuth {
        username: "reader".to_owned(),
        username_file: None,
        password: Some(Secret::new("hunter2")),
        password_file: None,
    });
    let team = HeaderValues { secrets: vec![Secret::new("hunter3")], ..HeaderValues::default() };
    cluster.http_config.http_headers.insert("X-Team".to_owned(), team);
    cluster.webhdfs.user = Some("spark".to_owned());
    cluster
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

fn place(location: &str, cluster: &Cluster) -> Arc<dyn Files> {
    let access = Access::of(cluster, &Limits::default(), Handle::current());
    open_place(&location.parse().unwrap(), &access).unwrap().into()
}

async fn text(files: &Arc<dyn Files>, path: &'static str) -> Result<String, String> {
    let files = Arc::clone(files);
    blocking(move || {
        let mut text = String::new();
        let mut reader = files.open(path, 0).map_err(|error| error.to_string())?;
        reader.read_to_string(&mut text).map_err(|error| error.to_string())?;
        Ok(text)
    })
    .await
}

fn is_secret(text: &str) -> bool {
    // "reader:hunter2" in base64.
    ["hunter", "cmVhZGVyOmh1bnRlcjI="].iter().any(|secret| text.contains(secret))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_node_is_sent_what_the_name_node_gave_and_nothing_of_ours() {
    let data = Fake::start(|_| answer("200 OK", "", "the log")).await;
    let redirect = format!(
        "Location: http://{}/webhdfs/v1/logs/app-1?op=OPEN&delegation=token-of-hadoop\r\n",
        data.address
    );
    let name = Fake::start(move |_| answer("307 Temporary Redirect", &redirect, "")).await;
    let files = place(&format!("webhdfs://{}/logs", name.address), &with_credentials());
    assert_eq!(text(&files, "app-1").await.unwrap(), "the log");
    let asked = name.requests().remove(0);
    assert!(asked.starts_with("GET /webhdfs/v1/logs/app-1?op=OPEN&user.name=spark "), "{asked}");
    assert!(is_secret(&asked), "the NameNode gets our credentials");
    let asked = data.requests().remove(0);
    assert!(asked.contains("delegation=token-of-hadoop") && !is_secret(&asked), "{asked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_sends_us_back_to_itself_gets_them_again() {
    let redirect = "Location: /gateway/x/webhdfs/data/v1/logs/app-1?_=sealed\r\n";
    let knox = Fake::start(move |target| {
        if target.contains("/data/v1/") {
            answer("200 OK", "", "the log")
        } else {
            answer("307 Temporary Redirect", redirect, "")
        }
    })
    .await;
    let location = format!("webhdfs://{}/gateway/x/webhdfs/v1/logs", knox.address);
    let files = place(&location, &with_credentials());
    assert_eq!(text(&files, "app-1").await.unwrap(), "the log");
    let requests = knox.requests();
    assert!(requests[0].starts_with("GET /gateway/x/webhdfs/v1/logs/app-1?op=OPEN"));
    assert!(is_secret(&requests[0]) && is_secret(&requests[1]), "{requests:#?}");
}

/// One redirect, for a file, and no other.
#[tokio::test(flavor = "multi_thread")]
async fn redirects_are_not_followed_around() {
    let elsewhere = Fake::start(|_| {
        answer("302 Found", "Location: http://127.0.0.1:1/again?token=hunter4\r\n", "")
    })
    .await;
    let redirect = format!("Location: http://{}/x?token=hunter4\r\n", elsewhere.address);
    let login = Fake::start(move |_| answer("302 Found", &redirect, "")).await;
    let files = place(&format!("webhdfs://{}/logs", login.address), &with_credentials());
    let error = text(&files, "app-1").await.unwrap_err();
    assert!(error.contains("302") && !is_secret(&error), "{error}");
    assert_eq!(elsewhere.requests().len(), 1);
    let listed = Arc::clone(&files);
    let error = blocking(move || listed.list().unwrap_err()).await;
    assert!(error.to_string().contains("a proxy or a login page"), "{error}");
    assert_eq!(elsewhere.requests().len(), 1, "who lists is sent nowhere");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_node_on_standby_is_passed_over() {
    let standby = Fake::start(|_| {
        let body = r#"{"RemoteException":{"exception":"StandbyException","javaClassName":"x","message":"READ is not supported in state standby"}}"#;
        answer("403 Forbidden", "Content-Type: application/json\r\n", body)
    })
    .await;
    let active = Fake::start(|target| {
        // An old one: it knows no listing by pages.
        if target.contains("LISTSTATUS_BATCH") {
            let body = r#"{"RemoteException":{"exception":"IllegalArgumentException","javaClassName":"x","message":"Invalid value for webhdfs parameter \"op\": No enum constant LISTSTATUS_BATCH"}}"#;
            return answer("400 Bad Request", "", body);
        }
        let body = r#"{"FileStatuses":{"FileStatus":[{"pathSuffix":"app-1","type":"FILE","length":7,"modificationTime":1}]}}"#;
        answer("200 OK", "", body)
    })
    .await;
    let location = format!("webhdfs://{},{}/logs", standby.address, active.address);
    let files = place(&location, &Cluster::default());
    for _ in 0..2 {
        let files = Arc::clone(&files);
        let listing = blocking(move || files.list().unwrap()).await;
        assert_eq!(listing.entries[0].path, "app-1");
    }
    assert_eq!(standby.requests().len(), 1, "then the one that answered is asked first");
    assert_eq!(active.requests().len(), 3, "and not again for pages");
    let alone = place(&format!("webhdfs://{}/logs", standby.address), &Cluster::default());
    let error = blocking(move || alone.list().unwrap_err()).await;
    assert!(error.to_string().contains("on standby"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_that_breaks_off_is_begun_again_where_it_was() {
    let server = Fake::start(|target| {
        let from: usize = target
            .split_once("offset=")
            .map_or(0, |(_, rest)| rest.split('&').next().unwrap().parse().unwrap());
        let text = "0123456789";
        let rest = &text[from..];
        // Three bytes, and the connection is gone.
        let piece = &rest[..rest.len().min(3)];
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{piece}", rest.len())
    })
    .await;
    let files = place(&format!("webhdfs://{}/logs", server.address), &Cluster::default());
    assert_eq!(text(&files, "app-1").await.unwrap(), "0123456789");
    assert_eq!(server.requests().len(), 4);
}

/// What stands in the configuration reaches the store: address, account and
/// secret; and the store's refusal names the right that is missing.
#[cfg(all(feature = "gcs", feature = "azure"))]
#[tokio::test(flavor = "multi_thread")]
async fn settings_reach_google_and_azure() {
    let refused = |_: &str| {
        let body = "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code>\
                    <Message>No</Message></Error>";
        answer("403 Forbidden", "Content-Type: application/xml\r\n", body)
    };
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    // Azure's account keys are base64.
    std::fs::write(&secret, "aHVudGVyMg==\n").unwrap();
    for (location, options, secret_key, target, authorization, right) in [
        (
            "gs://logs/spark",
            [("google_base_url", "http://ADDRESS"), ("user_agent", "x")],
            "google_bearer_token",
            "GET /logs?",
            "authorization: Bearer aHVudGVyMg==",
            "storage.objects.list",
        ),
        (
            "abfss://logs@account.dfs.core.windows.net/spark",
            [("azure_storage_endpoint", "http://ADDRESS"), ("user_agent", "x")],
            "azure_storage_account_key",
            "GET /logs?",
            "authorization: SharedKey account:",
            "Storage Blob Data Reader",
        ),
    ] {
        let store = Fake::start(refused).await;
        let mut cluster = Cluster::default();
        for (key, value) in options {
            let value = value.replace("ADDRESS", &store.address);
            cluster.object_store.options.insert(key.to_owned(), value.as_str().into());
        }
        cluster.object_store.secret_files.insert(secret_key.to_owned(), secret.clone());
        let files = place(location, &cluster);
        let error = blocking(move || files.list().unwrap_err()).await;
        assert_eq!(error.kind, FilesErrorKind::Denied, "{error}");
        assert!(error.to_string().contains(right), "{error}");
        assert!(!error.to_string().contains("aHVudGVyMg"), "{error}");
        let asked = store.requests().remove(0);
        assert!(asked.starts_with(target), "{asked}");
        assert!(asked.contains(authorization), "{asked}");
        assert!(asked.contains("prefix=spark"), "{asked}");
    }
}
