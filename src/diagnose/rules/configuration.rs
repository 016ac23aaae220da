//! `configuration`: settings that are off or unset, where this very run shows
//! that it mattered.
//!
//! A missing setting alone is never told: each part ties it to something that
//! can be measured in the same run. Values of properties are not shown.

use std::collections::BTreeMap;
use std::time::Duration;

use super::context::{Context, StageView, ratio, seconds};
use super::draft::{Draft, Weight};
use super::executions::ExecutionView;
use super::task_list::TaskList;
use super::{
    About, Cause, Confidence, FindingKind, Impact, Rule, Severity, Subject, Unit, Where, humane,
    loss, replay,
};
use crate::model::{DataQuality, Source, State};

const ADAPTIVE: &str = "spark.sql.adaptive.enabled";
const COALESCE: &str = "spark.sql.adaptive.coalescePartitions.enabled";
const SKEW_JOIN: &str = "spark.sql.adaptive.skewJoin.enabled";
const SKEW_BYTES: &str = "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes";
const SKEW_FACTOR: &str = "spark.sql.adaptive.skewJoin.skewedPartitionFactor";
const PARTITIONS: &str = "spark.sql.shuffle.partitions";
const OVERHEAD: &str = "spark.executor.memoryOverhead";
const OVERHEAD_FACTOR: &str = "spark.executor.memoryOverheadFactor";
const TRACKING: &str = "spark.dynamicAllocation.shuffleTracking.enabled";
const EVENT_LOG: &str = "spark.eventLog.enabled";
const MIB: u64 = 1 << 20;
/// `spark.sql.adaptive.coalescePartitions.minPartitionSize`: adaptive
/// execution makes no partition smaller than this.
const SMALLEST: u64 = MIB;

pub(super) const ABOUT: About = About {
    rule: Rule::Configuration,
    meaning: "A setting is off, or was left as it is, and this run shows that it mattered.",
    details: r#"Never for a missing setting alone. The subject is the key.

| key | *fires* where the run shows |
|---|---|
| `spark.sql.adaptive.enabled`, `spark.sql.adaptive.coalescePartitions.enabled` | off, and stages on the configured number of shuffle partitions whose partitions adaptive execution would have put together: the time of the tasks that would not have been |
| `spark.sql.adaptive.enabled`, `spark.sql.adaptive.skewJoin.enabled` | off, and `data_skew` in the stage of a join, whose largest partition is above Spark's own bounds for splitting it (`skewedPartitionThresholdInBytes`, 256 MiB, and `skewedPartitionFactor`, 5) |
| `spark.executor.memoryOverhead` | not set, nor its factor, and executors lost over their container's limit |
| `spark.dynamicAllocation.shuffleTracking.enabled` | off, without a shuffle service, and fetches that failed because executors had been given back |
| `spark.eventLog.enabled` | off, and the driver is gone without a word, or has forgotten stages: nothing else tells |

The partitions that adaptive execution would have made: bytes / 1 MiB
(`minPartitionSize`), at least one. `repartition(n)` is left as it is, as Spark does.

*Source*: Spark's own defaults and bounds of these settings.

*Cost*: for partitions the stages replayed with the fewer, larger tasks, each task less
saving what a task takes beside its run time, at least. The others have no cost of their own: the
finding that shows it has.

`spark.driver.maxResultSize` is told by `memory`. The Java serializer is not told: no
metric of Spark's shows what serialization cost.

*Silent* where plans or tasks are not known (REST tells neither).
"#,
    evidence: &[
        ("stages", "stage attempts it is about"),
        ("partitions", "their tasks"),
        ("partitions_needed", "tasks that adaptive execution would have left"),
        ("bytes_per_partition", "shuffle bytes read / tasks"),
        ("largest_partition", "shuffle bytes that the slowest join's largest task read"),
        ("executors_lost", "over their container's limit"),
        ("fetch_failures", "of output on executors that had been given back"),
        ("stages_forgotten", "stage attempts that the driver's lists have lost"),
    ],
    fires: &["small_partitions", "skew_join_off"],
    near_misses: &["small_partitions-healthy", "hot_key"],
    resists: &[(
        "healthy",
        "coalescing is off there as well, and its partitions are small: what its tasks took was \
         work, which fewer tasks would have had to do as well",
    )],
};

