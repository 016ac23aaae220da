"""Stage: one stage attempt. How its work is spread over its tasks, how that
stands against the limits of the rules, and what its time was spent on."""

from frame import dashboard, filled, to_report, to_rule, variables
from look import INFO, OK, PARTS, STATUSES, WARNING, colored, steps
from panels import (
    Column,
    bars,
    fixed,
    graph_query,
    limit_line,
    severity_column,
    stat,
    table,
    table_query,
    timeseries,
    value_query,
)
from query import ONE_RUN, ONE_STAGE, RUN, STAGE, final, last, latest_state, now, series, with_rank
from words import rule_mapping

OF_STAGE = ['stage_id="$stage_id"', 'stage_attempt_id=~"$stage_attempt_id"']
ATTEMPT = "attempt {{stage_attempt_id}}"


def make():
    made = dashboard(
        "stage",
        "Spark / Stage",
        "One stage of a run: how even its tasks are, what slowed the slowest, I/O per core against the limit.",
        variables("spark_cluster", "any_app_name", "app_id", "attempt_id", "stage_id", "stage_attempt_id"),
    )
    return filled(
        made,
        [*_head(), *_findings()],
        {
            "How even the tasks are": _evenness(),
            "What the time was spent on": _time(),
            "As it ran": _live(),
        },
    )


def one(metric: str, *matchers: str) -> str:
    return last(metric, STAGE, ONE_STAGE, *matchers)


def limit(rule: str, threshold: str) -> str:
    """A threshold of the exporter's configuration, without labels."""

    def of(key: str) -> str:
        selector = series("spark_exporter_threshold", f'rule="{rule}"', f'threshold="{key}"')
        return f"max(last_over_time({selector}[$__range]))"

    if (rule, threshold) == ("data_skew", "run_time_ratio"):
        # Fewer than ten tasks have a limit of their own.
        few = f"{of('run_time_ratio_few_tasks')} and (max({one('spark_stage_partitions')}) < 10)"
        return f"({few} or {of(threshold)})"
    return of(threshold)


def _head() -> list:
    return [
        stat(
            "Status",
            "How the stage attempt stands.",
            "none",
            table_query(latest_state("spark_stage_status", "status", STAGE, ONE_STAGE)),
            field="status",
            mappings=colored(STATUSES),
        ),
        stat(
            "Duration",
            "Submission to completion, or to the latest observation while it is active.",
            "s",
            value_query(one("spark_stage_duration_seconds"), ATTEMPT),
            decimals=1,
        ),
        stat(
            "Waited",
            "Time in which the stage was submitted, had pending tasks, and none could start for want of an "
            "executor or in spite of a free slot. Cores that other stages of the run hold are no wait.",
            "s",
            value_query(one("spark_stage_scheduling_delay_seconds"), ATTEMPT),
            decimals=1,
        ),
        stat(
            "Partitions",
            "Partitions the attempt was asked to compute: one task each, and more where tasks were retried.",
            "short",
            value_query(one("spark_stage_partitions"), ATTEMPT),
        ),
        stat(
            "Cores",
            "Cores of all executors, averaged over the time in which tasks of the stage ran. Fewer partitions "
            "than cores leave cores idle.",
            "short",
            value_query(one("spark_stage_executor_cores"), ATTEMPT),
            decimals=1,
        ),
        stat(
            "Failed tasks",
            "Failed task attempts / ended ones, kills and refused commits excluded.",
            "percentunit",
            value_query(one("spark_stage_task_failure_ratio"), ATTEMPT),
            limits=steps((None, OK), (0.0001, WARNING)),
        ),
    ]


def _findings() -> list:
    def query(metric: str):
        return table_query(final(metric, "1m", ONE_RUN, *OF_STAGE))

    first = table_query(
        'label_replace(\n'
        + with_rank(final("spark_finding", "1m", ONE_RUN, *OF_STAGE))
        + ',\n"meaning", "$1", "rule", "(.+)")'
    )
    return [
        table(
            "What is wrong with this stage",
            "Findings about this stage, and why: hot_key is a key with most rows, input_files uneven files, "
            "cold_executor a task that was the first of its executor, slow_host a machine. Empty: nothing was "
            "found that costs time.",
            [first, query("spark_finding_wall_seconds"), query("spark_finding_core_seconds")],
            [
                severity_column(),
                Column("rule", "Rule", links=[to_report(anchor="rule"), to_rule()], width=170),
                Column("cause", "Cause", width=170),
                Column("meaning", "What it means", mappings=rule_mapping()),
                Column("#B", "Wall time to save", unit="s", width=140, decimals=1),
                Column("#C", "Core time to save", unit="s", width=140, decimals=1),
                Column("stage_attempt_id", "Attempt", width=75),
                Column("sql_id", "SQL", width=60),
                *[Column(name, name, hidden=True) for name in ("spark_cluster", "app_id", "attempt_id")],
            ],
            "Severity",
            "Wall time to save",
            height=6,
            no_value="",
        )
    ]


