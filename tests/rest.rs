//! Discovery and polling against a fake driver and a fake History Server.
//! Their answers have the form of real ones (tests/fixtures/rest); what is
//! put to the test here is what we ask, how often, and what we make of
//! endpoints that fail.

#[path = "common/fake_spark.rs"]
mod fake_spark;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fake_spark::{Answer, Asked, FakeSpark};
use jiff::Timestamp;
use serde_json::{Value, json};
use spark_exporter::config::{HttpConfig, Limits, ServerUrl};
use spark_exporter::discover::{self, Role};
use spark_exporter::fetch::{FetchErrorKind, FetchLimits, HttpClient, Timeouts};
use spark_exporter::model::{DataQuality, StageId, StageStatus, State};
use spark_exporter::rest::applications::{self, Filter, Status};
use spark_exporter::rest::completed::{self, Options};
use spark_exporter::rest::{Api, RunningApplication};

fn client() -> HttpClient {
    let timeouts = Timeouts { connect: Duration::from_secs(20), ..Timeouts::DRIVER };
    HttpClient::new(&HttpConfig::default(), timeouts, FetchLimits::from(&Limits::default()))
        .expect("a client from defaults")
}

fn url(server: &FakeSpark, prefix: &str) -> ServerUrl {
    server.url(prefix).parse().expect("a URL")
}

const START: i64 = 1_800_000_000_000;

fn now() -> Timestamp {
    Timestamp::from_millisecond(START + 100_000).expect("a time")
}

fn date(millis: i64) -> String {
    let moment = Timestamp::from_millisecond(millis).expect("a time");
    moment.strftime("%Y-%m-%dT%H:%M:%S.%3fGMT").to_string()
}

fn application(id: &str, attempt: &Value) -> Value {
    let mut base = json!({"startTimeEpoch": START, "endTimeEpoch": -1, "completed": false,
        "appSparkVersion": "3.5.9", "sparkUser": "spark"});
    base.as_object_mut().expect("an object").extend(attempt.as_object().cloned().expect("one"));
    json!({"id": id, "name": "orders", "attempts": [base]})
}

/// A driver whose stages a test can change.
#[derive(Clone, Default)]
struct Driver {
    prefix: &'static str,
    jobs: Arc<Mutex<Vec<Value>>>,
    stages: Arc<Mutex<Vec<Value>>>,
    /// Endpoints that answer 500.
    broken: Arc<Mutex<Vec<&'static str>>>,
}

