//! Whether two readings of one run are the same, number for number.
//!
//! What REST cannot know is absent there (`docs/accuracy.md`), never another
//! number: this fails on any value that both have and that differs.

use std::fmt::Debug;

use spark_exporter::model::{
    Application, Distribution, Measures, Quantity, Stage, StageStatus, Task, TaskStatus,
};

/// Every difference, one line each, and how many numbers were compared.
pub(crate) struct Comparison {
    pub(crate) differences: Vec<String>,
    pub(crate) compared: usize,
}

impl Comparison {
    #[expect(clippy::needless_pass_by_value, reason = "callers read like sentences")]
    fn same<T: PartialEq + Debug>(&mut self, what: impl FnOnce() -> String, log: T, rest: T) {
        self.compared += 1;
        if log != rest {
            self.differences.push(format!("{}: log {log:?}, REST {rest:?}", what()));
        }
    }

    /// Absent in REST is no difference where `may_lack`.
    fn known<T: PartialEq + Debug>(
        &mut self,
        what: impl Fn() -> String,
        log: Option<T>,
        rest: Option<T>,
        may_lack: bool,
    ) {
        if rest.is_none() && (may_lack || log.is_none()) {
            return;
        }
        self.same(what, log, rest);
    }

    fn distribution<T: Quantity>(
        &mut self,
        what: &str,
        log: Distribution<T>,
        rest: Distribution<T>,
        may_lack: bool,
    ) {
        let never_summed = what.ends_with("scheduler_delay")
            || what.ends_with("records_read")
            || what.ends_with("records_written");
        self.known(|| format!("{what} sum"), log.sum, rest.sum, never_summed);
        self.known(|| format!("{what} quantiles"), log.quantiles, rest.quantiles, may_lack);
        assert_eq!(rest.count, None, "{what}: REST does not count attempts with metrics");
    }
}

/// Compares a run read from its log with the same run read from a History
/// Server.
pub(crate) fn compare(log: &Application, rest: &Application) -> Comparison {
    let mut all = Comparison { differences: Vec::new(), compared: 0 };
    all.same(|| "id".to_owned(), &log.id, &rest.id);
    all.same(|| "name".to_owned(), &log.name, &rest.name);
    all.same(|| "version".to_owned(), &log.spark_version, &rest.spark_version);
    all.same(|| "user".to_owned(), &log.user, &rest.user);
    all.same(|| "kind".to_owned(), log.kind, rest.kind);
    all.same(|| "start".to_owned(), log.start, rest.start);
    all.same(|| "end".to_owned(), log.end, rest.end);
    jobs(&mut all, log, rest);
    executors(&mut all, log, rest);
    let ids = |application: &Application| {
        application.stages.iter().map(|stage| stage.id).collect::<Vec<_>>()
    };
    all.same(|| "stage attempts".to_owned(), ids(log), ids(rest));
    for (log, rest) in log.stages.iter().zip(&rest.stages) {
        stage(&mut all, log, rest);
    }
    all
}

fn jobs(all: &mut Comparison, log: &Application, rest: &Application) {
    all.same(|| "jobs".to_owned(), log.jobs.len(), rest.jobs.len());
    for (log, rest) in log.jobs.iter().zip(&rest.jobs) {
        let what = |field: &str| format!("job {} {field}", log.id);
        all.same(|| what("id"), log.id, rest.id);
        all.same(|| what("status"), log.status, rest.status);
        all.same(|| what("submitted"), log.submitted, rest.submitted);
        all.same(|| what("completed"), log.completed, rest.completed);
        all.same(|| what("stages"), &log.stage_ids, &rest.stage_ids);
    }
}

fn executors(all: &mut Comparison, log: &Application, rest: &Application) {
    all.same(|| "executors".to_owned(), log.executors.len(), rest.executors.len());
    for (log, rest) in log.executors.iter().zip(&rest.executors) {
        let what = |field: &str| format!("executor {} {field}", log.id);
        all.same(|| what("id"), &log.id, &rest.id);
        all.same(|| what("host"), &log.host, &rest.host);
        all.same(|| what("cores"), log.cores, rest.cores);
        all.same(|| what("added"), log.added, rest.added);
        all.same(|| what("removed"), log.removed, rest.removed);
        all.same(|| what("totals"), log.totals, rest.totals);
        all.known(
            || what("storage memory"),
            log.storage_memory_bytes,
            rest.storage_memory_bytes,
            false,
        );
    }
}

