//! What becomes of a request, by answer.

use std::time::Duration;

use tonic::Code;

use super::back_end::{BackEnd, Do, take};
use super::*;

/// `partial_success` with a number and a text.
fn partial(rejected: u8, said: &str) -> Do {
    let mut inner = vec![0x08, rejected, 0x12, u8::try_from(said.len()).expect("short")];
    inner.extend_from_slice(said.as_bytes());
    let mut message = vec![0x0a, u8::try_from(inner.len()).expect("short")];
    message.extend_from_slice(&inner);
    Do::Take(message)
}

#[tokio::test]
async fn what_is_sent_arrives() {
    for protocol in BOTH {
        for compression in [Compression::None, Compression::Gzip] {
            for signal in Signal::ALL {
                let back_end = BackEnd::start(protocol, &[take()]).await;
                let mut to = destination(protocol, back_end.endpoint());
                to.compression = compression;
                let way = Way::of(signal, &to);
                // Large enough for more than one frame.
                let body: Vec<u8> = (0..300_000_u32).map(|n| (n % 251) as u8).collect();
                let request = Request { body: body.clone().into(), items: 7 };
                let sent = way.send_body(request, LONG).await;
                assert_eq!(sent, Sent::Accepted { rejected: 0 }, "{protocol:?}");
                let received = back_end.received();
                assert_eq!(received.len(), 1);
                assert!(received[0].body == body, "{protocol:?} {compression:?}");
                let headers = &received[0].headers;
                assert_eq!(headers["x-team"], "data");
                let agent = headers["user-agent"].to_str().expect("text");
                assert!(agent.starts_with("OTel-OTLP-Exporter-spark-exporter/"), "{agent}");
                let service = match (protocol, signal) {
                    (Protocol::HttpProtobuf, _) => {
                        assert_eq!(headers["content-type"], "application/x-protobuf");
                        "/v1/traces"
                    }
                    (_, Signal::Metrics) => {
                        "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
                    }
                    (_, Signal::Traces) => {
                        "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
                    }
                    (_, Signal::Logs) => {
                        "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
                    }
                };
                assert_eq!(received[0].path, service);
                let counts = way.counts();
                assert_eq!((counts.sent, counts.bytes), (7, 300_000));
                assert!(counts.last_success.is_some());
                assert_eq!(counts.requests.get("accepted"), Some(&1));
            }
        }
    }
}

#[tokio::test]
async fn what_was_not_taken_is_counted_and_not_sent_again() {
    for protocol in BOTH {
        let script = [partial(2, "too old"), partial(0, "a newer version is there"), take()];
        let back_end = BackEnd::start(protocol, &script).await;
        let way = Way::to(&destination(protocol, back_end.endpoint()));
        assert_eq!(way.send(LONG).await, Sent::Accepted { rejected: 2 });
        assert_eq!(way.send(LONG).await, Sent::Accepted { rejected: 0 });
        let counts = way.counts();
        assert_eq!((counts.sent, counts.rejected), (3 + 5, 2));
        assert_eq!(back_end.received().len(), 2);
        // Nobody can reject more than there was.
        let back_end = BackEnd::start(protocol, &[partial(100, "")]).await;
        let way = Way::to(&destination(protocol, back_end.endpoint()));
        assert_eq!(way.send(LONG).await, Sent::Accepted { rejected: 5 });
        assert_eq!((way.counts().sent, way.counts().rejected), (0, 5));
    }
}

#[tokio::test]
async fn success_that_is_no_answer_of_otlp() {
    let sound = [
        ("text/html", "<html>Log in</html>"),
        ("text/plain", "OK"),
        ("application/json", "{\"partialSuccess\":{}}"),
        ("application/json", "nonsense"),
    ];
    for (kind, body) in sound {
        let script = [Do::Page(kind, body.as_bytes().to_vec())];
        let back_end = BackEnd::start(Protocol::HttpProtobuf, &script).await;
        let way = Way::to(&destination(Protocol::HttpProtobuf, back_end.endpoint()));
        assert_eq!(way.send(LONG).await, Sent::Accepted { rejected: 0 }, "{kind} {body}");
        assert_eq!(back_end.received().len(), 1);
        // gRPC says at the end whether it was one: this was none.
        let back_end = BackEnd::start(Protocol::Grpc, &script).await;
        let way = Way::to(&destination(Protocol::Grpc, back_end.endpoint()));
        assert_eq!(way.send(SHORT).await, Sent::Refused, "{kind} {body}");
    }
    let body = b"{\"partialSuccess\":{\"rejectedSpans\":\"2\"}}".to_vec();
    let script = [Do::Page("application/json", body)];
    let back_end = BackEnd::start(Protocol::HttpProtobuf, &script).await;
    let way = Way::to(&destination(Protocol::HttpProtobuf, back_end.endpoint()));
    assert_eq!(way.send(LONG).await, Sent::Accepted { rejected: 2 });
}