pub(super) fn find(context: &Context<'_>, drafts: &mut Vec<Draft>) {
    if !context.thresholds.configuration.enabled {
        return;
    }
    let skew = skew_join(context, drafts);
    drafts.extend(small_partitions(context));
    drafts.extend(skew);
    drafts.extend(overhead(context));
    drafts.extend(shuffle_tracking(context));
    drafts.extend(event_log(context));
}

fn draft(key: &str, headline: String) -> Draft {
    let subject = Subject::ConfigurationKey { key: key.to_owned() };
    Draft::new(Rule::Configuration, FindingKind::Configuration, subject, headline)
        .weight(Weight::Exactly(Severity::Info))
        .confidence(Confidence::High)
}

/// A switch as it was for one query.
fn is_on(context: &Context<'_>, execution: &ExecutionView<'_>, key: &str) -> bool {
    let own = &execution.execution.configuration;
    let of_run = context.application.configuration.flag(key, true);
    own.flag(key, of_run)
}

fn size(context: &Context<'_>, execution: &ExecutionView<'_>, key: &str) -> Option<u64> {
    let own = execution.execution.configuration.bytes(key, 1);
    own.or_else(|| context.application.configuration.bytes(key, 1))
}

/// Stages whose partitions would have been put together.
#[derive(Default)]
struct Small {
    stages: u64,
    partitions: u64,
    needed: u64,
    bytes: u64,
    core: f64,
    shares: Vec<(usize, Duration)>,
}

fn small_partitions(context: &Context<'_>) -> Vec<Draft> {
    let mut by_key: BTreeMap<&str, Small> = BTreeMap::new();
    let mut judged = vec![false; context.stages.len()];
    for execution in &context.executions {
        let key = if !is_on(context, execution, ADAPTIVE) {
            ADAPTIVE
        } else if !is_on(context, execution, COALESCE) {
            COALESCE
        } else {
            continue;
        };
        let partitions = size(context, execution, PARTITIONS).unwrap_or(200);
        if !may_coalesce(execution, partitions) {
            continue;
        }
        for place in &execution.stages {
            let (Some(view), Some(seen)) = (context.stages.get(*place), judged.get_mut(*place))
            else {
                continue;
            };
            if view.stage.tasks.total == partitions && !std::mem::replace(seen, true) {
                by_key.entry(key).or_default().add(view);
            }
        }
    }
    by_key
        .into_iter()
        .filter(|(_, small)| small.wall() >= context.thresholds.cost.emit_floor(context.run))
        .map(|(key, small)| small.draft(key))
        .collect()
}

/// Whether the plan has an exchange on the configured number of partitions,
/// and none on as many that the program asked for.
fn may_coalesce(execution: &ExecutionView<'_>, partitions: u64) -> bool {
    let number = format!(", {partitions})");
    let texts = |word: &'static str| {
        execution
            .nodes()
            .filter(|node| node.node.name.starts_with("Exchange"))
            .map(|node| node.node.text.as_str())
            .any(|text| text.contains(&number) && text.contains(word))
    };
    (texts("ENSURE_REQUIREMENTS") || texts("REPARTITION_BY_COL")) && !texts("REPARTITION_BY_NUM")
}

impl Small {
    fn add(&mut self, view: &StageView<'_>) {
        let bytes = view.stage.measures.shuffle_read_bytes.sum_or_zero();
        if bytes == 0 && view.stage.measures.shuffle_read_records.sum_or_zero() == 0 {
            // As many tasks, and no shuffle behind them.
            return;
        }
        let all = view.stage.tasks.total;
        let needed = bytes.div_ceil(SMALLEST).max(1);
        let tasks = TaskList::of(view).filter(|tasks| !tasks.estimated);
        let (Some(tasks), Some(slots)) = (tasks, view.slots) else { return };
        if needed.saturating_mul(2) > all || tasks.attempts.iter().any(|task| !task.succeeded) {
            return;
        }
        let held: Vec<u64> = tasks.attempts.iter().map(|task| task.held).collect();
        // What a task costs beside its run time: launching, its code, its
        // result. Its rows have to be worked on whoever does it.
        let beside = tasks.attempts.iter().map(|task| task.held.saturating_sub(task.run));
        let beside = beside.min().unwrap_or_default();
        let fewer = all.saturating_sub(needed);
        let total = held.iter().fold(0, |sum: u64, task| sum.saturating_add(*task));
        let left = total.saturating_sub(beside.saturating_mul(fewer));
        let mended: Vec<u64> = replay::even(left, needed as usize).collect();
        let saving = replay::saving(&held, &mended, slots, view.running());
        if saving.wall.is_zero() {
            return;
        }
        self.stages += 1;
        self.partitions = self.partitions.saturating_add(all);
        self.needed = self.needed.saturating_add(needed);
        self.bytes = self.bytes.saturating_add(bytes);
        self.core += saving.removed.as_secs_f64() * view.cpus;
        self.shares.push((view.index, saving.wall.min(view.alone)));
    }

