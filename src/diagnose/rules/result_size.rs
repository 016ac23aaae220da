//! The part of `memory` about what tasks send to the driver.

use super::context::{Context, ratio};
use super::draft::{Draft, Weight};
use super::memory::{self, driver_memory};
use super::{FindingKind, Severity, Subject, Unit, Where, humane};
use crate::model::{Application, Stage};

const KEY: &str = "spark.driver.maxResultSize";
const GIB: u64 = 1 << 30;

/// Results that were larger than the driver takes, or nearly.
pub(super) fn judge(context: &Context<'_>) -> Option<Draft> {
    let application = context.application;
    // 0: no limit.
    let limit = application.configuration.bytes(KEY, 1).unwrap_or(GIB);
    let high = context.thresholds.memory.high_ratio;
    if let Some(stage) = aborted(application) {
        return Some(over(context, stage, limit));
    }
    let stage = application.stages.iter().max_by_key(|stage| stage.result_bytes)?;
    let bytes = stage.result_bytes.filter(|_| limit > 0)?;
    let share = ratio(bytes, limit).filter(|share| *share >= high)?;
    let headline = format!(
        "Stage {} sent {} to the driver, {} of what it takes",
        stage.id,
        humane::bytes(bytes),
        humane::percent(share),
    );
    Some(advise(
        draft(headline, limit)
            .weight(Weight::Exactly(Severity::Info))
            .evidence("peak_ratio", share, Unit::Ratio, high, format!("stage {}", stage.id))
            .evidence("results", bytes as f64, Unit::Bytes, None, format!("stage {}", stage.id)),
        driver_memory(&application.configuration),
    ))
}

/// The stage attempt whose results were too much.
fn aborted(application: &Application) -> Option<&Stage> {
    let says = |reason: &Option<String>| {
        reason.as_deref().is_some_and(|reason| {
            reason.contains("Total size of serialized results") && reason.contains(KEY)
        })
    };
    application.stages.iter().rfind(|stage| {
        says(&stage.failure_reason)
            || application.jobs.iter().any(|job| {
                says(&job.failure_reason)
                    && stage.failure_reason.is_some()
                    && job.stage_ids.contains(&stage.id.stage)
            })
    })
}

fn over(context: &Context<'_>, stage: &Stage, limit: u64) -> Draft {
    let headline = format!(
        "Stage {} was aborted: its results were more than the driver takes ({})",
        stage.id,
        humane::bytes(limit),
    );
    let from = format!("stage {}", stage.id);
    let mut draft = draft(headline, limit).weight(Weight::Exactly(Severity::Warning));
    if let Some(bytes) = stage.result_bytes {
        draft = draft.evidence("results", bytes as f64, Unit::Bytes, limit as f64, from);
    }
    advise(draft, driver_memory(&context.application.configuration))
}

fn draft(headline: String, limit: u64) -> Draft {
    let subject = Subject::ConfigurationKey { key: KEY.to_owned() };
    memory::draft(FindingKind::Configuration, subject, headline).evidence(
        "given",
        limit as f64,
        Unit::Bytes,
        None,
        KEY,
    )
}

fn advise(draft: Draft, driver_memory: u64) -> Draft {
    draft
        .advice_unless(
            "Do not bring it to the driver: write it out from the executors, or aggregate, filter \
             or limit it first; toLocalIterator() brings one partition at a time",
            Where::Sql,
            "the driver needs all of it",
        )
        .advice_unless(
            format!(
                "Raise spark.driver.maxResultSize, and spark.driver.memory ({} now) to several \
                 times that: results are larger once they are read",
                humane::bytes(driver_memory)
            ),
            Where::Conf,
            "very many tasks send little each: then have fewer partitions",
        )
}
