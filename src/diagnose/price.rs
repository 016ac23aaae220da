//! What a run cost, by the operator's prices.
//!
//! Paid for is what executors were given, used or not: their cores and the
//! memory reserved for them (`executor_memory`), each from added to removed or
//! the end. The driver is not in it: no source tells its cores.

use std::sync::Arc;

use super::{Diagnosis, RunNumbers, executor_memory};
use crate::config::Prices;
use crate::model::Application;

const GIB: f64 = (1_u64 << 30) as f64;
const HOUR: f64 = 3_600.0;

/// What a run cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Price {
    /// In `currency`; finite and not negative.
    pub amount: f64,
    /// The part of it that no task used: by the share of core-seconds bought
    /// and not used, the memory beside them included. `None` where that share
    /// is not known.
    pub unused: Option<f64>,
    pub currency: Arc<str>,
}

/// The price of what the run's executors were given: core-hours, and GiB-hours
/// of their memory. `None` where there are no prices, or where cores or memory
/// that have a price are not known.
pub fn price(application: &Application, numbers: &RunNumbers, prices: &Prices) -> Option<f64> {
    if !prices.are_given() {
        return None;
    }
    let mut amount = 0.0;
    if let Some(core_hour) = prices.core_hour {
        amount += core_hour * numbers.bought?.as_secs_f64() / HOUR;
    }
    if let Some(gib_hour) = prices.gib_hour {
        amount += gib_hour * gib_seconds(application)? / HOUR;
    }
    Some(amount).filter(|amount: &f64| amount.is_finite())
}

/// GiB-seconds of memory reserved for executors. `None` where there were none
/// that the source tells of, or not when, or not how much.
fn gib_seconds(application: &Application) -> Option<f64> {
    let end = application.end.unwrap_or(application.observed);
    let mut sum = 0.0;
    for executor in &application.executors {
        // As for cores: one that was there from the start has no event.
        let added = executor.added.or(application.start)?;
        let removed = executor.removed.unwrap_or(end).min(end).max(added);
        let held = removed.as_millisecond().saturating_sub(added.as_millisecond());
        let bytes = executor_memory::reserved(application, executor)?;
        sum += bytes as f64 / GIB * (held as f64 / 1_000.0);
    }
    (!application.executors.is_empty()).then_some(sum)
}

impl Diagnosis {
    /// The diagnosis with what the run cost, where there are prices.
    #[must_use]
    pub fn priced(mut self, application: &Application, prices: &Prices) -> Self {
        self.price = price(application, &self.totals, prices).map(|amount| {
            let share = self.totals.bought.zip(self.totals.used).and_then(|(bought, used)| {
                let bought = bought.as_secs_f64();
                (bought > 0.0).then(|| (1.0 - used.as_secs_f64() / bought).max(0.0))
            });
            Price {
                amount,
                unused: share.map(|share| amount * share),
                currency: prices.currency.as_str().into(),
            }
        });
        self
    }
}

#[cfg(test)]
mod tests {
    use super::super::builders::{at, run, stage, task, tasks};
    use super::super::diagnose;
    use super::*;
    use crate::config::Thresholds;
    use crate::model::{DataQuality, ResourceProfile};

    fn prices(core_hour: Option<f64>, gib_hour: Option<f64>) -> Prices {
        Prices { core_hour, gib_hour, currency: "EUR".to_owned() }
    }

    fn cost(application: &Application, prices: &Prices) -> Option<f64> {
        let diagnosis = diagnose(application, &Thresholds::default());
        diagnosis.priced(application, prices).price.map(|price| price.amount)
    }

    fn close(cost: Option<f64>, expected: f64) {
        let cost = cost.expect("a cost");
        assert!((cost - expected).abs() < 1e-9, "{cost} is not {expected}");
    }

    /// Two executors of two cores for an hour, one of which leaves after 15
    /// minutes: 2.5 core-hours, 1.25 hours of an executor.
    fn hour() -> Application {
        let mut application = run(3_600);
        application.executors[1].removed = Some(at(900_000));
        application.configuration.set("spark.executor.memory", "4g");
        application.configuration.set("spark.master", "spark://master:7077");
        application
    }

    #[test]
    fn cores_and_memory_by_the_hour() {
        let application = hour();
        close(cost(&application, &prices(Some(0.04), None)), 2.5 * 0.04);
        close(cost(&application, &prices(None, Some(0.01))), 1.25 * 4.0 * 0.01);
        close(cost(&application, &prices(Some(0.04), Some(0.01))), 0.1 + 0.05);
        close(cost(&application, &prices(Some(0.0), Some(0.0))), 0.0);
        assert_eq!(cost(&application, &Prices::default()), None);
    }

