//! The web server over a real socket.

mod support;

use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, Method, Response, StatusCode};
use spark_exporter::config::Limits;
use spark_exporter::expose::{self, ExposeState};
use spark_exporter::metrics::build;
use spark_exporter::telemetry::{Telemetry, TelemetrySnapshot};
use support::{at, run_id, skewed_run};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

struct Server {
    address: std::net::SocketAddr,
    state: Arc<ExposeState>,
    telemetry: Arc<Telemetry>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Server {
    async fn start() -> Self {
        let telemetry = Arc::new(Telemetry::new(at(0)));
        let state = Arc::new(ExposeState::new(Arc::clone(&telemetry), &Limits::default(), at(0)));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(expose::run(listener, Arc::clone(&state), async {
            let _ = stopped.await;
        }));
        Self { address, state, telemetry, stop: Some(stop), task }
    }

    fn publish_one_run(&self) {
        let runs = vec![skewed_run(run_id("default", "app-1"))];
        let limits = Limits::default();
        let snapshot = build(&runs, &[], &self.telemetry.snapshot(), &limits, at(80));
        self.state.publish(snapshot, runs, at(80));
    }

    async fn ask(&self, method: Method, path: &str, headers: &[(&str, &str)]) -> Response {
        let client = Client::builder().no_gzip().no_proxy().build().expect("a client");
        let mut request = client.request(method, format!("http://{}{path}", self.address));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.send().await.expect("an answer")
    }

    async fn get(&self, path: &str) -> Response {
        self.ask(Method::GET, path, &[]).await
    }

    async fn stop(mut self) {
        drop(self.stop.take());
        self.task.await.expect("the server does not panic");
    }
}

fn header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    response.headers().get(name).map(|value| value.to_str().expect("text"))
}

#[tokio::test]
async fn ready_only_after_the_first_cycle() {
    let server = Server::start().await;
    assert_eq!(server.get("/-/healthy").await.status(), StatusCode::OK);
    assert_eq!(server.get("/-/ready").await.status(), StatusCode::SERVICE_UNAVAILABLE);
    // Metrics and page are there from the start.
    let text = server.get("/metrics").await.text().await.expect("text");
    assert!(text.contains("\nspark_exporter_applications 0\n"), "{text}");
    assert_eq!(server.get("/").await.status(), StatusCode::OK);
    server.state.set_ready();
    assert_eq!(server.get("/-/ready").await.status(), StatusCode::OK);
    server.stop().await;
}

