//! Credentials: sent, and nowhere else.

use std::io;
use std::sync::{Arc, Mutex};

use tonic::Code;
use tracing_subscriber::fmt::MakeWriter;

use super::back_end::{BackEnd, Do, take};
use super::*;

/// Keeps what is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("the log").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Log {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().expect("the log")).into_owned()
    }
}

/// Everything that anybody logs while it runs, on one thread.
fn logged<T>(work: impl Future<Output = T>) -> (T, String) {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(log.clone())
        .with_ansi(false)
        .finish();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let done = tracing::subscriber::with_default(subscriber, || runtime.block_on(work));
    (done, log.text())
}

const SECRET: &str = "hunter2-but-longer";

#[test]
fn a_back_end_that_repeats_what_it_was_sent() {
    let said = format!("no such token: Bearer {SECRET}, {SECRET}");
    for protocol in BOTH {
        let answers = match protocol {
            Protocol::HttpProtobuf => {
                let said: &'static str = said.clone().leak();
                let location = format!("https://user:{SECRET}@example.com/login?token={SECRET}");
                vec![
                    Do::Status(401, Vec::new(), said),
                    Do::Status(503, Vec::new(), said),
                    Do::Status(302, vec![("location", location)], said),
                    Do::Page("text/plain", said.as_bytes().to_vec()),
                ]
            }
            Protocol::Grpc => vec![
                Do::Code(Code::Unauthenticated, said.clone(), None),
                Do::Code(Code::Unavailable, said.clone(), None),
            ],
        };
        let ((shown, received), log) = logged(async {
            let back_end = BackEnd::start(protocol, &answers).await;
            let mut to = destination(protocol, back_end.endpoint());
            to.headers =
                vec![("authorization".to_owned(), Secret::new(format!("Bearer {SECRET}")))];
            let way = Way::to(&to);
            for _ in &answers {
                way.send(SHORT).await;
            }
            let metrics = format!("{:?}", way.telemetry.snapshot());
            (format!("{to:?} {:?} {metrics}", way.sender), back_end.received())
        });
        assert_eq!(received.len(), answers.len());
        assert_eq!(received[0].headers["authorization"], format!("Bearer {SECRET}").as_str());
        assert!(!shown.contains(SECRET), "{shown}");
        assert!(log.contains("no such token"), "the rest of it is told");
        let line = log.lines().find(|line| line.contains(SECRET));
        // The server's side of this test knows what it got.
        assert_eq!(line, None);
    }
}

#[test]
fn trouble_is_told_once_and_its_end_too() {
    for protocol in BOTH {
        let no = match protocol {
            Protocol::HttpProtobuf => Do::Status(503, Vec::new(), "busy"),
            Protocol::Grpc => Do::Code(Code::Unavailable, "busy".to_owned(), None),
        };
        let (sent, log) = logged(async {
            let back_end = BackEnd::start(protocol, &[no.clone(), no.clone(), no, take()]).await;
            let way = Way::to(&destination(protocol, back_end.endpoint()));
            let mut sent = Vec::new();
            for _ in 0..4 {
                sent.push(way.send(SHORT).await);
            }
            sent
        });
        assert_eq!(sent.last(), Some(&Sent::Accepted { rejected: 0 }));
        let count = |level: &str, text: &str| {
            log.lines().filter(|line| line.contains(level) && line.contains(text)).count()
        };
        assert_eq!(count("WARN", "not taken by the OTLP back end in time"), 1, "{protocol:?}");
        assert_eq!(count("INFO", "takes requests again"), 1);
    }
}

#[tokio::test]
async fn rotated_headers_are_used_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("token");
    for protocol in BOTH {
        let back_end = BackEnd::start(protocol, &[take()]).await;
        let mut to = destination(protocol, back_end.endpoint());
        to.header_files = vec![("authorization".to_owned(), file.clone())];
        let way = Way::to(&to);
        for token in ["Bearer first", "Bearer second"] {
            std::fs::write(&file, format!("{token}\n")).expect("written");
            assert_eq!(way.send(LONG).await, Sent::Accepted { rejected: 0 });
        }
        let seen: Vec<_> = back_end
            .received()
            .iter()
            .map(|received| received.headers["authorization"].to_str().expect("text").to_owned())
            .collect();
        assert_eq!(seen, ["Bearer first", "Bearer second"]);
        // Gone for now: nothing is sent without it.
        std::fs::remove_file(&file).expect("removed");
        assert_eq!(way.send(SHORT).await, Sent::GivenUp);
        assert_eq!(way.counts().failures.get("settings"), Some(&1));
        assert_eq!(back_end.received().len(), 2);
    }
}