def _evenness() -> list:
    return [
        bars(
            "Run time of tasks",
            "Over the successful tasks. A longest task far above the 95th percentile: the stage waited for a "
            "few. 95th percentile and longest close, both far above the median: many are slow.",
            "s",
            [
                value_query(one("spark_stage_task_run_time_median_seconds"), "median"),
                value_query(one("spark_stage_task_run_time_p95_seconds"), "95th percentile"),
                value_query(one("spark_stage_task_run_time_max_seconds"), "longest"),
            ],
            width=8,
            height=6,
            overrides=[fixed("median", OK), fixed("95th percentile", INFO), fixed("longest", WARNING)],
        ),
        bars(
            "Records of tasks",
            "Records a task read (input and shuffle) and wrote (output and shuffle). The slowest task with "
            "many times the records: skew. With as many as the others: a straggler.",
            "short",
            [
                value_query(one("spark_stage_task_records_read_median"), "read, median"),
                value_query(one("spark_stage_task_records_read_max"), "read, most"),
                value_query(one("spark_stage_task_records_written_median"), "written, median"),
                value_query(one("spark_stage_task_records_written_max"), "written, most"),
            ],
            width=8,
            height=6,
            overrides=[
                fixed("read, median", OK),
                fixed("read, most", WARNING),
                fixed("written, median", OK),
                fixed("written, most", WARNING),
            ],
        ),
        bars(
            "Bytes of tasks",
            "Bytes a task read from storage, wrote to it, and read and wrote of shuffles: the median task and "
            "the one with most. Partitions of 100 MiB to 200 MiB are what Spark works well with.",
            "bytes",
            [
                value_query(f"{one(f'spark_stage_task_{name}_{which}_bytes')} > 0", f"{words}, {shown}")
                for name, words in (
                    ("input", "read"),
                    ("output", "written"),
                    ("shuffle_read", "shuffle read"),
                    ("shuffle_write", "shuffle written"),
                )
                for which, shown in (("median", "median"), ("max", "most"))
            ],
            width=8,
            height=6,
            overrides=[
                {"regex": "/, median$/", "properties": {"color": {"mode": "fixed", "fixedColor": OK}}},
                {"regex": "/, most$/", "properties": {"color": {"mode": "fixed", "fixedColor": WARNING}}},
            ],
        ),
        _against_limits(),
        timeseries(
            "Longest / typical task",
            "Typical is the median from 10 tasks on, the mean of the others below. The dashed line is where "
            "data_skew and straggler begin to look (lower with fewer than 10 tasks). What is above "
            "it is a finding only where it costs time.",
            "short",
            [
                graph_query(now("spark_stage_task_run_time_ratio", STAGE, ONE_STAGE), "run time"),
                graph_query(now("spark_stage_task_records_ratio", STAGE, ONE_STAGE), "records"),
                graph_query(now("spark_stage_task_bytes_ratio", STAGE, ONE_STAGE), "bytes"),
                graph_query(limit("data_skew", "run_time_ratio"), "limit of run time"),
            ],
            width=10,
            overrides=[limit_line("limit of run time")],
        ),
    ]


# What is measured, whether as a share, the metric, and the limit of which rule.
_COMPARED = [
    ("longest / typical run time", "spark_stage_task_run_time_ratio", "data_skew", "run_time_ratio"),
    ("most / typical records", "spark_stage_task_records_ratio", "data_skew", "records_ratio"),
    ("spilled / data moved", "spark_stage_spill_ratio", "spill", "ratio"),
    ("garbage collection / run time", "spark_stage_gc_ratio", "gc_pressure", "warning_ratio"),
    ("failed / ended tasks", "spark_stage_task_failure_ratio", "task_failures", "ratio"),
    (
        "I/O per core, largest direction",
        "spark_stage_io_per_core_bytes_per_second",
        "io_bound",
        "bytes_per_second_per_core",
    ),
]


