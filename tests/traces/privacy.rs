//! Texts of users leave only where they are asked for, and secrets never.

use spark_exporter::expose::otlp::spans::{due, requests};
use spark_exporter::model::{Application, JobStatus, SqlStatus, StageStatus};
use spark_exporter::report::Texts;
use spark_exporter::store::SentSpans;

use crate::{now, recorded, settings, view};

const TEXT: &str = "planted";
const SECRET: &str = "hunter2";

fn planted(place: &str) -> String {
    format!("{TEXT}-{place} password='{SECRET}' jdbc:x://me:{SECRET}@db/{TEXT}")
}

/// Every text that a user can write to, of a run with a failed execution.
fn plant() -> Application {
    let mut application = recorded("sql_plans/4.3.0");
    application.user = Some(planted("user"));
    application.configuration.set("spark.my.own", planted("property"));
    for execution in application.sql.iter_mut().flatten() {
        execution.description = planted("description").into();
        execution.status = SqlStatus::Failed;
        execution.error = Some(planted("error").into());
        for node in execution.plan.iter_mut().flat_map(|plan| &mut plan.nodes) {
            node.text = planted("node").into();
            if node.name.contains("Scan") {
                node.name = format!("Scan parquet {}", planted("table")).into();
            }
        }
    }
    for job in &mut application.jobs {
        job.status = JobStatus::Failed;
        job.failure_reason = Some(planted("job"));
    }
    for stage in &mut application.stages {
        stage.name = planted("call site");
        if stage.status == StageStatus::Complete {
            stage.status = StageStatus::Failed;
            stage.failure_reason = Some(planted("stage"));
        }
    }
    application
}

fn sent(texts: Texts) -> String {
    let view = view(plant());
    let due = due(&view, &SentSpans::default(), &settings(), texts, now());
    let resource = opentelemetry_proto::tonic::resource::v1::Resource::default();
    let batches = requests(due.parts, &resource, 4 << 20);
    let bodies = batches.iter().map(|batch| String::from_utf8_lossy(&batch.request.body));
    bodies.collect()
}

#[test]
fn texts_are_sent_where_they_are_asked_for() {
    let hidden = sent(Texts::Hidden);
    assert!(hidden.contains("spark.sql_execution.plan") && hidden.contains("Scan parquet"));
    let at = hidden.find(TEXT).map(|at| hidden[at.saturating_sub(200)..].to_owned());
    assert_eq!(at, None, "a text of a user was sent");
    assert!(!hidden.contains(SECRET));

    let shown = sent(Texts::Shown);
    for place in ["description", "error", "node", "job", "stage", "call site"] {
        assert!(shown.contains(&format!("{TEXT}-{place}")), "{place} is not shown");
    }
    assert!(!shown.contains(SECRET), "a secret was sent");
    assert!(!shown.contains("planted-property"), "a property's value was sent");
}
