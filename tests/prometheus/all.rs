//! All of it in one go, since what takes long is to wait: runs end, daemons
//! get into trouble, the one that watches is restarted.

use std::time::Duration;

use crate::runs::Run;
use crate::world::{World, cluster_of};
use crate::{alerts, panels};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_right_alerts_arrive_and_no_others() {
    let started = std::time::Instant::now();
    let passed = |what: &str| println!("{:?}: {what}", started.elapsed());
    let mut world = World::start().await;
    passed("there");
    alerts::pathologies(&world).await;
    passed("pathologies told");
    alerts::reports_are_there(&world).await;
    trouble(&mut world).await;
    alerts::daemons_in_trouble(&world).await;
    passed("daemons in trouble told");
    // Old runs are read again, and are no news.
    world.restart_main().await;
    passed("restarted");
    // Totals by name stand at 0 for two minutes.
    for watcher in &world.watchers {
        let counted = "increase(spark_application_runs_with_finding_total[15m]) > 0";
        watcher.prometheus.wait(counted, Duration::from_mins(3), |found| found.len() > 10).await;
    }
    passed("counted");
    panels::all_have_something_to_show(&world).await;
    passed("panels shown");
    alerts::nothing_else(&world).await;
    passed("and nothing else");
}

/// Daemons that suffer from everything that an alert is about.
async fn trouble(world: &mut World) {
    for cluster in ["torn", "crowded", "twin", "nothing"] {
        std::fs::create_dir(world.cluster(cluster)).unwrap();
    }
    // A log that cannot be read, one that may not be followed, a store that is
    // none, too many series, a source that does not answer, and nobody who
    // takes what is sent by OTLP.
    let torn = world.cluster("torn");
    std::fs::write(torn.join("app-first.zip"), b"PK\x03\x04rest of it").unwrap();
    let run = Run::recorded("healthy_short/4.3.0");
    run.clone().named("a", "a").write(&torn, "a", Duration::ZERO);
    run.named("b", "b").going_on().write(&torn, "b.inprogress", Duration::ZERO);
    let store = world.cluster("foreign-store");
    std::fs::write(&store, b"SQLite format 3\0 and more that is not ours".repeat(300)).unwrap();
    let configuration = format!(
        "clusters:\n- {{name: torn, event_log_dirs: ['{}'], urls: ['http://127.0.0.1:1']}}\n\
         - {{name: gone, urls: ['http://127.0.0.1:1']}}\n\
         intervals: {{event_log_dir: 1s}}\nstorage: {{path: '{}'}}\nlimits: {{series: 200, followed_logs: 0}}\n\
         otlp: {{metrics: {{endpoint: 'http://127.0.0.1:1/v1/metrics', interval: 2s}}}}\n",
        torn.display(),
        store.display()
    );
    let left_out = "skipped{reason=\"in_progress\"} 1\n";
    world.add_daemon("torn", &configuration, left_out).await;
    std::fs::write(torn.join("app-second.zip"), b"PK\x03\x04rest of it").unwrap();

    // More names than it may have, two runs with one id; and a run that
    // another daemon shows too.
    let (crowded, twin) = (world.cluster("crowded"), world.cluster("twin"));
    let skew = Run::recorded("hot_key/4.3.0").named("skew", "skew");
    skew.write(&twin, "skew", Duration::from_secs(1));
    let configuration = format!(
        "clusters:\n- {{name: crowded, event_log_dirs: ['{}']}}\n\
         - {{name: ill, event_log_dirs: ['{}']}}\n\
         intervals: {{event_log_dir: 1s}}\nlimits: {{app_names: 1}}\n\
         thresholds: {{cost: {{critical_at: 2s, critical_ratio: 0.05}}}}\n",
        crowded.display(),
        twin.display()
    );
    world.add_daemon("crowded", &configuration, "app_id=\"skew\"").await;
    for (file, name, ago) in [("a", "a", 1), ("b", "b", 400), ("c", "c", 2)] {
        let id = if file == "c" { "c" } else { "same" };
        let run = Run::recorded("healthy_short/4.3.0").named(id, name);
        run.write(&crowded, file, Duration::from_secs(ago));
    }

    let nothing = cluster_of("nothing", &world.cluster("nothing"));
    let restless = world.add_daemon("restless", &nothing, "spark_exporter_build_info").await;
    world.add_daemon("dying", &nothing, "spark_exporter_build_info").await;
    world.kill("dying");
    world.restart("restless", &restless, 3).await;
}