    /// As Spark asks YARN and Kubernetes for it.
    #[test]
    fn a_container_is_paid_for_as_a_whole() {
        let gib_hour = prices(None, Some(1.0));
        let on = |master: &str, more: &[(&str, &str)]| {
            let mut application = hour();
            application.configuration.set("spark.master", master);
            for (key, value) in more {
                application.configuration.set(*key, *value);
            }
            cost(&application, &gib_hour)
        };
        let gib = |mib: f64| 1.25 * mib / 1_024.0;
        // A tenth of 4 GiB is more than 384 MiB.
        close(on("yarn", &[]), gib(4_096.0 + 409.6));
        close(on("k8s://https://x", &[("spark.executor.memory", "1g")]), gib(1_024.0 + 384.0));
        close(on("yarn", &[("spark.executor.memoryOverhead", "1g")]), gib(5_120.0));
        close(on("yarn", &[("spark.executor.memoryOverheadFactor", "0.5")]), gib(6_144.0));
        close(on("yarn", &[("spark.executor.minMemoryOverhead", "2g")]), gib(6_144.0));
        close(on("k8s://x", &[("spark.kubernetes.resource.type", "python")]), gib(4_096.0 * 1.4));
        let overhead = ("spark.executor.memoryOverhead", "0");
        close(on("yarn", &[overhead, ("spark.executor.pyspark.memory", "512")]), gib(4_608.0));
        let size = ("spark.memory.offHeap.size", "1g");
        close(on("yarn", &[overhead, size]), gib(4_096.0));
        close(
            on("yarn", &[overhead, size, ("spark.memory.offHeap.enabled", "true")]),
            gib(5_120.0),
        );
        // Nobody reserves overhead on a Standalone worker.
        close(on("spark://x", &[("spark.executor.memoryOverhead", "9g")]), gib(4_096.0));
    }

    #[test]
    fn a_resource_profile_goes_before_the_configuration() {
        let mut application = hour();
        application.configuration.set("spark.master", "yarn");
        application.configuration.resource_profiles = vec![ResourceProfile {
            id: 0,
            executor_cores: Some(2),
            executor_memory_bytes: Some(2 << 30),
            executor_overhead_bytes: Some(1 << 30),
            executor_python_memory_bytes: Some(1 << 30),
            executor_off_heap_bytes: Some(1 << 30),
            task_cpus: 1.0,
        }];
        close(cost(&application, &prices(None, Some(1.0))), 1.25 * 5.0);
    }

    #[test]
    fn what_is_not_known_has_no_price() {
        let mut application = hour();
        application.configuration = crate::model::Configuration::default();
        assert_eq!(cost(&application, &prices(Some(1.0), Some(1.0))), None);
        assert_eq!(cost(&application, &prices(None, Some(1.0))), None);
        // Cores alone are known.
        close(cost(&application, &prices(Some(1.0), None)), 2.5);
        application.executors.clear();
        application.data_quality.insert(DataQuality::EndpointsMissing);
        for prices in [prices(Some(1.0), None), prices(None, Some(1.0))] {
            assert_eq!(cost(&application, &prices), None);
        }
    }

    /// Local mode: the driver is the executor.
    #[test]
    fn the_driver_s_heap_in_local_mode() {
        let mut application = hour();
        application.executors.truncate(1);
        "driver".clone_into(&mut application.executors[0].id);
        application.configuration.set("spark.master", "local[2]");
        application.configuration.set("spark.driver.memory", "2g");
        close(cost(&application, &prices(None, Some(1.0))), 2.0);
    }

    #[test]
    fn what_no_task_used_is_told_by_itself() {
        let mut application = run(100);
        stage(&mut application, 0, 0, tasks(4, &task(49_990)));
        let diagnosis = diagnose(&application, &Thresholds::default());
        let price = diagnosis.priced(&application, &prices(Some(36.0), None)).price.expect("some");
        // 400 core-seconds bought, 200 used.
        assert!((price.amount - 4.0).abs() < 1e-9, "{price:?}");
        let unused = price.unused.expect("known");
        assert!((unused - 2.0).abs() < 0.01, "{unused}");
        assert_eq!(&*price.currency, "EUR");
    }
}