impl Driver {
    fn answer(&self, asked: &Asked) -> Answer {
        let Some(target) = asked.target.strip_prefix(self.prefix) else {
            return Answer::new(404, "text/html", "<h1>Not Found</h1>");
        };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        if self.broken.lock().expect("no panic").iter().any(|part| path.ends_with(part)) {
            return Answer::new(500, "text/html", "<h1>NullPointerException</h1>");
        }
        let status = query.split('&').find_map(|pair| pair.strip_prefix("status="));
        let filtered = |list: &Mutex<Vec<Value>>| {
            let mut kept = list.lock().expect("no panic").clone();
            kept.retain(|one| {
                status.is_none_or(|status| {
                    one["status"].as_str().is_some_and(|own| own.eq_ignore_ascii_case(status))
                })
            });
            kept.reverse();
            Answer::json(Value::from(kept).to_string())
        };
        match path.strip_prefix("/api/v1/").unwrap_or(path) {
            "version" => Answer::json(r#"{"spark": "3.5.9"}"#),
            "applications" => Answer::json(json!([application("app-1", &json!({}))]).to_string()),
            "/metrics/json/" => Answer::json(
                json!({"counters": {"app-1.driver.LiveListenerBus.queue.appStatus.numDroppedEvents":
                    {"count": 0}}})
                .to_string(),
            ),
            // A live UI ignores the attempt.
            rest if rest.starts_with("applications/app-1/") => {
                if rest.ends_with("/jobs") {
                    filtered(&self.jobs)
                } else if rest.ends_with("/stages") {
                    filtered(&self.stages)
                } else if rest.ends_with("/environment") {
                    Answer::json(json!({"sparkProperties": [["spark.app.attempt.id", "2"]]}).to_string())
                } else if rest.ends_with("/taskSummary") {
                    Answer::json(
                        json!({"quantiles": [0.0, 0.25, 0.5, 0.75, 0.95, 1.0],
                            "executorRunTime": [900.0, 950.0, 1000.0, 1000.0, 1100.0, 1200.0]})
                        .to_string(),
                    )
                } else if rest.ends_with("/taskList") {
                    let task = json!({"taskId": 7, "index": 3, "attempt": 0, "status": "RUNNING",
                        "launchTime": date(START + 20_000), "duration": 80_000, "executorId": "1"});
                    Answer::json(json!([task]).to_string())
                } else if rest.ends_with("/allexecutors") {
                    Answer::json(
                        json!([{"id": "driver", "totalCores": 0}, {"id": "1", "totalCores": 2}])
                            .to_string(),
                    )
                } else {
                    Answer::json("[]")
                }
            }
            _ => Answer::not_found("no such app: x"),
        }
    }

    fn set_stages(&self, stages: Vec<Value>) {
        *self.stages.lock().expect("no panic") = stages;
    }
}

fn stage(id: u32, status: &str, run_time: u64) -> Value {
    json!({"stageId": id, "attemptId": 0, "status": status, "numTasks": 20,
        "numActiveTasks": u32::from(status == "ACTIVE"),
        "numCompleteTasks": if status == "ACTIVE" { 19 } else { 20 },
        "submissionTime": date(START + 10_000), "firstTaskLaunchedTime": date(START + 11_000),
        "executorRunTime": run_time, "name": "count at orders.py:7"})
}

fn job(id: u32, status: &str, stages: &[u32]) -> Value {
    json!({"jobId": id, "status": status, "stageIds": stages,
        "submissionTime": date(START + 10_000),
        "completionTime": if status == "RUNNING" { Value::Null } else { date(START + 50_000).into() }})
}

async fn start(driver: &Driver) -> FakeSpark {
    let driver = driver.clone();
    FakeSpark::start(move |asked| driver.answer(asked)).await
}

#[tokio::test]
async fn a_driver_is_told_also_behind_a_prefix() {
    for prefix in ["", "/proxy/application_1_0001"] {
        let server = start(&Driver { prefix, ..Driver::default() }).await;
        for end in ["", "/", "/jobs/"] {
            let given = url(&server, &format!("{prefix}{end}"));
            let found = discover::probe(&client(), &given).await.expect("a driver");
            assert_eq!(found.role, Role::Driver);
            assert_eq!(found.spark_version.as_deref(), Some("3.5.9"));
        }
        assert!(server.asked().iter().all(|asked| asked.target.starts_with(prefix)));
    }
}

/// A History Server with these applications, under a prefix.
async fn history(prefix: &'static str, listed: &Value) -> FakeSpark {
    let listed = listed.to_string();
    FakeSpark::start(move |asked| match asked.target.strip_prefix(prefix) {
        Some("/api/v1/version") => Answer::json(r#"{"spark": "4.3.0"}"#),
        Some(list) if list.starts_with("/api/v1/applications?") => Answer::json(listed.clone()),
        _ => Answer::not_found("no such app: app-1/spark-exporter-probe"),
    })
    .await
}

#[tokio::test]
async fn a_history_server_is_told_empty_with_one_and_with_many() {
    let running = application("app-1", &json!({}));
    let completed = application("app-2", &json!({"completed": true}));
    let yarn = application("application_1_0001", &json!({"attemptId": "1"}));
    for listed in [
        json!([]),
        json!([running]),
        json!([completed]),
        json!([yarn]),
        json!([running, completed]),
    ] {
        for prefix in ["", "/spark/history"] {
            let server = history(prefix, &listed).await;
            let found = discover::probe(&client(), &url(&server, prefix)).await.expect("found");
            assert_eq!(found.role, Role::HistoryServer, "{listed}");
            assert!(server.asked().len() <= 3);
        }
    }
}

#[tokio::test]
async fn a_standalone_master_is_named_as_such() {
    let server = FakeSpark::start(|asked| match asked.target.as_str() {
        "/json/" => Answer::json(r#"{"url": "spark://m:7077", "workers": [], "activeapps": []}"#),
        _ => Answer::new(200, "text/html", "<title>Spark Master at spark://m:7077</title>"),
    })
    .await;
    let error = discover::probe(&client(), &url(&server, "")).await.expect_err("a master");
    assert_eq!(error.kind, FetchErrorKind::NotJson);
    let text = error.to_string();
    assert!(text.contains("Spark Standalone master"), "{text}");
    assert!(text.contains("driver's own UI"), "{text}");
}

#[tokio::test]
async fn lists_are_asked_with_what_bounds_them() {
    let server = history("", &json!([application("app-1", &json!({"completed": true}))])).await;
    let api = Api::new(&client(), &url(&server, ""));
    let filter = Filter { status: Some(Status::Completed), min_end: Some(now()), limit: Some(100) };
    let listed = applications::get(&api, filter).await.expect("a list");
    assert_eq!(listed.len(), 1);
    assert_eq!(
        server.asked()[0].target,
        "/api/v1/applications?status=completed&minEndDate=2027-01-15T08%3A01%3A40.000GMT&limit=100"
    );
}

#[tokio::test]
async fn a_live_skewed_stage_shows_its_running_task_in_a_normal_cycle() {
    let driver = Driver::default();
    driver.jobs.lock().expect("no panic").push(job(0, "RUNNING", &[0, 1]));
    driver.set_stages(vec![stage(0, "COMPLETE", 900), stage(1, "ACTIVE", 19_000)]);
    let server = start(&driver).await;
    let client = client();
    let mut reader = RunningApplication::new("default", url(&server, ""));
    let first = reader.poll(&client, now()).await.expect("polled");
    assert!(reader.cost().extended);
    assert_eq!(first.state, State::Running);
    // Only `/environment` tells the attempt of a live application.
    assert_eq!(first.id.attempt_id.as_deref(), Some("2"));
    assert_eq!(first.data_quality, [].into());
    for cycle in 1..=3 {
        let read = reader.poll(&client, now() + Duration::from_secs(10 * cycle)).await;
        let read = read.expect("polled");
        let cost = reader.cost();
        assert!(!cost.extended && cost.requests <= 5, "{cost:?}");
        let active = &read.stages[1];
        assert_eq!((active.status, active.job_ids.as_slice()), (StageStatus::Active, &[0][..]));
        assert_eq!(active.running[0].duration, Duration::from_secs(80));
        assert_eq!(active.measures.run_time.median(), Some(Duration::from_secs(1)));
    }
    // Every parameter is said; running tasks by launch, never all tasks.
    for asked in server.asked() {
        assert_eq!(asked.method, "GET");
        if asked.target.contains("/stages?") {
            assert!(asked.target.contains("details=false&withSummaries=false"), "{asked:?}");
        }
        if asked.target.contains("taskList") {
            assert!(
                asked.target.ends_with("?offset=0&length=20&sortBy=ID&status=running"),
                "{asked:?}"
            );
        }
    }
}

#[tokio::test]
async fn finished_attempts_are_asked_about_once_and_three_in_a_cycle() {
    let driver = Driver::default();
    let costly = (0..5).map(|id| stage(id, "COMPLETE", 20_000 + u64::from(id)));
    driver.set_stages(costly.chain([stage(5, "COMPLETE", 50)]).collect());
    let server = start(&driver).await;
    let client = client();
    let mut reader = RunningApplication::new("default", url(&server, ""));
    let mut summaries = Vec::new();
    for cycle in 0..4 {
        reader.poll(&client, now() + Duration::from_secs(10 * cycle)).await.expect("polled");
        let asked = server.asked();
        let stages = asked.iter().filter(|asked| asked.target.contains("taskSummary"));
        summaries.push(stages.map(|asked| asked.target.clone()).collect::<Vec<_>>());
    }
    let counts: Vec<usize> = summaries.iter().map(Vec::len).collect();
    assert_eq!(counts, [3, 5, 5, 5]);
    // Costliest first.
    assert!(summaries[0][0].contains("/stages/4/0/"), "{:?}", summaries[0]);
    assert!(summaries[0][0].ends_with("?quantiles=0.0%2C0.25%2C0.5%2C0.75%2C0.95%2C1.0"));
}

#[tokio::test]
async fn lists_come_once_a_minute_and_after_a_stage_ended() {
    let driver = Driver::default();
    driver.jobs.lock().expect("no panic").push(job(0, "RUNNING", &[0, 1]));
    driver.set_stages(vec![stage(0, "COMPLETE", 1), stage(1, "ACTIVE", 5_000)]);
    let server = start(&driver).await;
    let client = client();
    let mut reader = RunningApplication::new("default", url(&server, ""));
    let lists = || {
        server.asked().iter().filter(|asked| asked.target.ends_with("withSummaries=false")).count()
    };
    let mut counts = Vec::new();
    for cycle in 0..14_u64 {
        if cycle == 9 {
            driver.set_stages(vec![stage(0, "COMPLETE", 1), stage(1, "COMPLETE", 5_000)]);
            *driver.jobs.lock().expect("no panic") = vec![job(0, "SUCCEEDED", &[0, 1])];
        }
        let moment = now() + Duration::from_secs(10 * cycle);
        let read = reader.poll(&client, moment).await.expect("polled");
        // It is never missing, whatever list it is in.
        assert_eq!(read.stages.len(), 2, "cycle {cycle}");
        counts.push(lists());
    }
    // At 0 s, at 60 s, at 90 s when the stage had ended, at 150 s not yet.
    assert_eq!(counts, [1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3]);
}

#[tokio::test]
async fn stages_that_spark_forgot_are_counted() {
    let driver = Driver::default();
    driver.set_stages((500..700).map(|id| stage(id, "COMPLETE", 1)).collect());
    let server = start(&driver).await;
    let mut reader = RunningApplication::new("default", url(&server, ""));
    let read = reader.poll(&client(), now()).await.expect("polled");
    assert_eq!((read.stages.len(), read.stages_omitted), (200, 500));
    assert!(read.has(DataQuality::StagesEvicted));
}

#[tokio::test]
async fn one_broken_endpoint_costs_only_its_part() {
    for broken in ["/environment", "/allexecutors", "/jobs", "/stages", "/storage/rdd"] {
        let driver = Driver::default();
        driver.jobs.lock().expect("no panic").push(job(0, "RUNNING", &[0]));
        driver.set_stages(vec![stage(0, "ACTIVE", 5_000)]);
        driver.broken.lock().expect("no panic").push(broken);
        let server = start(&driver).await;
        let mut reader = RunningApplication::new("default", url(&server, ""));
        let read = reader.poll(&client(), now()).await.expect(broken);
        assert!(read.has(DataQuality::EndpointsMissing), "{broken}");
        assert_eq!(read.name, "orders");
        assert_eq!(read.stages.is_empty(), broken == "/stages");
        assert_eq!(read.executors.is_empty(), broken == "/allexecutors");
        // It comes back.
        driver.broken.lock().expect("no panic").clear();
        let later = now() + Duration::from_mins(1);
        let read = reader.poll(&client(), later).await.expect("polled");
        assert!(!read.has(DataQuality::EndpointsMissing), "{broken}");
        assert_eq!((read.stages.len(), read.executors.len()), (1, 1));
    }
    let driver = Driver::default();
    driver.broken.lock().expect("no panic").push("/applications");
    let server = start(&driver).await;
    let mut reader = RunningApplication::new("default", url(&server, ""));
    let error = reader.poll(&client(), now()).await.expect_err("no application");
    assert_eq!(error.status, Some(500));
    assert_eq!(reader.cost().requests, 1);
}

#[tokio::test]
async fn another_application_on_the_same_port_begins_anew() {
    let second = Arc::new(Mutex::new(false));
    let (driver, switch) = (Driver::default(), Arc::clone(&second));
    driver.set_stages(vec![stage(0, "COMPLETE", 1), stage(1, "COMPLETE", 1)]);
    let server = FakeSpark::start({
        let driver = driver.clone();
        move |asked| {
            if !*switch.lock().expect("no panic") {
                return driver.answer(asked);
            }
            match asked.target.as_str() {
                "/api/v1/applications?limit=1" => {
                    Answer::json(json!([application("app-2", &json!({}))]).to_string())
                }
                _ => Answer::json("[]"),
            }
        }
    })
    .await;
    let client = client();
    let mut reader = RunningApplication::new("default", url(&server, ""));
    let read = reader.poll(&client, now()).await.expect("polled");
    assert_eq!((read.id.app_id.as_str(), read.stages.len()), ("app-1", 2));
    *second.lock().expect("no panic") = true;
    let read = reader.poll(&client, now() + Duration::from_secs(10)).await.expect("polled");
    assert_eq!((read.id.app_id.as_str(), read.stages.len()), ("app-2", 0));
    assert_eq!(read.id.attempt_id, None);
}

#[tokio::test]
async fn a_completed_run_is_read_with_its_attempt() {
    let driver = Driver::default();
    *driver.jobs.lock().expect("no panic") = vec![job(0, "SUCCEEDED", &[0, 1])];
    driver.set_stages(vec![stage(0, "COMPLETE", 30_000), stage(1, "SKIPPED", 0)]);
    let server = start(&driver).await;
    let listed = application(
        "app-1",
        &json!({"attemptId": "2", "completed": true, "endTimeEpoch": START + 60_000, "exitCode": 1}),
    );
    let listed: applications::ApplicationInfo = serde_json::from_value(listed).expect("readable");
    let attempt = listed.latest().expect("one");
    let (client, base) = (client(), url(&server, ""));
    let read =
        completed::read(&Api::new(&client, &base), "c", &listed, attempt, Options::default())
            .await
            .expect("read");
    assert_eq!(read.id.to_string(), "c/app-1/2");
    assert_eq!((read.state, read.exit_code), (State::Failed, Some(1)));
    assert_eq!(read.duration(), Some(Duration::from_mins(1)));
    assert_eq!(read.data_quality, [].into());
    assert_eq!(read.stages[0].id, StageId { stage: 0, attempt: 0 });
    assert_eq!(read.stages[0].measures.run_time.max(), Some(Duration::from_millis(1_200)));
    // A History Server cannot know what was cached.
    assert_eq!(read.stages[0].reads_cache, None);
    assert!(server.asked().iter().all(|asked| asked.target.contains("/applications/app-1/2/")));
}

#[tokio::test]
async fn a_run_that_the_history_server_forgot_is_an_error() {
    let server = history("", &json!([])).await;
    let listed: applications::ApplicationInfo =
        serde_json::from_value(application("app-1", &json!({"completed": true})))
            .expect("readable");
    let (client, base) = (client(), url(&server, ""));
    let attempt = listed.latest().expect("one");
    let error =
        completed::read(&Api::new(&client, &base), "c", &listed, attempt, Options::default())
            .await
            .expect_err("forgotten");
    assert_eq!(error.kind, FetchErrorKind::UnknownApplication);
    assert_eq!(server.asked().len(), 1);
}