#[tokio::test]
async fn statuses_of_http() {
    let (again, never) = (Sent::GivenUp, Sent::Refused);
    for (status, sent, reason) in [
        (429, again, "unavailable"),
        (502, again, "unavailable"),
        (503, again, "unavailable"),
        (504, again, "unavailable"),
        (400, never, "refused"),
        (401, never, "unauthorized"),
        (403, never, "unauthorized"),
        (404, never, "refused"),
        (405, never, "refused"),
        (408, never, "refused"),
        (413, never, "too_large"),
        (415, never, "refused"),
        (500, never, "refused"),
        (501, never, "refused"),
        (302, never, "refused"),
    ] {
        let script = [Do::Status(status, Vec::new(), "no")];
        let back_end = BackEnd::start(Protocol::HttpProtobuf, &script).await;
        let way = Way::to(&destination(Protocol::HttpProtobuf, back_end.endpoint()));
        assert_eq!(way.send(SHORT).await, sent, "{status}");
        judge(&way, sent, reason);
    }
}

/// What a proxy before a gRPC server answers by itself.
#[tokio::test]
async fn statuses_of_http_for_grpc() {
    for (status, sent, reason) in [
        (502, Sent::GivenUp, "unavailable"),
        (503, Sent::GivenUp, "unavailable"),
        (429, Sent::GivenUp, "unavailable"),
        (401, Sent::Refused, "unauthorized"),
        (404, Sent::Refused, "refused"),
        (413, Sent::Refused, "too_large"),
    ] {
        let back_end =
            BackEnd::start(Protocol::Grpc, &[Do::Status(status, Vec::new(), "no")]).await;
        let way = Way::to(&destination(Protocol::Grpc, back_end.endpoint()));
        assert_eq!(way.send(SHORT).await, sent, "{status}");
        judge(&way, sent, reason);
    }
}

#[tokio::test]
async fn codes_of_grpc() {
    let (again, never) = (Sent::GivenUp, Sent::Refused);
    let too_large = "grpc: received message larger than max (5000000 vs. 4194304)";
    let too_large_rust = "Error, decoded message length too large: found 5 bytes, the limit is: 4";
    let soon = Some(Duration::from_millis(1));
    for (code, said, retry, sent, reason) in [
        (Code::Cancelled, "no", None, again, "unavailable"),
        (Code::DeadlineExceeded, "no", None, again, "timeout"),
        (Code::Aborted, "no", None, again, "unavailable"),
        (Code::OutOfRange, "no", None, again, "unavailable"),
        (Code::Unavailable, "no", None, again, "unavailable"),
        (Code::DataLoss, "no", None, again, "unavailable"),
        (Code::ResourceExhausted, "slow down", soon, again, "unavailable"),
        (Code::ResourceExhausted, "no", None, never, "too_large"),
        (Code::ResourceExhausted, too_large, None, never, "too_large"),
        (Code::OutOfRange, too_large_rust, None, never, "too_large"),
        (Code::Unknown, "no", None, never, "refused"),
        (Code::InvalidArgument, "no", None, never, "refused"),
        (Code::NotFound, "no", None, never, "refused"),
        (Code::AlreadyExists, "no", None, never, "refused"),
        (Code::PermissionDenied, "no", None, never, "unauthorized"),
        (Code::Unauthenticated, "no", None, never, "unauthorized"),
        (Code::FailedPrecondition, "no", None, never, "refused"),
        (Code::Unimplemented, "no", None, never, "refused"),
        (Code::Internal, "no", None, never, "refused"),
        // Only what is exhausted may become free again.
        (Code::InvalidArgument, "no", soon, never, "refused"),
    ] {
        let script = [Do::Code(code, said.to_owned(), retry)];
        let back_end = BackEnd::start(Protocol::Grpc, &script).await;
        let way = Way::to(&destination(Protocol::Grpc, back_end.endpoint()));
        // A millisecond that was asked for, and up to a second of our own.
        let sent_in = if retry.is_some() { Duration::ZERO } else { SHORT };
        let within = if sent_in.is_zero() && sent == again { SHORT / 4 } else { SHORT };
        assert_eq!(way.send(within).await, sent, "{code:?} {said}");
        judge(&way, sent, reason);
    }
}

fn judge(way: &Way, sent: Sent, reason: &'static str) {
    let counts = way.counts();
    let outcome = if sent == Sent::Refused { "refused" } else { "given_up" };
    assert_eq!(counts.requests.get(outcome), Some(&1), "{reason}");
    assert!(counts.failures.get(reason).is_some_and(|count| *count >= 1), "{counts:?}");
    // What may come again is not lost.
    let lost = (sent == Sent::Refused).then_some(&5);
    assert_eq!(counts.failed.get(reason), lost, "{reason}");
    assert_eq!((counts.sent, counts.last_success), (0, None));
}

#[tokio::test]
async fn more_than_the_limit_is_not_sent() {
    for protocol in BOTH {
        let back_end = BackEnd::start(protocol, &[take()]).await;
        let mut to = destination(protocol, back_end.endpoint());
        to.request_size = 4;
        let way = Way::to(&to);
        assert_eq!(way.sender.request_size(), 4);
        assert_eq!(way.send(LONG).await, Sent::Refused);
        assert!(back_end.received().is_empty());
        assert_eq!(way.counts().failed.get("too_large"), Some(&5));
    }
}

#[tokio::test]
async fn an_answer_over_the_limit_is_not_read() {
    for protocol in BOTH {
        let back_end = BackEnd::start(protocol, &[Do::Take(vec![b'x'; 5 << 20])]).await;
        let way = Way::to(&destination(protocol, back_end.endpoint()));
        assert_eq!(way.send(LONG).await, Sent::Refused, "{protocol:?}");
        assert_eq!(back_end.received().len(), 1);
        assert_eq!(way.counts().failed.get("too_large"), Some(&5));
    }
}