    fn wall(&self) -> Duration {
        self.shares.iter().fold(Duration::ZERO, |sum, (_, share)| sum.saturating_add(*share))
    }

    fn draft(self, key: &str) -> Draft {
        let each = self.bytes / self.partitions.max(1);
        let headline = format!(
            "{} is off, and {} ran {} on {} each",
            key,
            humane::count(self.stages, "stage", "stages"),
            humane::count(self.partitions, "task", "tasks"),
            humane::bytes(each),
        );
        let impact =
            Impact { wall: Some(self.wall()), core: Some(seconds(self.core)), estimated: false };
        draft(key, headline)
            .weight(Weight::Saving { at_most: Severity::Warning })
            .evidence("stages", self.stages as f64, Unit::Count, None, "plans and stages")
            .evidence("partitions", self.partitions as f64, Unit::Count, None, "their tasks")
            .evidence("partitions_needed", self.needed as f64, Unit::Count, None, "bytes / 1 MiB")
            .evidence(
                "bytes_per_partition",
                each as f64,
                Unit::Bytes,
                SMALLEST as f64,
                "the stages",
            )
            .impact(impact, self.shares)
            .advice_unless(
                format!("Set {key} to true: Spark then puts small partitions together"),
                Where::Conf,
                "something depends on the number of partitions (files written, order)",
            )
            .advice_unless(
                format!("Or lower {PARTITIONS} (200 by default) to what the data needs"),
                Where::Conf,
                "other queries of the application are large",
            )
    }
}

/// `data_skew` in the stage of a join that adaptive execution would have
/// split.
fn skew_join(context: &Context<'_>, drafts: &[Draft]) -> Vec<Draft> {
    let mut by_key: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let skewed = |view: &StageView<'_>| {
        drafts.iter().any(|draft| {
            draft.finding.rule == Rule::DataSkew
                && draft.finding.cause != Some(Cause::InputFiles)
                && draft.finding.stage() == Some(view.stage.id)
        })
    };
    for view in context.stages.iter().filter(|view| skewed(view)) {
        for execution in context.executions.iter().filter(|one| one.stages.contains(&view.index)) {
            let joins = execution.nodes().any(|node| {
                let name = &node.node.name;
                (name.starts_with("SortMergeJoin") || name.starts_with("ShuffledHashJoin"))
                    && execution.stages_of(node).contains(&view.index)
            });
            let read = &view.stage.measures.shuffle_read_bytes;
            let (Some(largest), Some(median)) = (read.max(), read.median()) else { continue };
            let bound = size(context, execution, SKEW_BYTES).unwrap_or(256 * MIB);
            let factor = context
                .application
                .configuration
                .get(SKEW_FACTOR)
                .and_then(|text| text.trim().parse::<f64>().ok())
                .unwrap_or(5.0);
            let above = ratio(largest, median).is_none_or(|ratio| ratio > factor);
            if !joins || largest <= bound || !above {
                continue;
            }
            let key = if !is_on(context, execution, ADAPTIVE) {
                ADAPTIVE
            } else if !is_on(context, execution, SKEW_JOIN) {
                SKEW_JOIN
            } else {
                continue;
            };
            let (stages, most) = by_key.entry(key).or_default();
            *stages += 1;
            *most = (*most).max(largest);
        }
    }
    let judge = |(key, (stages, most)): (&str, (u64, u64))| {
        let headline = format!(
            "{key} is off, and {} waited for a partition that Spark would have split",
            humane::count(stages, "stage of a join", "stages of joins"),
        );
        draft(key, headline)
            .evidence("stages", stages as f64, Unit::Count, None, "findings of data_skew")
            .evidence("largest_partition", most as f64, Unit::Bytes, None, "shuffle read of a task")
            .impact(Impact::default(), Vec::new())
            .advice_unless(
                format!("Set {key} to true: Spark then splits partitions of a join that are far above the others"),
                Where::Conf,
                "it is an outer join whose skewed side must stay whole, or the join is followed \
                 by something that needs its partitions (then \
                 spark.sql.adaptive.forceOptimizeSkewedJoin)",
            )
    };
    by_key.into_iter().map(judge).collect()
}

