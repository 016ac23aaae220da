//! `/metrics/json` at the root of a live UI: how many events Spark's listener
//! bus has dropped. Where it dropped any, counts are low and jobs may seem to
//! run for ever.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Api;
use super::value::Count;
use crate::fetch::FetchError;

/// The part of Dropwizard's report that interests us.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct MetricsReport {
    counters: BTreeMap<String, Counter>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct Counter {
    count: Count,
}

impl MetricsReport {
    /// Events dropped by all queues; `None` where the report has no such
    /// counter.
    pub fn dropped_events(&self) -> Option<u64> {
        self.counters
            .iter()
            .filter(|(name, _)| {
                name.contains(".LiveListenerBus.queue.") && name.ends_with(".numDroppedEvents")
            })
            .filter_map(|(_, counter)| counter.count.get())
            .reduce(u64::saturating_add)
    }
}

/// Asks with a slash at the end: without it Spark redirects to itself, which
/// loses a proxy's prefix.
pub async fn get(api: &Api) -> Result<Option<u64>, FetchError> {
    let url = api.root_url(&["metrics", "json", ""]);
    let report: MetricsReport = api.json("metrics_json", url).await?;
    Ok(report.dropped_events())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_queues_are_added_up() {
        let report: MetricsReport = serde_json::from_str(
            r#"{"version": "4.0.0", "gauges": {}, "counters": {
                "app-1.driver.LiveListenerBus.numEventsPosted": {"count": 13488},
                "app-1.driver.LiveListenerBus.queue.appStatus.numDroppedEvents": {"count": 3},
                "app-1.driver.LiveListenerBus.queue.eventLog.numDroppedEvents": {"count": 4}}}"#,
        )
        .expect("readable");
        assert_eq!(report.dropped_events(), Some(7));
        assert_eq!(MetricsReport::default().dropped_events(), None);
    }
}