def _against_limits():
    def named(expression: str, what: str) -> str:
        return f'label_replace({expression}, "what", "{what}", "", "")'

    values = "\nor ".join(
        named(last(metric, RUN + ", stage_id", ONE_STAGE), what) for what, metric, _, _ in _COMPARED
    )
    limits = "\nor ".join(named(limit(rule, key), what) for what, _, rule, key in _COMPARED)
    times = "\nor ".join(
        named(f"{last(metric, RUN + ', stage_id', ONE_STAGE)} / scalar({limit(rule, key)})", what)
        for what, metric, rule, key in _COMPARED
    )
    rules = "\nor ".join(
        f'label_replace({named(limit(rule, key), what)}, "rule", "{rule}", "", "")'
        for what, _, rule, key in _COMPARED
    )
    return table(
        "Against the limits of the rules",
        "Numbers of this stage beside the limits that the exporter is configured with. Above 1 in the last "
        "column the rule begins to look; whether there is something to say, it decides by what mending would "
        "save. Nothing in the last column: the rule is switched off.",
        [table_query(values), table_query(limits), table_query(times), table_query(rules)],
        [
            Column("what", "Number"),
            Column("rule", "Rule", links=[to_rule()], width=120),
            Column("#A", "This stage", unit="short", decimals=2, width=110),
            Column("#B", "Limit", unit="short", decimals=2, width=100),
            Column(
                "#C",
                "Stage / limit",
                unit="short",
                decimals=2,
                width=110,
                limits=[(None, "text"), (1, WARNING)],
            ),
        ],
        "Stage / limit",
        width=14,
        height=8,
        no_value="",
    )


def _time() -> list:
    parts = [
        ("cpu", "cpu_time"),
        ("gc", "gc_time"),
        ("deserialize", "deserialize_time"),
        ("fetch_wait", "fetch_wait_time"),
        ("shuffle_write", "shuffle_write_time"),
        ("scheduling", "scheduler_delay"),
    ]
    by_direction = f"{STAGE}, direction"
    return [
        bars(
            "Task time",
            "Summed over all task attempts. Run time is the whole; CPU is what computed, and excludes Python "
            "and native code. What run time is beyond the others is waiting for disk, network, Python or "
            "locks, for which Spark has no measure. The parts can overlap.",
            "s",
            [
                value_query(one("spark_stage_task_run_time_seconds"), "run time"),
                *[value_query(one(f"spark_stage_task_{name}_seconds"), part) for part, name in parts],
            ],
            width=8,
            overrides=[
                fixed("run time", INFO),
                *[fixed(part, PARTS[part]) for part, _ in parts],
            ],
        ),
        bars(
            "I/O per core, against the limit",
            "Bytes in each direction / (cores of all executors x seconds in which the stage ran). Above the "
            "limit of io_bound, and with a CPU that is idle for half of the time, the cores wait for storage "
            "or network: more cores would wait as well.",
            "Bps",
            [
                value_query(last("spark_stage_io_per_core_bytes_per_second", by_direction, ONE_STAGE), "{{direction}}"),
                value_query(limit("io_bound", "bytes_per_second_per_core"), "limit of io_bound"),
            ],
            width=8,
            overrides=[fixed("limit of io_bound", WARNING)],
        ),
        bars(
            "Data moved and spilled",
            "Bytes over all task attempts. Spill in memory is the size of the same data before it was "
            "serialized.",
            "bytes",
            [
                value_query(one(f"spark_stage_{name}_bytes"), words)
                for words, name in (
                    ("read from storage", "input"),
                    ("written to storage", "output"),
                    ("shuffle read", "shuffle_read"),
                    ("shuffle written", "shuffle_write"),
                    ("spilled to disk", "disk_spilled"),
                    ("spilled, as it was in memory", "memory_spilled"),
                    ("most execution memory of a task", "task_peak_execution_memory_max"),
                )
            ],
            width=8,
            overrides=[fixed("spilled to disk", WARNING), fixed("spilled, as it was in memory", WARNING)],
        ),
    ]


def _live() -> list:
    return [
        timeseries(
            "Tasks",
            "Task attempts of the stage while it was watched, by status. Flat lines with active tasks: nothing "
            "ends. Retries and speculative copies count each.",
            "short",
            [
                graph_query(
                    now("spark_stage_tasks", f"{STAGE}, status", ONE_STAGE),
                    "{{status}}, " + ATTEMPT,
                ),
            ],
            overrides=[
                {
                    "regex": f"/^{status}, /",
                    "properties": {"color": {"mode": "fixed", "fixedColor": STATUSES[status]}},
                }
                for status in ("active", "succeeded", "failed", "killed")
            ],
        ),
        timeseries(
            "Bytes moved",
            "What the tasks have moved so far, while the stage was watched.",
            "bytes",
            [
                graph_query(now(f"spark_stage_{name}_bytes", STAGE, ONE_STAGE), f"{words}, {ATTEMPT}")
                for words, name in (
                    ("read", "input"),
                    ("written", "output"),
                    ("shuffle read", "shuffle_read"),
                    ("shuffle written", "shuffle_write"),
                    ("spilled to disk", "disk_spilled"),
                )
            ],
        ),
    ]
