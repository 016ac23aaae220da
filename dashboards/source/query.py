"""PromQL that more than one panel needs.

Two things every query takes care of. Two exporters may show the same run (high
availability, or a pod that was replaced), so results are aggregated to the
labels of what they are about, by `max`. And a run that has ended keeps its
series only for a while (`retention`), so numbers of one run are its last ones
within the dashboard's time range, not those of this moment."""

from look import RANKS

RUN = "spark_cluster, app_id, attempt_id"
STAGE = f"{RUN}, stage_id, stage_attempt_id"
FINDING = (
    f"{RUN}, app_name, rule, cause, severity, subject, stage_id, stage_attempt_id, sql_id, executor_id"
)

# Which series a dashboard looks at, by its variables.
TARGET = 'job=~"$job", instance=~"$instance"'
CLUSTER = 'spark_cluster=~"$spark_cluster"'
ONE_NAME = f'{CLUSTER}, app_name="$app_name"'
ONE_RUN = f'{CLUSTER}, app_id="$app_id", attempt_id=~"$attempt_id"'
ONE_STAGE = f'{ONE_RUN}, stage_id="$stage_id", stage_attempt_id=~"$stage_attempt_id"'


def series(metric: str, *matchers: str) -> str:
    """A selector of this metric, from the targets that are chosen."""
    return metric + "{" + ", ".join([TARGET, *[m for m in matchers if m]]) + "}"


def now(metric: str, by: str, *matchers: str) -> str:
    """What the metric is at each moment: for graphs."""
    return f"max by ({by}) ({series(metric, *matchers)})"


def last(metric: str, by: str, *matchers: str) -> str:
    """The last value within the time range: for single numbers and tables."""
    return f"max by ({by}) (last_over_time({series(metric, *matchers)}[$__range]))"


def grew(metric: str, by: str, *matchers: str) -> str:
    """By how much a counter by name grew within the time range. The most that
    one exporter saw: two that count the same runs are not added up."""
    return f"max by ({by}) (increase({series(metric, *matchers)}[$__range]))"


def of_range(expression: str, *matchers: str) -> str:
    """Of these runs, those that were not over before the time range: a run is
    shown for a while after its end."""
    observed = last("spark_application_observed_timestamp_seconds", RUN, *matchers)
    return f"{expression}\nand on ({RUN})\n({observed} >= $__from / 1000)"


def latest_state(metric: str, label: str, by: str, *matchers: str, step: str = "1m") -> str:
    """Which of the states (one series each, 0 or 1) was true last. The value is
    the moment it was seen; the label says it."""
    seen = _seen(f"{series(metric, *matchers)} == 1", f"{by}, {label}", step)
    return f"topk by ({by}) (1, {seen})"


def _seen(what: str, by: str, step: str) -> str:
    """When these series were last there. Steps of a subquery lie on a grid of
    their own: what is there now comes first, lest something new is missed."""
    return f"max by ({by}) (timestamp({what}) or max_over_time(timestamp({what})[$__range:{step}]))"


def final(metric: str, step: str, *matchers: str, by: str = FINDING) -> str:
    """Findings (or what else comes and goes within a run) as they were when
    their run was last seen: one that has been cleared since, or was replaced
    when the run was read as a whole, is none. Two minutes are for exporters that
    are scraped at different moments."""
    of_run = [matcher for matcher in matchers if not matcher.startswith(OF_FINDINGS)]
    return (
        f"{last(metric, by, *matchers)}\n"
        f"and on ({by})\n"
        f"({_seen(series(metric, *matchers), by, step)}\n"
        f"  >= on ({RUN}) group_left ()\n"
        f"  ({_seen(series('spark_application_state', *of_run), RUN, step)} - 120))"
    )


# Labels that findings have and runs have not.
OF_FINDINGS = ("app_name", "rule", "severity", "stage_id", "stage_attempt_id")


def joined(expression: str, *labels: str) -> str:
    """The facts of `spark_application_info` beside the series of a run."""
    by = f"{RUN}, {', '.join(labels)}"
    current = now("spark_application_info", by, CLUSTER)
    info = last("spark_application_info", by, CLUSTER)
    # What is known of a run can change: its kind once a stream has begun. Those of
    # this moment go before those of earlier ones.
    newest = f"topk by ({RUN}) (1, {current} or on ({RUN}) {info})"
    return f"({expression})\n* on ({RUN}) group_left ({', '.join(labels)})\n{newest}"


def with_rank(expression: str) -> str:
    """What has a severity, with its rank for a value."""
    ranks = "\n  or ".join(
        f'label_replace(vector({rank}), "severity", "{word}", "", "")' for word, rank in RANKS.items()
    )
    return f"({expression})\n* on (severity) group_left ()\n({ranks})"


def with_anchor(expression: str) -> str:
    """Findings with the place of each in the report of its run, as label
    `anchor`: what is about a stage, an executor or a SQL execution has one of
    its own, the others have that of their rule."""
    out = (
        f'label_join({expression}, "anchor", "|", '
        '"subject", "rule", "stage_id", "stage_attempt_id", "executor_id", "sql_id")'
    )
    number = "([^|]+)"
    for pattern, place in [
        (rf"stage\\|{number}\\|{number}\\|{number}\\|.*", "$1-stage-$2.$3"),
        (rf"executor\\|{number}\\|\\|\\|{number}\\|.*", "$1-executor-$2"),
        (rf"sql_execution\\|{number}\\|\\|\\|\\|{number}", "$1-sql-$2"),
        (rf"[a-z_]+\\|{number}\\|.*", "$1"),
    ]:
        out = f'label_replace({out}, "anchor", "{place}", "anchor", "{pattern}")'
    return out
