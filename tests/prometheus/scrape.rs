//! Both versions of Prometheus scrape the web server and answer queries.

use std::sync::Arc;

use spark_exporter::config::Limits;
use spark_exporter::expose::{self, ExposeState};
use spark_exporter::metrics::{RunView, build};
use spark_exporter::telemetry::Telemetry;
use tokio::net::TcpListener;

use crate::SOON;
use crate::servers::{Prometheus, VERSIONS};
use crate::support::{at, run_id, skewed_run};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prometheus_scrapes_and_answers() {
    let [old, new] = VERSIONS;
    tokio::join!(scrapes_and_answers(old), scrapes_and_answers(new));
}

async fn scrapes_and_answers(version: &'static str) {
    let telemetry = Arc::new(Telemetry::new(at(0)));
    let limits = Limits::default();
    let state = Arc::new(ExposeState::new(Arc::clone(&telemetry), &limits, at(0)));
    let publish = |runs: Vec<RunView>| {
        let snapshot = build(&runs, &[], &telemetry.snapshot(), &limits, at(80));
        let series = snapshot.series();
        state.publish(snapshot, runs, at(80));
        series
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let target = listener.local_addr().expect("bound").to_string();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let server = tokio::spawn(expose::run(listener, Arc::clone(&state), async {
        let _ = stopped.await;
    }));
    let series = publish(vec![skewed_run(run_id("a", "app-1")), skewed_run(run_id("b", "app-1"))]);
    let prometheus = Prometheus::start(version, &[], None);
    prometheus.scrape(&[target]);

    prometheus.wait("up == 1", SOON, |result| result.len() == 1).await;
    // Every series arrived, none was refused as a duplicate.
    let expected = series.to_string();
    prometheus
        .wait("scrape_samples_post_metric_relabeling", SOON, |result| {
            result.first().is_some_and(|one| one["value"][1] == expected.as_str())
        })
        .await;
    let found = prometheus
        .wait("spark_finding{rule=\"data_skew\"}", SOON, |result| result.len() == 2)
        .await;
    assert_eq!(found[0]["metric"]["app_name"], "orders \"daily\"");
    assert_eq!(found[0]["metric"]["spark_cluster"], "a");
    // No label of ours met one of the target's.
    assert!(
        found[0]["metric"]
            .as_object()
            .is_some_and(|labels| { labels.keys().all(|name| !name.starts_with("exported_")) })
    );
    // The join that docs/metrics.md shows.
    let joined = prometheus
        .wait(
            "spark_application_task_gc_time_seconds * on (spark_cluster, app_id, attempt_id) \
             group_left (app_name) spark_application_info",
            SOON,
            |result| result.len() == 2,
        )
        .await;
    assert_eq!(joined[0]["value"][1], "1.1");

    // A run that expired is gone at the next scrape.
    publish(vec![skewed_run(run_id("b", "app-1"))]);
    let left = prometheus.wait("spark_finding", SOON, |result| result.len() == 1).await;
    assert_eq!(left[0]["metric"]["spark_cluster"], "b");
    drop(prometheus);
    drop(stop);
    server.await.expect("no panic");
}