#[tokio::test]
async fn formats_and_encodings() {
    let server = Server::start().await;
    server.publish_one_run();
    let plain = server.get("/metrics").await;
    assert_eq!(header(&plain, "content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    assert_eq!(header(&plain, "vary"), Some("Accept, Accept-Encoding"));
    assert_eq!(header(&plain, "content-encoding"), None);
    let plain = plain.text().await.expect("text");
    assert!(plain.contains("spark_finding{"));
    assert!(!plain.contains("# EOF"));

    let accept = ("accept", "application/openmetrics-text;version=1.0.0,text/plain;q=0.5");
    let open = server.ask(Method::GET, "/metrics", &[accept]).await;
    assert_eq!(
        header(&open, "content-type"),
        Some("application/openmetrics-text; version=1.0.0; charset=utf-8")
    );
    let open = open.bytes().await.expect("a body");
    assert!(open.ends_with(b"# EOF\n"));

    let packed = server.ask(Method::GET, "/metrics", &[accept, ("accept-encoding", "gzip")]).await;
    assert_eq!(header(&packed, "content-encoding"), Some("gzip"));
    assert_eq!(header(&packed, "vary"), Some("Accept, Accept-Encoding"));
    let length = header(&packed, "content-length").map(str::to_owned);
    let packed = packed.bytes().await.expect("a body");
    assert_eq!(length, Some(packed.len().to_string()));
    assert!(packed.len() * 5 < open.len());
    let mut unpacked = Vec::new();
    let mut reader = flate2::read::GzDecoder::new(&packed[..]);
    std::io::Read::read_to_end(&mut reader, &mut unpacked).expect("gzip");
    assert_eq!(unpacked, open);
    server.stop().await;
}

#[tokio::test]
async fn only_get_and_head() {
    let server = Server::start().await;
    for path in ["/", "/metrics", "/-/healthy", "/-/ready"] {
        let refused = server.ask(Method::POST, path, &[]).await;
        assert_eq!(refused.status(), StatusCode::METHOD_NOT_ALLOWED, "{path}");
        assert_eq!(header(&refused, "allow"), Some("GET, HEAD"));
    }
    server.state.set_ready();
    for path in ["/", "/metrics", "/-/ready"] {
        let get = server.get(path).await;
        let head = server.ask(Method::HEAD, path, &[]).await;
        assert_eq!(head.status(), StatusCode::OK);
        assert_eq!(header(&get, "content-type"), header(&head, "content-type"), "{path}");
        assert_eq!(header(&get, "content-length"), header(&head, "content-length"), "{path}");
        assert!(head.bytes().await.expect("no body").is_empty());
    }
    server.stop().await;
}

#[tokio::test]
async fn unknown_paths_are_404_and_share_one_counter() {
    let server = Server::start().await;
    for path in ["/metrics/", "/admin", "/-/quit", "/%2e%2e/etc/passwd"] {
        assert_eq!(server.get(path).await.status(), StatusCode::NOT_FOUND, "{path}");
    }
    let counts: TelemetrySnapshot = server.telemetry.snapshot();
    assert_eq!(counts.web_requests.get(&("other", 404)), Some(&4));
    server.stop().await;
}

#[tokio::test]
async fn every_answer_is_closed_to_the_browser() {
    let server = Server::start().await;
    for path in ["/", "/metrics", "/-/ready", "/nowhere"] {
        let answer = server.get(path).await;
        assert_eq!(header(&answer, "x-content-type-options"), Some("nosniff"), "{path}");
        let policy = header(&answer, "content-security-policy").expect("a policy");
        assert!(policy.starts_with("default-src 'none'"), "{policy}");
        assert!(!policy.contains("script-src"), "{policy}");
    }
    server.stop().await;
}

#[tokio::test]
async fn the_page_needs_nothing_but_itself() {
    let server = Server::start().await;
    server.publish_one_run();
    let page = server.get("/").await;
    assert_eq!(header(&page, "content-type"), Some("text/html; charset=utf-8"));
    let page = page.text().await.expect("text");
    assert!(page.contains("30x the median"));
    assert!(page.contains("orders &quot;daily&quot;"));
    for part in ["http://", "https://", "<script", "<link", "@import", "url("] {
        assert!(!page.contains(part), "{part}");
    }
    server.stop().await;
}

#[tokio::test]
async fn many_scrapes_at_once_get_the_same_body() {
    let server = Arc::new(Server::start().await);
    server.publish_one_run();
    let scrapes: Vec<_> = (0..20)
        .map(|_| {
            let server = Arc::clone(&server);
            tokio::spawn(async move { server.get("/metrics").await.bytes().await.expect("body") })
        })
        .collect();
    let mut bodies = Vec::new();
    for scrape in scrapes {
        bodies.push(scrape.await.expect("no panic"));
    }
    assert!(bodies.windows(2).all(|pair| pair[0] == pair[1]));
}

/// Sends raw bytes and reads until the server closes or `patience` is over.
async fn raw(server: &Server, request: &[u8], patience: Duration) -> String {
    let mut stream = TcpStream::connect(server.address).await.expect("connected");
    // The server may answer and close before it has taken everything.
    let _ = stream.write_all(request).await;
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(patience, stream.read_to_end(&mut answer)).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn bad_requests_are_refused_and_the_server_lives_on() {
    let server = Server::start().await;
    let patience = Duration::from_secs(20);
    let huge = format!("GET / HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n", "a".repeat(1 << 20));
    assert!(raw(&server, huge.as_bytes(), patience).await.starts_with("HTTP/1.1 431"));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(500));
    assert!(raw(&server, many.as_bytes(), patience).await.starts_with("HTTP/1.1 431"));
    assert!(raw(&server, b"\x16\x03\x01 TLS?\r\n\r\n", patience).await.starts_with("HTTP/1.1 400"));
    // A body is never read: the answer comes, then the connection goes.
    let body = format!(
        "GET /-/healthy HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\nabc",
        u64::MAX / 4
    );
    assert!(raw(&server, body.as_bytes(), patience).await.starts_with("HTTP/1.1 200"));
    assert_eq!(server.get("/-/healthy").await.status(), StatusCode::OK);
    server.stop().await;
}

#[tokio::test]
async fn stops_at_once_with_idle_connections_and_refuses_new_ones() {
    let server = Server::start().await;
    let client = Client::builder().no_proxy().build().expect("a client");
    let url = format!("http://{}/-/healthy", server.address);
    client.get(&url).send().await.expect("an answer").bytes().await.expect("a body");
    // The client keeps its connection; a second one never asks.
    let _silent = TcpStream::connect(server.address).await.expect("connected");
    let address = server.address;
    let started = std::time::Instant::now();
    server.stop().await;
    assert!(started.elapsed() < Duration::from_secs(20));
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn connections_have_a_bound_and_the_next_ones_wait() {
    let server = Server::start().await;
    let mut silent = Vec::new();
    for _ in 0..256 {
        silent.push(TcpStream::connect(server.address).await.expect("connected"));
    }
    let ask = b"GET /-/healthy HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let mut waiting = TcpStream::connect(server.address).await.expect("queued");
    waiting.write_all(ask).await.expect("sent");
    let mut answer = Vec::new();
    let early = waiting.read_to_end(&mut answer);
    assert!(tokio::time::timeout(Duration::from_millis(300), early).await.is_err());
    assert_eq!(server.telemetry.snapshot().web_failures.get("limit"), Some(&1));
    drop(silent.pop());
    let late = waiting.read_to_end(&mut answer);
    tokio::time::timeout(Duration::from_secs(20), late).await.expect("in time").expect("an answer");
    assert!(answer.starts_with(b"HTTP/1.1 200"));
    drop(silent);
    server.stop().await;
}
