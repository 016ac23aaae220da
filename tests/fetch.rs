//! The client against servers that behave badly: each fault has its class, a
//! text a person can act on, and costs no more than it must.

#[path = "common/fake_spark.rs"]
mod fake_spark;

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fake_spark::{Answer, FakeSpark};
use serde_json::Value;
use spark_exporter::config::{HttpConfig, Secret};
use spark_exporter::fetch::{
    FetchError, FetchErrorKind, FetchLimits, HttpClient, Meter, Request, Timeouts,
};

const TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(10),
    idle: Duration::from_secs(10),
    total: Duration::from_secs(20),
};
const LIMITS: FetchLimits = FetchLimits { response_size: 1 << 20, in_flight_per_server: 2 };

fn client() -> HttpClient {
    client_of(&HttpConfig::default())
}

fn client_of(config: &HttpConfig) -> HttpClient {
    HttpClient::new(config, TIMEOUTS, LIMITS).expect("a client")
}

fn request(url: &str) -> Request {
    Request { endpoint: "stages", url: url.parse().expect("a URL"), meter: None }
}

async fn get(client: &HttpClient, url: &str) -> Result<Value, FetchError> {
    client.get_json(request(url)).await
}

/// The error of a server that always answers so.
async fn error_of(answer: Answer) -> FetchError {
    let server = FakeSpark::start(move |_| answer.clone()).await;
    get(&client(), &server.url("/api/v1/stages")).await.expect_err("an error")
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("into memory");
    encoder.finish().expect("into memory")
}

#[derive(serde::Deserialize)]
struct Element {
    a: u64,
}

