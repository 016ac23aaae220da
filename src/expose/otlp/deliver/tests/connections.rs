//! Connections that break, and back ends that go and come.

use std::time::Duration;

use super::back_end::{BackEnd, Do, take};
use super::*;

#[tokio::test]
async fn a_broken_connection_is_made_again() {
    for protocol in BOTH {
        let back_end = BackEnd::start(protocol, &[Do::Cut, take()]).await;
        let way = Way::to(&destination(protocol, back_end.endpoint()));
        assert_eq!(way.send(LONG).await, Sent::Accepted { rejected: 0 }, "{protocol:?}");
        assert_eq!(way.counts().failures.get("unreachable"), Some(&1), "{:?}", way.counts());
    }
}

#[tokio::test]
async fn a_back_end_that_is_gone_and_comes_back() {
    for protocol in BOTH {
        let back_end = BackEnd::start(protocol, &[take()]).await;
        let way = Way::to(&destination(protocol, back_end.endpoint()));
        assert_eq!(way.send(LONG).await, Sent::Accepted { rejected: 0 });
        back_end.stop();
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(way.send(SHORT).await, Sent::GivenUp);
        let address = back_end.address.to_string();
        let again = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(700)).await;
            BackEnd::at(&address, protocol, &[take()], None).await
        });
        assert_eq!(way.send(LONG).await, Sent::Accepted { rejected: 0 });
        assert_eq!(again.await.expect("started").received().len(), 1);
        let counts = way.counts();
        assert_eq!(counts.requests.get("accepted"), Some(&2));
        assert!(counts.failures.get("unreachable").is_some_and(|count| *count >= 2), "{counts:?}");
    }
}

#[tokio::test]
async fn nobody_there() {
    for protocol in BOTH {
        // A port that was free a moment ago.
        let back_end = BackEnd::start(protocol, &[take()]).await;
        back_end.stop();
        tokio::time::sleep(Duration::from_millis(50)).await;
        let way = Way::to(&destination(protocol, back_end.endpoint()));
        assert_eq!(way.send(SHORT).await, Sent::GivenUp);
        assert_eq!(way.counts().failures.get("unreachable"), Some(&1));
        let to = destination(protocol, "http://no-such-host.invalid:4317".to_owned());
        assert_eq!(Way::to(&to).send(Duration::from_secs(3)).await, Sent::GivenUp);
    }
}

#[tokio::test]
async fn the_other_protocol_is_no_success() {
    let grpc = BackEnd::start(Protocol::Grpc, &[take()]).await;
    let way =
        Way::to(&destination(Protocol::HttpProtobuf, format!("http://{}/v1/traces", grpc.address)));
    assert_eq!(way.send(SHORT).await, Sent::GivenUp);
    let http = BackEnd::start(Protocol::HttpProtobuf, &[take()]).await;
    let way = Way::to(&destination(Protocol::Grpc, format!("http://{}", http.address)));
    assert_eq!(way.send(SHORT).await, Sent::GivenUp);
    assert!(grpc.received().is_empty() && http.received().is_empty());
}
