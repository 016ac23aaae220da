//! Polls a real driver as the daemon would, and says what it cost.

#![allow(dead_code, reason = "each test uses its part")]

use std::time::Duration;

use jiff::Timestamp;
use spark_exporter::config::{HttpConfig, Limits};
use spark_exporter::fetch::{FetchLimits, HttpClient, Timeouts};
use spark_exporter::model::Application;
use spark_exporter::rest::{CycleCost, RunningApplication};

/// What polling one driver cost.
#[derive(Debug)]
pub(crate) struct Measured {
    /// The first poll, which reads everything.
    pub(crate) first: CycleCost,
    /// The polls after it.
    pub(crate) later: Vec<CycleCost>,
    pub(crate) last: Application,
}

impl Measured {
    pub(crate) fn normal(&self) -> impl Iterator<Item = &CycleCost> {
        self.later.iter().filter(|cost| !cost.extended)
    }

    /// Bytes of the dearest six polls in a row: a minute at 10 s.
    pub(crate) fn bytes_of_dearest_minute(&self) -> u64 {
        let minute = |costs: &[CycleCost]| costs.iter().map(|cost| cost.bytes).sum();
        self.later.windows(6).map(minute).max().unwrap_or_else(|| minute(&self.later))
    }
}

/// Polls the driver at `url` (`http://127.0.0.1:4040`): once, and then
/// `cycles` times 10 s apart on the reader's clock; the real pause between
/// them is `pause`.
pub(crate) async fn measure(url: &str, cycles: u32, pause: Duration) -> Measured {
    let limits = FetchLimits::from(&Limits::default());
    let client = HttpClient::new(&HttpConfig::default(), Timeouts::DRIVER, limits)
        .expect("a client from defaults");
    let mut reader = RunningApplication::new("default", url.parse().expect("a driver's URL"));
    let mut now = Timestamp::now();
    let mut last = reader.poll(&client, now).await.expect("the driver answers");
    let first = reader.cost();
    let mut later = Vec::new();
    for _ in 0..cycles {
        tokio::time::sleep(pause).await;
        now += Duration::from_secs(10);
        last = reader.poll(&client, now).await.expect("the driver answers");
        later.push(reader.cost());
    }
    Measured { first, later, last }
}

/// The promises of a poll: 5 requests and 64 KiB in a normal cycle, 2 MiB a
/// minute.
pub(crate) fn assert_within_budget(measured: &Measured) {
    for cost in measured.normal() {
        assert!(cost.requests <= 5, "{cost:?}");
        assert!(cost.bytes <= 64 << 10, "{cost:?}");
    }
    assert!(measured.normal().count() * 2 >= measured.later.len(), "{:?}", measured.later);
    assert!(measured.bytes_of_dearest_minute() <= 2 << 20, "{:?}", measured.later);
}