/// Executors over the limit of their container, with the overhead left as it
/// is.
fn overhead(context: &Context<'_>) -> Option<Draft> {
    let application = context.application;
    let configuration = &application.configuration;
    let set = configuration.get(OVERHEAD).is_some()
        || configuration.get(OVERHEAD_FACTOR).is_some()
        || configuration
            .resource_profiles
            .iter()
            .any(|profile| profile.id > 0 && profile.executor_overhead_bytes.is_some());
    let lost = application
        .executors
        .iter()
        .filter(|executor| loss::cause(application, executor) == Some(Cause::ContainerMemory))
        .count();
    if set || lost == 0 || configuration.is_empty() {
        return None;
    }
    let headline = format!(
        "{OVERHEAD} is not set, and {} went over the limit of their containers",
        humane::count(lost as u64, "executor", "executors"),
    );
    Some(
        draft(OVERHEAD, headline)
            .evidence("executors_lost", lost as f64, Unit::Count, 1.0, "executors removed")
            .impact(Impact::default(), Vec::new())
            .advice_unless(
                format!(
                    "Set {OVERHEAD}: by default it is a tenth of the heap, and 384 MiB at least, \
                     for Python workers, Netty and everything else outside the heap"
                ),
                Where::Conf,
                "the heap is larger than it needs to be: then lower spark.executor.memory by as \
                 much",
            ),
    )
}

/// Executors given back with the shuffle output that others came to fetch.
fn shuffle_tracking(context: &Context<'_>) -> Option<Draft> {
    let application = context.application;
    let configuration = &application.configuration;
    let exposed = configuration.flag("spark.dynamicAllocation.enabled", false)
        && !configuration.flag(TRACKING, true)
        && !configuration.flag("spark.shuffle.service.enabled", false);
    let given_back = |id: &str| {
        application.executors.iter().any(|executor| {
            executor.id == id
                && executor.removed.is_some()
                && loss::cause(application, executor).is_none()
        })
    };
    let failures: u64 = application
        .stages
        .iter()
        .flat_map(|stage| &stage.fetch_failures)
        .filter(|(id, _)| given_back(id))
        .map(|(_, attempts)| *attempts)
        .fold(0, u64::saturating_add);
    if !exposed || failures == 0 {
        return None;
    }
    let headline = format!(
        "{TRACKING} is off, without a shuffle service, and {} of output on executors that had \
         been given back",
        humane::count(failures, "fetch failed", "fetches failed"),
    );
    Some(
        draft(TRACKING, headline)
            .weight(Weight::Exactly(Severity::Warning))
            .evidence("fetch_failures", failures as f64, Unit::Count, 1.0, "failed fetches")
            .impact(Impact::default(), Vec::new())
            .advice_unless(
                format!("Set {TRACKING} to true, or run a shuffle service"),
                Where::Conf,
                "executors are decommissioned with their shuffle blocks: then look at why that \
                 failed",
            ),
    )
}

/// What only an event log would have told.
fn event_log(context: &Context<'_>) -> Option<Draft> {
    let application = context.application;
    let off = !application.configuration.is_empty()
        && !application.configuration.flag(EVENT_LOG, false)
        && application.source == Source::Driver;
    let gone = matches!(application.state, State::Unknown | State::Lost);
    let forgotten = application.has(DataQuality::StagesEvicted);
    if !off || !(gone || forgotten) {
        return None;
    }
    let headline = format!(
        "{EVENT_LOG} is off, and {}",
        if gone {
            "the driver is gone: nothing tells how the run ended"
        } else {
            "the driver has forgotten stages: nothing else knows them"
        },
    );
    Some(
        draft(EVENT_LOG, headline)
            .evidence(
                "stages_forgotten",
                application.stages_omitted as f64,
                Unit::Count,
                None,
                "the driver's lists",
            )
            .impact(Impact::default(), Vec::new())
            .advice(
                format!("Set {EVENT_LOG} to true, and spark.eventLog.dir to a place that outlives the driver"),
                Where::Conf,
            ),
    )
}
