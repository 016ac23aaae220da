//! `docs/alerts.md`: its tables are made from the rules (`make alerts`).

use std::fmt::Write;

use crate::common::real::root;
use crate::files::{ALERTS, RECORDING, annotation, folder, rules};

const ALERTS_BEGIN: &str = "<!-- alerts: made from alerts/mixin.libsonnet by make alerts -->\n";
const ALERTS_END: &str = "<!-- end of alerts -->";
const RULES_BEGIN: &str = "<!-- rules: made from alerts/mixin.libsonnet by make alerts -->\n";
const RULES_END: &str = "<!-- end of rules -->";

/// What a recorded metric says, after its level.
const MEANINGS: [(&str, &str); 16] = [
    ("spark_application_runs:", "runs that ended, by outcome"),
    ("spark_application_runs_failed_per_runs:", "failed or lost, of those whose outcome is known"),
    (
        "spark_application_runs_succeeded_per_runs:",
        "succeeded, of those whose outcome is known (Spark 3 does not tell)",
    ),
    ("spark_application_runs_bought_core_seconds:", "core-seconds paid for"),
    ("spark_application_runs_used_core_seconds:", "core-seconds in which a task ran"),
    ("spark_application_runs_wasted_core_seconds:", "core-seconds paid for and not used"),
    (
        "spark_application_runs_used_per_bought_core_seconds:",
        "efficiency: used of what was paid for",
    ),
    ("spark_application_runs_cost:", "what runs cost, by currency"),
    ("spark_application_runs_disk_spilled_bytes:", "bytes spilled to disk"),
    ("spark_application_runs_input_bytes:", "bytes read"),
    ("spark_application_runs_with_finding:", "runs in which the rule found something"),
    ("spark_application_runs_duration_seconds:", "how long runs that ended well took"),
    ("spark_application_state:", "runs that are shown, by state"),
    ("spark_application_executor_cores:", "cores of executors that are there now"),
    ("spark_finding:", "findings that are shown, by rule and severity"),
    ("spark_finding_", "seconds that runs which are shown would save without them, by rule"),
];

fn table_of_alerts() -> String {
    let mut table = String::new();
    for file in ALERTS {
        writeln!(table, "\n`{file}`:\n\n| alert | severity | for | says |\n|---|---|---|---|")
            .unwrap();
        for alert in rules(&folder(), file) {
            let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
            let name = text(&alert["alert"]);
            writeln!(
                table,
                "| [{name}](runbooks/{name}.md) | {} | {} | {} |",
                text(&alert["labels"]["severity"]),
                text(&alert["for"]),
                annotation(&alert, "summary"),
            )
            .unwrap();
        }
    }
    table.push('\n');
    table
}

fn table_of_rules() -> String {
    let mut table = "\n| series | what it says |\n|---|---|\n".to_owned();
    for rule in rules(&folder(), RECORDING) {
        let name = rule["record"].as_str().unwrap();
        let metric = name.split_once(':').unwrap().1;
        let meaning = MEANINGS.iter().find(|(of, _)| metric.starts_with(of));
        let meaning = meaning.unwrap_or_else(|| panic!("{name} has no meaning in page.rs")).1;
        let operation = match metric.rsplit(':').next().unwrap() {
            operation if operation.ends_with("increase1d") => match operation.split('_').next() {
                Some("mean") => ", mean of a day",
                Some("p50") => ", median of a day",
                Some("p90") => ", 90th percentile of a day",
                _ => ", in a day",
            },
            _ => "",
        };
        writeln!(table, "| `{name}` | {meaning}{operation} |").unwrap();
    }
    table.push('\n');
    table
}

fn replaced(page: &str, begin: &str, end: &str, table: &str) -> String {
    let (before, rest) = page.split_once(begin).expect("where the table begins");
    let (_, after) = rest.split_once(end).expect("where it ends");
    format!("{before}{begin}{table}{end}{after}")
}

#[test]
fn the_tables_of_the_page_are_those_of_the_rules() {
    let path = root().join("docs/alerts.md");
    let found = std::fs::read_to_string(&path).unwrap();
    let page = replaced(&found, ALERTS_BEGIN, ALERTS_END, &table_of_alerts());
    let page = replaced(&page, RULES_BEGIN, RULES_END, &table_of_rules());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, page).unwrap();
    } else {
        assert!(found == page, "docs/alerts.md is not what the rules say: run make alerts");
    }
    crate::runbooks::links_of(&path);
}

/// Every setting of the mixin is on the page, and none that is not there.
#[test]
fn the_page_names_the_settings_of_the_mixin() {
    let page = std::fs::read_to_string(root().join("docs/alerts.md")).unwrap();
    let config = std::fs::read_to_string(folder().join("config.libsonnet")).unwrap();
    let setting = regex::Regex::new(r"(?m)^    (\w+): ").unwrap();
    let settings: Vec<&str> =
        setting.captures_iter(&config).map(|found| found.get(1).unwrap().as_str()).collect();
    assert!(settings.len() > 10, "{settings:?}");
    for setting in settings {
        assert!(page.contains(&format!("`{setting}`")), "docs/alerts.md does not name {setting}");
    }
}
