//! What the span of an application says.

use opentelemetry::StringValue;

use super::attributes::Attributes;
use crate::diagnose::Diagnosis;
use crate::metrics::RunView;
use crate::metrics::catalogue::Id;
use crate::model::{Application, JobStatus, SqlStatus, StageStatus};

const STAGE_STATUSES: [StageStatus; 5] = [
    StageStatus::Pending,
    StageStatus::Active,
    StageStatus::Complete,
    StageStatus::Failed,
    StageStatus::Skipped,
];

pub(super) fn attributes(view: &RunView, to: &mut Attributes) {
    let application = &*view.application;
    let diagnosis = &*view.diagnosis;
    to.text("spark.application.kind", application.kind.as_str());
    to.text("spark.application.state", application.state.as_str());
    to.text("spark.application.source", application.source.as_str());
    if let Some(code) = application.exit_code {
        to.signed(Id::ApplicationExitCode, i64::from(code));
    }
    counts(application, to);
    let totals = &diagnosis.totals;
    to.count(Id::ApplicationExecutorsAdded, Some(application.executors.len() as u64));
    to.count(Id::ApplicationExecutorCoresPeak, totals.peak_cores.map(u64::from));
    to.span(Id::ApplicationBoughtCore, totals.bought);
    to.span(Id::ApplicationUsedCore, totals.used);
    to.float(Id::ApplicationGcRatio, totals.gc_ratio);
    to.float(Id::ApplicationTaskFailureRatio, totals.task_failure_ratio);
    if let Some(price) = &diagnosis.price {
        to.float(Id::ApplicationCost, Some(price.amount));
        let currency = StringValue::from(crate::report::privacy::cut(&price.currency, 20));
        to.text("spark.application.cost.currency", currency);
    }
    if let Some(split) = &diagnosis.time {
        to.time(split);
    }
    what_if(diagnosis, to);
    let quality = application.data_quality.iter().map(|mark| mark.as_str().into()).collect();
    to.texts("spark.application.data_quality", quality);
}

fn counts(application: &Application, to: &mut Attributes) {
    for status in JobStatus::ALL {
        let jobs = application.jobs.iter().filter(|job| job.status == status).count();
        to.some(Id::ApplicationJobs, status.as_str(), jobs as u64);
    }
    for status in SqlStatus::ALL {
        let executions = application.sql.iter().flatten();
        let count = executions.filter(|execution| execution.status == status).count();
        to.some(Id::ApplicationSqlExecutions, status.as_str(), count as u64);
    }
    for status in STAGE_STATUSES {
        let stages = application.stages.iter().filter(|stage| stage.status == status).count();
        to.some(Id::ApplicationStages, status.as_str(), stages as u64);
    }
    let omitted = Some(application.stages_omitted).filter(|omitted| *omitted > 0);
    to.count(Id::ApplicationStagesOmitted, omitted);
}

fn what_if(diagnosis: &Diagnosis, to: &mut Attributes) {
    if let Some(what_if) = &diagnosis.what_if {
        to.span(Id::ApplicationCriticalPath, Some(what_if.critical_path));
    }
}
