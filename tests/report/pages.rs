//! The daemon's report of each run: its address, its forms, what it refuses.

use reqwest::{Client, Method, StatusCode};

use crate::SOON;
use crate::common::real::{daemon, get, until};
use crate::common::recorded;

#[tokio::test]
async fn every_run_that_is_held_has_its_report() {
    let arguments =
        ["hot_key/4.3.0", "healthy/4.3.0"].map(|run| recorded(run).display().to_string());
    let [ill, healthy] = &arguments;
    let (_exporter, address) =
        daemon(&["--cluster.name", "a/b", "--event-log.dir", ill, "--event-log.dir", healthy]);
    let metrics = until(&format!("{address}/metrics"), SOON, |text| {
        (text.matches("spark_application_info{").count() == 2).then(|| text.to_owned())
    })
    .await;
    // What an alert knows of a finding is its labels.
    let finding = metrics.lines().find(|line| line.starts_with("spark_finding{")).unwrap();
    let label = |name: &str| {
        let (_, rest) = finding.split_once(&format!("{name}=\"")).unwrap();
        rest.split_once('"').unwrap().0.to_owned()
    };
    let (app_id, attempt, rule) = (label("app_id"), label("attempt_id"), label("rule"));
    let report = format!("{address}/applications/a%2Fb/{app_id}");

    let landing = get(&address).await;
    let link = format!("href=\"/applications/a%2Fb/{app_id}\"");
    assert!(landing.contains(&link), "the list leads to it");
    let page = get(&format!("{report}/{attempt}")).await;
    assert_eq!(page, get(&report).await, "an empty attempt is none");
    assert!(page.contains("orders-by-customer") && page.contains("Where the time went"));
    assert!(page.contains(&format!("id=\"{rule}\"")), "the rule is an anchor");
    let stage = format!("{rule}-stage-{}.{}", label("stage_id"), label("stage_attempt_id"));
    assert!(page.contains(&format!("id=\"{stage}\"")), "and so is the finding, by its labels");
    for nothing in ["<script", "http://", "https://", "src=", "url("] {
        assert!(!page.contains(nothing), "{nothing} is in the page");
    }

    let markdown = get(&format!("{report}.md")).await;
    assert!(markdown.starts_with("# orders-by-customer\n"), "{markdown}");
    let json: serde_json::Value =
        serde_json::from_str(&get(&format!("{report}.json")).await).unwrap();
    assert_eq!(json["applications"][0]["app_id"], app_id.as_str());
    assert_eq!(json["applications"][0]["findings"][0]["anchor"], stage.as_str());

    let client = Client::builder().no_proxy().no_gzip().build().unwrap();
    let ask = |method: Method, url: String| client.request(method, url).send();
    let response = ask(Method::HEAD, report.clone()).await.unwrap();
    let policy = response.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.contains("default-src 'none'") && !policy.contains("script"), "{policy}");
    let length: usize = response.headers()["content-length"].to_str().unwrap().parse().unwrap();
    assert_eq!(response.headers()["content-type"], "text/html; charset=utf-8");
    assert_eq!(response.text().await.unwrap(), "");
    assert_eq!(length, page.len());
    let gzip = client.get(&report).header("accept-encoding", "gzip").send().await.unwrap();
    assert!(gzip.bytes().await.unwrap().len() < page.len() / 2);

    assert_eq!(
        ask(Method::POST, report.clone()).await.unwrap().status(),
        StatusCode::METHOD_NOT_ALLOWED
    );
    for missing in ["a%2Fb/none", "other/x", "", "a%2Fb", "%zz/x", "a%2Fb/<script>", "a/b/c/d"] {
        let response = ask(Method::GET, format!("{address}/applications/{missing}")).await.unwrap();
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{missing}");
        let text = response.text().await.unwrap();
        assert!(text.contains("No such application") && !text.contains("script"), "{text}");
    }
    // However many ask, and whatever for: one series a status.
    let metrics = get(&format!("{address}/metrics")).await;
    let series = metrics.lines().filter(|line| {
        line.starts_with("spark_exporter_web_requests_total{") && line.contains("/applications")
    });
    assert!(series.clone().count() <= 3, "{:?}", series.collect::<Vec<_>>());
}

/// Many at once are answered, each whole.
#[tokio::test]
async fn many_who_ask_at_once_all_get_it() {
    let log = recorded("sql_plans/4.3.0").display().to_string();
    let (_exporter, address) = daemon(&["--event-log.dir", &log]);
    let page = until(&address, SOON, |text| {
        let (_, rest) = text.split_once("href=\"/applications/")?;
        Some(format!("{address}/applications/{}", rest.split_once('"')?.0))
    })
    .await;
    let mut all = tokio::task::JoinSet::new();
    for number in 0..60 {
        let form = ["", ".md", ".json"][number % 3];
        let url = format!("{page}{form}");
        all.spawn(async move { get(&url).await.len() });
    }
    while let Some(length) = all.join_next().await {
        assert!(length.unwrap() > 5_000);
    }
}
