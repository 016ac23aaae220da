//! Back ends that are slow, overloaded, or ask for something.

use std::time::Duration;

use tonic::Code;

use super::back_end::{BackEnd, Do, take};
use super::*;

fn unavailable(protocol: Protocol, asked: Option<u64>) -> Do {
    match protocol {
        Protocol::HttpProtobuf => {
            let headers = asked.map(|seconds| ("retry-after", seconds.to_string()));
            Do::Status(503, headers.into_iter().collect(), "busy")
        }
        Protocol::Grpc => {
            let asked = asked.map(Duration::from_secs);
            Do::Code(Code::Unavailable, "busy".to_owned(), asked)
        }
    }
}

#[tokio::test]
async fn it_is_tried_again_until_it_is_taken() {
    for protocol in BOTH {
        let back_end = BackEnd::start(protocol, &[unavailable(protocol, None), take()]).await;
        let way = Way::to(&destination(protocol, back_end.endpoint()));
        let started = Instant::now();
        assert_eq!(way.send(LONG).await, Sent::Accepted { rejected: 0 });
        assert!(started.elapsed() >= Duration::from_millis(500), "{:?}", started.elapsed());
        assert_eq!(back_end.received().len(), 2);
        let counts = way.counts();
        assert_eq!(counts.failures.get("unavailable"), Some(&1));
        assert_eq!(counts.requests.get("accepted"), Some(&1));
        assert_eq!(counts.requests.get("given_up"), None);
    }
}

#[tokio::test]
async fn a_wait_that_is_asked_for_is_kept() {
    for protocol in BOTH {
        let back_end = BackEnd::start(protocol, &[unavailable(protocol, Some(2)), take()]).await;
        let way = Way::to(&destination(protocol, back_end.endpoint()));
        let started = Instant::now();
        assert_eq!(way.send(LONG).await, Sent::Accepted { rejected: 0 });
        assert!(started.elapsed() >= Duration::from_secs(2), "{:?}", started.elapsed());
    }
    // As a date, which has no fractions of seconds.
    let date = jiff::Timestamp::now() + Duration::from_secs(3);
    let date = date.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    let script = [Do::Status(429, vec![("retry-after", date)], ""), take()];
    let back_end = BackEnd::start(Protocol::HttpProtobuf, &script).await;
    let way = Way::to(&destination(Protocol::HttpProtobuf, back_end.endpoint()));
    let started = Instant::now();
    assert_eq!(way.send(LONG).await, Sent::Accepted { rejected: 0 });
    assert!(started.elapsed() >= Duration::from_millis(1_900), "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_wait_beyond_the_time_there_is_ends_it_at_once() {
    for protocol in BOTH {
        let back_end = BackEnd::start(protocol, &[unavailable(protocol, Some(60)), take()]).await;
        let way = Way::to(&destination(protocol, back_end.endpoint()));
        let started = Instant::now();
        assert_eq!(way.send(LONG).await, Sent::GivenUp);
        assert!(started.elapsed() < Duration::from_secs(10));
        // What comes next leaves the back end alone too.
        assert_eq!(way.send(LONG).await, Sent::GivenUp);
        assert!(started.elapsed() < Duration::from_secs(10));
        assert_eq!(back_end.received().len(), 1);
        assert_eq!(way.counts().requests.get("given_up"), Some(&2));
    }
}

#[tokio::test]
async fn silence_ends_with_the_timeout() {
    for protocol in BOTH {
        for silent in [Do::Hang, Do::NoReading] {
            let back_end = BackEnd::start(protocol, &[silent.clone(), take()]).await;
            let mut to = destination(protocol, back_end.endpoint());
            to.timeout = Duration::from_millis(300);
            let way = Way::to(&to);
            let started = Instant::now();
            // More than all the buffers on the way would take.
            let request = Request { body: vec![7; 16 << 20].into(), items: 1 };
            let sent = way.send_body(request.clone(), SHORT).await;
            assert_eq!(sent, Sent::GivenUp, "{protocol:?} {silent:?}");
            assert!(started.elapsed() < Duration::from_secs(10), "{silent:?}");
            assert!(way.counts().failures.contains_key("timeout"), "{:?}", way.counts());
            // On a connection of its own, which this back end answers on; on
            // a busy machine the silence may still be to come.
            to.timeout = Duration::from_secs(5);
            let way = Way::to(&to);
            assert_eq!(way.send(LONG).await, Sent::Accepted { rejected: 0 }, "{silent:?}");
        }
    }
}

#[tokio::test]
async fn the_end_of_time_holds_whatever_the_timeout() {
    for protocol in BOTH {
        for silent in [Do::Hang, Do::NoReading] {
            let back_end = BackEnd::start(protocol, &[silent]).await;
            let mut to = destination(protocol, back_end.endpoint());
            to.timeout = Duration::from_hours(1);
            let started = Instant::now();
            assert_eq!(Way::to(&to).send(SHORT).await, Sent::GivenUp);
            assert!(started.elapsed() < Duration::from_secs(10));
        }
    }
}

#[tokio::test]
async fn a_success_whose_body_never_ends() {
    // HTTP said that it took it. gRPC says so only at the end.
    for (protocol, sent) in
        [(Protocol::HttpProtobuf, Sent::Accepted { rejected: 0 }), (Protocol::Grpc, Sent::GivenUp)]
    {
        let back_end = BackEnd::start(protocol, &[Do::HangInBody]).await;
        let mut to = destination(protocol, back_end.endpoint());
        to.timeout = Duration::from_millis(300);
        let started = Instant::now();
        assert_eq!(Way::to(&to).send(SHORT).await, sent);
        assert!(started.elapsed() < Duration::from_secs(10));
        assert_eq!(back_end.received().len(), 1);
    }
}

#[tokio::test]
async fn dropping_it_stops_at_once() {
    for protocol in BOTH {
        let back_end = BackEnd::start(protocol, &[Do::Hang]).await;
        let way = Way::to(&destination(protocol, back_end.endpoint()));
        let started = Instant::now();
        tokio::select! {
            _ = way.send(LONG) => panic!("nobody answers"),
            () = tokio::time::sleep(Duration::from_millis(200)) => {}
        }
        assert!(started.elapsed() < Duration::from_secs(5));
    }
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let other = BackEnd::start(Protocol::HttpProtobuf, &[take()]).await;
    for status in [301, 302, 303, 307, 308] {
        let script = [Do::Status(status, vec![("location", other.endpoint())], "")];
        let back_end = BackEnd::start(Protocol::HttpProtobuf, &script).await;
        let way = Way::to(&destination(Protocol::HttpProtobuf, back_end.endpoint()));
        assert_eq!(way.send(LONG).await, Sent::Refused, "{status}");
    }
    assert!(other.received().is_empty(), "headers went to another host");
}