fn stage(all: &mut Comparison, log: &Stage, rest: &Stage) {
    let what = |field: &str| format!("stage {} {field}", log.id);
    all.same(|| what("name"), &log.name, &rest.name);
    all.same(|| what("status"), log.status, rest.status);
    all.same(|| what("tasks"), log.tasks, rest.tasks);
    all.same(|| what("submitted"), log.submitted, rest.submitted);
    all.same(|| what("first launch"), log.first_task_launched, rest.first_task_launched);
    all.same(|| what("completed"), log.completed, rest.completed);
    all.same(|| what("failure"), &log.failure_reason, &rest.failure_reason);
    all.same(|| what("jobs"), &log.job_ids, &rest.job_ids);
    all.same(|| what("RDDs"), &log.rdd_ids, &rest.rdd_ids);
    all.known(|| what("result bytes"), log.result_bytes, rest.result_bytes, true);
    let copies =
        |stage: &Stage| stage.speculation.map(|copies| (copies.copies, copies.won, copies.lost));
    all.known(|| what("speculative copies"), copies(log), copies(rest), true);
    all.known(|| what("failures"), log.failures.as_ref(), rest.failures.as_ref(), true);
    let never_ran = matches!(rest.status, StageStatus::Skipped | StageStatus::Pending);
    // Tasks are asked for in stages with a second of run time.
    let asked = !never_ran && rest.measures.run_time.quantiles.is_some();
    if log.measures.run_time.sum_or_zero().as_secs() >= 1 && log.tasks.succeeded > 0 {
        assert!(asked, "stage {}: a second of run time and no quantiles", log.id);
    }
    measures(all, &what(""), &log.measures, &rest.measures, asked);
    let tasks = |stage: &Stage| {
        let mut tasks: Vec<Task> = stage.slowest.clone();
        for task in &mut tasks {
            task.ordinal_on_executor = None;
            assert_eq!(task.status, TaskStatus::Succeeded);
        }
        tasks.sort_by_key(|task| (std::cmp::Reverse(task.metrics.run_time), task.id));
        // Where the list is cut off, either may have kept another one of
        // those that tie for the last place.
        if (tasks.len() as u64) < stage.tasks.succeeded
            && let Some(last) = tasks.last().map(|task| task.metrics.run_time)
        {
            tasks.retain(|task| task.metrics.run_time > last);
        }
        tasks
    };
    // REST does not tell how many tasks an executor had had before.
    let failed = |stage: &Stage| {
        let mut failed = stage.failed.clone();
        for one in &mut failed {
            one.task.ordinal_on_executor = None;
        }
        failed
    };
    if rest.failures.is_some() {
        all.same(|| what("failed tasks"), failed(log), failed(rest));
    }
    if asked {
        let (log, rest) = (tasks(log), tasks(rest));
        all.same(|| what("slowest tasks"), log.len(), rest.len());
        for (log, rest) in log.iter().zip(&rest) {
            all.same(|| what(&format!("task {}", log.id)), log, rest);
        }
    }
}

macro_rules! each {
    ($all:ident, $what:ident, $log:ident, $rest:ident, $asked:ident, $($field:ident: $may_lack:expr),* $(,)?) => {
        $($all.distribution(
            &format!("{}{}", $what, stringify!($field)), $log.$field, $rest.$field, !$asked || $may_lack,
        );)*
    };
}

fn measures(all: &mut Comparison, what: &str, log: &Measures, rest: &Measures, asked: bool) {
    each!(all, what, log, rest, asked,
        run_time: false, cpu_time: false, deserialize_time: false, gc_time: false,
        // Absent where attempts failed, or both kinds of records occur.
        scheduler_delay: true, records_read: true, records_written: true,
        fetch_wait_time: false, shuffle_write_time: false,
        input_bytes: false, input_records: false, output_bytes: false, output_records: false,
        shuffle_read_bytes: false, shuffle_read_records: false,
        shuffle_write_bytes: false, shuffle_write_records: false,
        memory_spilled_bytes: false, disk_spilled_bytes: false,
        peak_execution_memory_bytes: false,
    );
}
