//! What the rule says about itself.

use crate::diagnose::{About, Rule};

pub(in crate::diagnose) const ABOUT: About = About {
    rule: Rule::Regression,
    meaning: "The run took longer than runs of its name used to, on about as much data: what was \
              good enough for weeks is no more, or its cluster is not.",
    details: "Needs the store, or several runs of one name given to `diagnose`: it holds a run
against the last 20 (`runs`) before it that

* have the same `app_name` in the same cluster (after the rules for names),
* ended well, are batches, and were read as a whole,
* started before it (in which order they were read does not matter), and
* had between 1/1.5 and 1.5 times (`data_ratio`) as much data: records read from
  storage, or else bytes read from it, records or bytes written to it, records
  shuffled, the first that is known and not 0 of both. A run that moved no data is
  comparable with others that moved none.

*Fires* where there are at least 5 of them (`at_least`), and the run took

* at least 1.3 times (`ratio`) their median, times the ratio of its data to theirs
  where that is more than 1, and
* 3.5 (`spreads`) times 1.4826 x MAD more than that. MAD is the median of the absolute
  deviations from the median, corrected for small numbers and widened by 1 + 2 / runs;
  1.4826 x MAD counts as at least 5 % of the median (`spread_ratio`) and 1 s
  (`spread`),

and the excess, the time beyond the median (times that ratio of data), is above the
floor of all findings.

*Says* what this run has that those have not. First what explains the excess, each
where it is at least 30 % of it: the stage that grew most, known again by its call site
and operators, and what is different about it (number of tasks, its slowest task to the
typical one, data, spill, garbage collection); else the part of the time that grew most.
Then, against what most of them have: settings with plain values, a plan that none of
them had, cores, Spark's version, findings of `warning` and above that none of them
had, and settings whose values are not shown.

*Causes*: `no_executors`: half of the excess and more is time without an executor; a
setting that is shown differs: `settings_changed`; a plan is new: `plan_changed`; it had
fewer cores: `fewer_cores`; in this order. What changed with a run need not be why it was
slow: the numbers stand beside it.

*Source*: median and MAD with a limit of 3.5 are the modified z-score of Iglewicz and
Hoaglin (1993), as in the NIST handbook of statistics (1.3.5.17); the correction for few
values is that of Croux and Rousseeuw (1992). The ratio, the number of runs, the
widening and the floors of the spread are our judgement: of simulated names whose
durations vary by 10 % (log-normal) one run in 300 is called a regression without being
one, by 20 % one in 40 with five runs before it and one in 130 with twenty.

*Cost*: the excess, without what the run's other findings promise beyond what those of
the runs before did: the same seconds are not promised twice. Its severity is that of the
whole excess.

*Confidence* is lower with fewer than 10 runs, and where two or more of them took nine
tenths as long: that name has two speeds.

*Silent* for streams and interactive applications; with fewer than 5 comparable runs;
where the log is truncated, incomplete or compacted, events or stages are missing, or
the end is not known; and on Databricks, where one application is a cluster.
Runs that are slower because they have more data are not comparable, so a job whose
data grows slowly moves its baseline along.

Recorded: `examples/history`, one job night after night; it fires on the one of 25 whose
key is hot, and in no other.
",
    evidence: &[
        ("duration", "how long the run took; the threshold is the bar it had to reach"),
        ("baseline_median", "the median of the earlier runs"),
        ("baseline_spread", "the median of their deviations from it"),
        ("baseline_runs", "how many they are"),
        ("ratio", "duration / median"),
        ("excess", "time beyond the median, and beyond what more data explains"),
        ("as_slow", "earlier runs that took nine tenths of it or more"),
        ("data_ratio", "its data / the median of theirs"),
        ("part_growth", "by how much the part of the time grew that grew most"),
        ("stage_growth", "by how much the stage's span grew that grew most"),
    ],
    fires: &[],
    near_misses: &[],
    resists: &[],
};
