//! What to do about a skewed stage: it depends on the operator that feeds on
//! the skewed rows, and on why they are skewed.
//!
//! Two things are never advised. More shuffle partitions: they leave one key
//! where it is. Adaptive execution's skew join to a window or an aggregate: it
//! splits joins only.

use super::context::Context;
use super::draft::Draft;
use super::fed_by::{Fed, Operator};
use super::humane;
use super::slow::Slow;
use super::{Cause, Where};
use crate::model::Stage;

/// Of the rows that reach a join, at most so many come out where most of the
/// work was for rows that are dropped.
const FEW_KEPT: f64 = 0.5;

/// What is asked for advice.
pub(super) struct Asked<'a> {
    pub(super) cause: Cause,
    pub(super) context: &'a Context<'a>,
    pub(super) stage: &'a Stage,
    pub(super) slow: &'a Slow<'a>,
    /// `None` where the source has no plan.
    pub(super) fed: Option<&'a Fed<'a>>,
}

impl Asked<'_> {
    fn operator(&self) -> Option<Operator> {
        self.fed.map(|fed| fed.operator)
    }

    fn splits_joins(&self) -> bool {
        let configuration = &self.context.application.configuration;
        configuration.flag("spark.sql.adaptive.enabled", true)
            && configuration.flag("spark.sql.adaptive.skewJoin.enabled", true)
    }
}

pub(super) fn advise(draft: Draft, asked: &Asked<'_>) -> Draft {
    match (asked.cause, asked.operator()) {
        (Cause::InputFiles, _) => files(draft, asked.stage),
        (Cause::Unknown, _) => draft.advice(
            "Look at what the stage makes of its input: one partition is turned into many more \
             rows than the others (explode, a generator, a cross product)",
            Where::Sql,
        ),
        (_, Some(Operator::Window)) => window(draft),
        (_, Some(Operator::Aggregate { keeps_rows })) => aggregate(draft, keeps_rows),
        (_, Some(Operator::Repartition)) => draft.advice_unless(
            "Repartition by more columns than the skewed one, or without a column (round robin)",
            Where::Sql,
            "what follows needs all rows of a key together",
        ),
        (_, operator) => join(draft, asked, operator),
    }
}

fn files(draft: Draft, stage: &Stage) -> Draft {
    let unsplittable = stage.operations.iter().any(|name| {
        ["csv", "json", "text"].iter().any(|format| name.to_lowercase().contains(format))
    });
    draft
        .advice_unless(
            if unsplittable {
                "Write the input in files of 128 MiB to 1 GiB in a splittable format (Parquet, \
                 ORC, or zstd/bzip2 instead of gzip for text): this scan reads text, and a gzip \
                 file or a multi-line one goes to a single task"
            } else {
                "Write the input in files or row groups of 128 MiB to 1 GiB of similar size, in a \
                 splittable format"
            },
            Where::Data,
            "another team writes the files: then repartition right after the read",
        )
        .advice_unless(
            "Repartition right after the read, so that what follows the scan is even",
            Where::Sql,
            "the scan itself, and not what follows it, takes the time",
        )
}

fn window(draft: Draft) -> Draft {
    draft
        .advice_unless(
            "Partition the window by one more column, so that the hot key falls into several \
             groups",
            Where::Sql,
            "the window must see all rows of the key",
        )
        .advice_unless(
            "Replace the window by an aggregate and a join where it only finds a first, last, \
             largest or total of each key: an aggregate adds up before the shuffle",
            Where::Sql,
            "each row needs its own number or a running value",
        )
        .advice_unless(
            "Handle the hot key's rows apart from the rest, or drop them before the window if they \
             are a null or a default",
            Where::Sql,
            "no single key stands out",
        )
        .advice_unless(
            "Compute what is costly for each row before the window, where rows are spread evenly",
            Where::Sql,
            "it needs the window's result",
        )
}

fn aggregate(draft: Draft, keeps_rows: bool) -> Draft {
    let draft = if keeps_rows {
        draft.advice_unless(
            "Do not gather rows (collect_list, collect_set, exact percentiles, groups in Python): \
             use an aggregate whose result stays small (count, sum, max_by, approximate \
             percentiles), which is added up before the shuffle",
            Where::Sql,
            "the lists themselves are the result",
        )
    } else {
        draft
    };
    draft
        .advice_unless(
            "Aggregate in two steps: first by the key and a salt (a random number below 16), then \
             by the key alone",
            Where::Sql,
            "the function cannot be put together from parts",
        )
        .advice_unless(
            "Handle the hot key's rows apart from the rest, or drop them before the aggregate if \
             they are a null or a default",
            Where::Sql,
            "no single key stands out",
        )
}

/// A join, or something that nothing tells about.
fn join(draft: Draft, asked: &Asked<'_>, operator: Option<Operator>) -> Draft {
    let read = asked.slow.task.metrics.shuffle_read_bytes;
    let is_join = operator.is_some_and(Operator::is_join);
    let splittable = !matches!(operator, Some(Operator::Join { splittable: false }));
    let compresses = asked.cause == Cause::CompressibleHotKey;
    let mut draft = draft;
    if let Some(kept) = asked.fed.and_then(|fed| fed.kept).filter(|kept| *kept <= FEW_KEPT) {
        draft = draft.advice_unless(
            format!(
                "Drop rows before the join that it drops anyway: {} of the larger side's rows come \
                 out of it. Filter the hot key there, or keep only keys of the other side (a semi \
                 join)",
                humane::percent(kept)
            ),
            Where::Sql,
            "only the join itself can tell which rows are dropped",
        );
    }
    if splittable && !asked.splits_joins() {
        draft = draft.advice_unless(
            "Set spark.sql.adaptive.enabled=true and spark.sql.adaptive.skewJoin.enabled=true: \
             Spark then splits large join partitions itself",
            Where::Conf,
            if is_join {
                "the partition is below the size from which it is split (256 MB as compressed)"
            } else {
                "the stage aggregates or computes a window: only joins are split"
            },
        );
    } else if compresses {
        draft = draft.advice_unless(
            format!(
                "Salt the hot key on both sides, or join its rows apart from the rest. The \
                 partition has only {} (its rows compress well), so adaptive execution does not \
                 split it",
                humane::bytes(read)
            ),
            Where::Sql,
            "the other side is small: then broadcast it",
        );
    }
    draft = draft.advice_unless(
        "Broadcast the smaller side of the join, so that no key decides where rows go",
        Where::Sql,
        if is_join {
            "it is larger than a few hundred MiB, or the side that an outer join keeps"
        } else {
            "it is larger than a few hundred MiB, or the stage is no join"
        },
    );
    if !compresses {
        draft = draft.advice_unless(
            "Salt the hot key, or handle its rows apart from the rest; drop it if it is a null or \
             a default that joins with nothing",
            Where::Sql,
            "many keys share the partition: then a finer shuffle spreads them",
        );
    }
    if splittable {
        draft = draft.advice_unless(
            format!(
                "Lower spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes below {} and \
                 spark.sql.adaptive.advisoryPartitionSizeInBytes with it",
                humane::bytes(read)
            ),
            Where::Conf,
            if is_join {
                "one map output holds the key: a partition is split between map outputs only"
            } else {
                "the stage is no sort-merge or shuffled hash join, or one map output holds the key"
            },
        );
    }
    draft
}