#[tokio::test]
async fn asks_politely_and_counts_what_it_costs() {
    let body = gzip(br#"[{"a": 1}, {"a": 2}, 3]"#);
    let wire = body.len() as u64;
    let server =
        FakeSpark::start(move |_| Answer::json(body.clone()).with("content-encoding", "gzip"))
            .await;
    let client = client();
    let meter = Arc::new(Meter::default());
    let request =
        Request { meter: Some(Arc::clone(&meter)), ..request(&server.url("/api/v1/stages")) };
    let elements =
        client.get_array(request, 0, |sum, element: Element| *sum += element.a).await.expect("ok");
    assert_eq!((elements.state, elements.skipped), (3, 1));
    assert_eq!((meter.requests(), meter.wire_bytes()), (1, wire));
    let counts = client.statistics()["stages"].clone();
    assert_eq!((counts.requests, counts.wire_bytes, counts.body_bytes), (1, wire, 23));
    assert!(counts.errors.is_empty());
    let asked = server.asked();
    assert_eq!(asked[0].method, "GET");
    assert_eq!(asked[0].header("accept"), "application/json");
    assert_eq!(asked[0].header("accept-encoding"), "gzip");
    assert!(asked[0].header("user-agent").starts_with("spark-exporter/"));
}

#[tokio::test]
async fn server_down() {
    let server = FakeSpark::start(|_| Answer::json("[]")).await;
    let url = server.url("/api/v1/stages");
    drop(server);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let client = client();
    let error = get(&client, &url).await.expect_err("down");
    assert_eq!(error.kind, FetchErrorKind::Unreachable);
    assert!(error.to_string().contains("Connection refused"), "{error}");
    assert!(error.to_string().contains(&url), "{error}");
    assert_eq!(client.statistics()["stages"].errors[&FetchErrorKind::Unreachable], 1);
}

#[tokio::test]
async fn html_where_json_was_expected() {
    let page = "<html><head><title>Sign in</title></head><body>…</body></html>";
    for kind in ["text/html;charset=utf-8", "application/json"] {
        let error = error_of(Answer::new(200, kind, page)).await;
        assert_eq!(error.kind, FetchErrorKind::NotJson);
        assert!(error.to_string().contains("\"Sign in\""), "{error}");
        assert!(error.to_string().contains("path prefix"), "{error}");
    }
    let long = format!("oops \x1b[31m{}", "x".repeat(5_000));
    let error = error_of(Answer::new(200, "application/json", long)).await;
    assert_eq!(error.kind, FetchErrorKind::NotJson);
    assert!(error.what.len() < 200 && !error.what.contains('\x1b'), "{error}");
}

#[tokio::test]
async fn json_of_another_shape_is_not_quoted() {
    let server = FakeSpark::start(|_| Answer::json(r#"{"password": "hunter2"}"#)).await;
    let result: Result<Vec<u64>, _> = client().get_json(request(&server.url("/"))).await;
    let error = result.expect_err("an object");
    assert_eq!(error.kind, FetchErrorKind::NotJson);
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

#[tokio::test]
async fn a_login_page_gets_no_credentials() {
    let login = FakeSpark::start(|_| Answer::json("[]")).await;
    let target = login.url("/login?session=s3cret");
    let server = FakeSpark::start(move |_| {
        Answer::new(302, "text/html", "").with("location", target.clone())
    })
    .await;
    let config = HttpConfig {
        basic_auth: Some(spark_exporter::config::BasicAuth {
            username: "reader".to_owned(),
            username_file: None,
            password: Some(Secret::new("hunter2")),
            password_file: None,
        }),
        ..HttpConfig::default()
    };
    let error =
        get(&client_of(&config), &server.url("/api/v1/stages")).await.expect_err("redirect");
    assert_eq!((error.kind, error.status), (FetchErrorKind::Status, Some(302)));
    let text = error.to_string();
    assert!(text.contains(&format!("127.0.0.1:{}", login.port())), "{text}");
    assert!(text.contains("login page"), "{text}");
    for secret in ["hunter2", "s3cret", "aHVudGVyMg"] {
        assert!(!format!("{text} {error:?}").contains(secret), "{text}");
    }
    assert!(login.asked().is_empty());
    // "reader:hunter2" in base 64, to the server that was configured.
    assert_eq!(server.asked()[0].header("authorization"), "Basic cmVhZGVyOmh1bnRlcjI=");
}

#[tokio::test]
async fn unknown_application_is_a_class_of_its_own() {
    let error = error_of(Answer::not_found("no such app: app-1")).await;
    assert_eq!(error.kind, FetchErrorKind::UnknownApplication);
    let error = error_of(Answer::not_found("unknown app app-1, attempt 2")).await;
    assert_eq!(error.kind, FetchErrorKind::UnknownApplication);
    let error = error_of(Answer::new(404, "text/html", "<h1>Not Found</h1>")).await;
    assert_eq!(error.kind, FetchErrorKind::Status);
    assert!(error.to_string().contains("root of a Spark driver's UI"), "{error}");
}

#[tokio::test]
async fn a_body_that_breaks_off_is_no_answer() {
    // More announced than sent; then chunks that end in the middle.
    for answer in [Answer::cut("[1, 2, ").with("content-length", "1000"), Answer::cut("[1, 2, ")] {
        let error = error_of(answer).await;
        assert_eq!(error.kind, FetchErrorKind::Unreachable, "{error}");
        assert!(error.to_string().contains("broke off after 7 bytes"), "{error}");
    }
    // The whole body came, but the JSON in it ends in the middle.
    let error = error_of(Answer::json("[1, 2, ")).await;
    assert_eq!(error.kind, FetchErrorKind::NotJson);
    assert!(error.to_string().contains("ends in the middle, after 7 bytes"), "{error}");
    // The same, compressed.
    let mut cut = gzip(b"[1, 2, 3, 4, 5, 6, 7, 8]");
    cut.truncate(cut.len() - 12);
    let error = error_of(Answer::json(cut).with("content-encoding", "gzip")).await;
    assert_eq!(error.kind, FetchErrorKind::NotJson);
    assert!(error.to_string().contains("damaged"), "{error}");
}

#[tokio::test]
async fn two_gibibytes_stop_at_the_limit() {
    for (first, rest) in [("[", " "), ("", " "), ("[0", "0")] {
        let chunk = rest.repeat(64 << 10);
        let start = first.to_owned();
        let server = FakeSpark::start(move |_| {
            // 32,768 chunks of 64 KiB.
            let mut body = start.clone();
            body.push_str(&chunk);
            Answer::repeated(
                if start.is_empty() { chunk.clone() } else { body },
                32_768,
                Duration::ZERO,
            )
        })
        .await;
        let client = client();
        let started = Instant::now();
        let error = get(&client, &server.url("/api/v1/stages")).await.expect_err("too large");
        // Digits after `[0` are a syntax error before the limit is reached.
        let kinds = [FetchErrorKind::TooLarge, FetchErrorKind::NotJson];
        assert!(kinds[usize::from(first == "[0")..].starts_with(&[error.kind]), "{error}");
        assert!(started.elapsed() < Duration::from_secs(15));
        // What was on its way may be a little more than the limit.
        assert!(client.statistics()["stages"].wire_bytes < 4 << 20);
    }
}

#[tokio::test]
async fn a_compressed_bomb_stops_at_the_limit() {
    let bomb = gzip(&vec![b' '; 16 << 20]);
    let error = error_of(Answer::json(bomb).with("content-encoding", "gzip")).await;
    assert_eq!(error.kind, FetchErrorKind::TooLarge);
    assert!(error.to_string().contains("limits.response_size"), "{error}");
}

#[tokio::test]
async fn slow_and_silent_servers_time_out() {
    let timeouts = Timeouts {
        idle: Duration::from_millis(400),
        total: Duration::from_millis(1_500),
        ..TIMEOUTS
    };
    let client = HttpClient::new(&HttpConfig::default(), timeouts, LIMITS).expect("a client");
    // Silent after the headers; and a trickle that never falls silent.
    for (times, pause) in [(1, Duration::from_mins(1)), (10_000, Duration::from_millis(50))] {
        let server = FakeSpark::start(move |_| Answer::repeated(" ", times, pause)).await;
        let started = Instant::now();
        let error = get(&client, &server.url("/")).await.expect_err("too slow");
        assert_eq!(error.kind, FetchErrorKind::Timeout, "{error}");
        assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
    }
}

#[tokio::test]
async fn refusals_say_what_to_do() {
    let error = error_of(Answer::new(401, "text/html", "<h1>Unauthorized</h1>")).await;
    assert!(error.to_string().contains("give basic_auth or authorization"), "{error}");
    let error = error_of(Answer::new(403, "text/plain", "user \"x\" is not authorized")).await;
    assert!(error.to_string().contains("spark.ui.view.acls"), "{error}");
    let error = error_of(Answer::new(503, "text/plain", "busy").with("retry-after", "7")).await;
    assert_eq!(error.retry_after, Some(Duration::from_secs(7)));
    assert_eq!((error.kind, error.status), (FetchErrorKind::Status, Some(503)));
}

#[tokio::test]
async fn a_wrong_password_is_said_so() {
    let server = FakeSpark::start(|_| Answer::new(401, "text/plain", "no")).await;
    let config = HttpConfig {
        authorization: Some(spark_exporter::config::Authorization {
            credentials: Some(Secret::new("hunter2")),
            ..Default::default()
        }),
        ..HttpConfig::default()
    };
    let error = get(&client_of(&config), &server.url("/")).await.expect_err("refused");
    assert!(error.to_string().contains("refused the credentials"), "{error}");
    assert!(!format!("{error:?}").contains("hunter2"));
    assert_eq!(server.asked()[0].header("authorization"), "Bearer hunter2");
}

#[tokio::test]
async fn a_missing_secret_file_is_named_and_nothing_is_sent() {
    let server = FakeSpark::start(|_| Answer::json("[]")).await;
    let config = HttpConfig {
        authorization: Some(spark_exporter::config::Authorization {
            credentials_file: Some("/does/not/exist".into()),
            ..Default::default()
        }),
        ..HttpConfig::default()
    };
    let error = get(&client_of(&config), &server.url("/")).await.expect_err("no file");
    assert!(error.to_string().contains("credentials_file /does/not/exist"), "{error}");
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn at_most_two_requests_at_once_to_one_server() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let started = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&started);
    let server = FakeSpark::start(move |_| {
        seen.fetch_add(1, Ordering::SeqCst);
        Answer::repeated("1", 1, Duration::from_secs(2))
    })
    .await;
    let (client, url) = (client(), server.url("/"));
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let (client, url) = (client.clone(), url.clone());
        calls.spawn(async move { get(&client, &url).await });
    }
    while started.load(Ordering::SeqCst) < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(started.load(Ordering::SeqCst), 2);
    while let Some(call) = calls.join_next().await {
        assert_eq!(call.expect("no panic"), Ok(1.into()));
    }
    assert_eq!(started.load(Ordering::SeqCst), 4);
}
