"""Application: one run. What is wrong with it, where its time went, and then
executors, stages, SQL and data to look deeper."""

from frame import (
    filled,
    dashboard,
    ended_badly,
    runs,
    to_job,
    to_report,
    to_rule,
    to_stage,
    to_trace,
    variables,
)
from look import CRITICAL, INFO, OK, PARTS, QUIET, STATES, STATUSES, WARNING, colored, yes_no
from panels import (
    Column,
    bars,
    fixed,
    graph_query,
    last_columns,
    severity_column,
    stat,
    table,
    table_query,
    timeseries,
    value_query,
)
from query import ONE_RUN, RUN, STAGE, final, last, latest_state, now, with_anchor, with_rank
from words import rule_mapping

LEGEND_RUN = "{{app_id}}"


def make():
    made = dashboard(
        "application",
        "Spark / Application",
        "One run of a Spark application: what is wrong with it, what that costs, where the time went.",
        variables("spark_cluster", "any_app_name", "app_id", "attempt_id", "tempo"),
    )
    made.annotation(runs(ONE_RUN)).annotation(ended_badly(ONE_RUN))
    return filled(
        made,
        [*_head(), *_findings()],
        {
            "Where the time went": _time(),
            "Executors": _executors(),
            "Stages": _stages(),
            "SQL": _sql(),
            "Kubernetes": _place(),
            "Data, and how far it can be trusted": _data(),
        },
    )


def _head() -> list:
    return [
        stat(
            "Job",
            "Name of the job this run is one of: Spark's application name without dates and ids. "
            "It leads to all runs of that name, and to the trace of this one where traces are sent by OTLP.",
            "none",
            table_query(
                last("spark_application_info", f"{RUN}, app_name, kind, spark_version, trace_id", ONE_RUN)
            ),
            width=5,
            field="app_name",
            links=[to_job(), to_trace()],
        ),
        stat(
            "State",
            "How the run stands, or how it ended. Lost: it is gone and nobody told of an end. "
            "Unknown: nothing tells how it ended (Spark tells an exit code since 4.0, and the driver's pod "
            "where the exporter watches it).",
            "none",
            table_query(latest_state("spark_application_state", "state", RUN, ONE_RUN)),
            width=3,
            field="state",
            mappings=colored(STATES),
        ),
        stat(
            "Duration",
            "Start to end, or to the latest observation while it runs.",
            "s",
            value_query(last("spark_application_duration_seconds", RUN, ONE_RUN), LEGEND_RUN),
            decimals=1,
        ),
        stat(
            "Could be saved",
            "Wall time that the run would not have taken without its faults: the estimates of all its "
            "findings, which never promise the same second twice. None: nothing was found that costs time.",
            "s",
            value_query(
                f"sum by ({RUN}) (\n{final('spark_finding_wall_seconds', '1m', ONE_RUN)}\n)", LEGEND_RUN
            ),
            decimals=1,
        ),
        stat(
            "Cost",
            "What the executors cost so far, by the prices in the exporter's configuration; the currency "
            "stands beside it. None: no prices are set, or cores or memory are not known.",
            "short",
            value_query(last("spark_application_cost", f"{RUN}, currency", ONE_RUN), "{{currency}}"),
            named=True,
        ),
        stat(
            "Cores used",
            "Core-seconds in which a task ran / core-seconds paid for. The rest stood idle. A finding "
            "(idle_cores) says so where it is worth a word; this number has no limit of its own.",
            "percentunit",
            value_query(
                f"{last('spark_application_used_core_seconds', RUN, ONE_RUN)}\n"
                f"/ {last('spark_application_bought_core_seconds', RUN, ONE_RUN)}",
                LEGEND_RUN,
            ),
        ),
    ]


def _place() -> list:
    return [
        table(
            "On Kubernetes",
            "The pod of the driver, where the exporter watches it: its namespace, its name, and the node it is "
            "or was on. Labels of the pod that the exporter's configuration allows are on "
            "spark_application_info, as label_NAME.",
            [
                table_query(
                    last(
                        "spark_application_info",
                        f"{RUN}, k8s_namespace_name, k8s_pod_name, k8s_node_name",
                        ONE_RUN,
                    )
                )
            ],
            [
                Column("k8s_namespace_name", "Namespace", width=200),
                Column("k8s_pod_name", "Driver's pod"),
                Column("k8s_node_name", "Node", width=300),
            ],
            height=4,
            no_value="Not on Kubernetes, or its pods are not watched",
        )
    ]


def _findings() -> list:
    def query(metric: str):
        return table_query(final(metric, "1m", ONE_RUN))

    first = table_query(
        'label_replace(\n'
        + with_anchor(with_rank(final("spark_finding", "1m", ONE_RUN)))
        + ',\n"meaning", "$1", "rule", "(.+)")'
    )
    return [
        table(
            "What is wrong",
            "Findings of this run as they were when it was last seen: the worst first, then the costliest. Click a rule for "
            "the evidence and what to change (on the exporter's page), or for what the rule rests on. "
            "Seconds are what the run would save; empty where Spark gives no time for the fault. "
            "Empty table: nothing was found, which is a verdict only as far as the data is whole (below).",
            [first, query("spark_finding_wall_seconds"), query("spark_finding_core_seconds")],
            [
                severity_column(),
                Column("rule", "Rule", links=[to_report(anchor="anchor"), to_rule()], width=170),
                Column("meaning", "What it means", mappings=rule_mapping()),
                Column("cause", "Cause", width=150),
                Column("#B", "Wall time to save", unit="s", width=140, decimals=1),
                Column("#C", "Core time to save", unit="s", width=140, decimals=1),
                Column("stage_id", "Stage", links=[to_stage()], width=70),
                Column("stage_attempt_id", "Attempt", width=75),
                Column("sql_id", "SQL", width=60),
                Column("executor_id", "Executor", width=80),
                Column("subject", "About", width=120),
                Column("anchor", "Anchor", hidden=True),
                *[Column(name, name, hidden=True) for name in ("spark_cluster", "app_id", "attempt_id")],
            ],
            "Severity",
            "Wall time to save",
            height=9,
            no_value="",
        )
    ]


def _time() -> list:
    by_part = f"{RUN}, part"
    return [
        bars(
            "Where the time went",
            "Each instant of the wall time goes to one of these, and together they are the duration. "
            "Resources: no executor was there. Driver: executors were there and no job ran. Scheduling: a "
            "job ran and no task. The others share the time in which tasks ran, by what those did. Blocked: "
            "run time that Spark explains by nothing else (disk, network, Python, locks). The longest bar "
            "names the layer to look at.",
            "s",
            [value_query(f"sort_desc({last('spark_application_time_seconds', by_part, ONE_RUN)})", "{{part}}")],
            overrides=[fixed(part, color) for part, color in PARTS.items()],
        ),
        bars(
            "With more or fewer executors",
            "How long the run would have taken: its tasks replayed on so many times its executors. 1 x is "
            "the replay of the run as it was, to compare with; no end of executors is the critical path. "
            "Where the bars hardly shrink, more executors only cost more. Finished batch runs, read from "
            "their event logs.",
            "s",
            [
                value_query(
                    "sort_desc("
                    + last("spark_application_predicted_duration_seconds", f"{RUN}, executor_factor", ONE_RUN)
                    + ")",
                    "{{executor_factor}} x executors",
                ),
                value_query(
                    last("spark_application_critical_path_seconds", RUN, ONE_RUN), "no end of executors"
                ),
            ],
        ),
    ]


def _executors() -> list:
    executor = f"{RUN}, executor_id"
    column = last_columns(executor, ONE_RUN)

    return [
        timeseries(
            "Executors and cores",
            "Executors alive and their cores, as long as the run was watched. A run that was only read "
            "after its end has 0 here: its most cores at one time is the dashed line.",
            "short",
            [
                graph_query(now("spark_application_executors", RUN, ONE_RUN), "executors"),
                graph_query(now("spark_application_executor_cores", RUN, ONE_RUN), "cores"),
                graph_query(now("spark_application_executor_cores_peak", RUN, ONE_RUN), "most cores at one time"),
            ],
            overrides=[
                fixed("executors", INFO),
                fixed("cores", OK),
                {
                    "name": "most cores at one time",
                    "properties": {
                        "color": {"mode": "fixed", "fixedColor": QUIET},
                        "custom.lineStyle": {"fill": "dash", "dash": [8, 6]},
                        "custom.fillOpacity": 0,
                    },
                },
            ],
        ),
        timeseries(
            "Core time, bought and used",
            "Core-seconds paid for, and those in which a task ran, so far. The gap between them is what "
            "stood idle.",
            "s",
            [
                graph_query(now("spark_application_bought_core_seconds", RUN, ONE_RUN), "bought"),
                graph_query(now("spark_application_used_core_seconds", RUN, ONE_RUN), "used"),
            ],
            overrides=[fixed("bought", INFO), fixed("used", OK)],
        ),
        table(
            "Executors",
            "Those with the most task time, living ones first (limits.executors_exported). One with much "
            "more collection of garbage, or far fewer tasks than the others, is worth a look at its host.",
            [
                table_query(last("spark_executor_info", f"{executor}, host", ONE_RUN)),
                column("spark_executor_alive"),
                column("spark_executor_cores"),
                column("spark_executor_task_time_seconds"),
                table_query(
                    f"{last('spark_executor_task_gc_time_seconds', executor, ONE_RUN)}\n"
                    f"/ ({last('spark_executor_task_time_seconds', executor, ONE_RUN)} > 0)"
                ),
                column("spark_executor_tasks", 'status="succeeded"'),
                column("spark_executor_tasks", 'status="failed"'),
                column("spark_executor_peak_heap_bytes"),
                column("spark_executor_shuffle_read_bytes"),
                column("spark_executor_shuffle_write_bytes"),
            ],
            [
                Column("executor_id", "Executor", width=90),
                Column("host", "Host"),
                Column("#B", "Alive", mappings=yes_no("alive", "gone", no_color=QUIET), width=80),
                Column("#C", "Cores", width=70),
                Column("#D", "Task time", unit="s", decimals=1),
                Column("#E", "Of it garbage collection", unit="percentunit", decimals=1),
                Column("#F", "Tasks ended well", unit="short"),
                Column("#G", "Tasks failed", unit="short"),
                Column("#H", "Most heap at one time", unit="bytes"),
                Column("#I", "Shuffle read", unit="bytes"),
                Column("#J", "Shuffle written", unit="bytes"),
            ],
            "Task time",
        ),
    ]


def _stages() -> list:
    column = last_columns(STAGE, ONE_RUN)

    return [
        table(
            "Costliest stages",
            "Stage attempts that took longest; those with series are the costliest of the run "
            "(limits.stages_exported). Longest / typical task: 1 is even, a high ratio on a long stage is "
            "skew (records are uneven likewise) or a straggler, and findings say which. GC and Failed are shares "
            "of run time and of tasks. Click a stage to look into it.",
            [
                table_query(latest_state("spark_stage_status", "status", STAGE, ONE_RUN)),
                column("spark_stage_duration_seconds"),
                column("spark_stage_partitions"),
                column("spark_stage_task_run_time_ratio"),
                column("spark_stage_task_records_ratio"),
                column("spark_stage_disk_spilled_bytes"),
                column("spark_stage_gc_ratio"),
                table_query(last("spark_stage_io_per_core_bytes_per_second", STAGE, ONE_RUN)),
                column("spark_stage_scheduling_delay_seconds"),
                column("spark_stage_task_failure_ratio"),
            ],
            [
                Column("stage_id", "Stage", links=[to_stage()], width=80),
                Column("stage_attempt_id", "Attempt", width=80),
                Column("status", "Status", mappings=colored(STATUSES), width=100),
                Column("#B", "Duration", unit="s", decimals=1),
                Column("#C", "Partitions", unit="short"),
                Column("#D", "Longest / typical", unit="short", decimals=1),
                Column("#E", "Records, likewise", unit="short", decimals=1),
                Column("#F", "Spilled to disk", unit="bytes"),
                Column("#G", "GC", unit="percentunit", decimals=1),
                Column("#H", "I/O per core", unit="Bps"),
                Column("#I", "Waited", unit="s", decimals=1),
                Column("#J", "Failed", unit="percentunit", decimals=1),
                *[Column(name, name, hidden=True) for name in ("spark_cluster", "app_id", "attempt_id")],
            ],
            "Duration",
        ),
    ]


def _sql() -> list:
    execution = f"{RUN}, sql_id"
    column = last_columns(execution, ONE_RUN)

    return [
        table(
            "Longest SQL executions",
            "The SQL executions and DataFrame actions that took longest. Task time well below duration x "
            "cores: the execution waited, for its executors or for the driver. The exporter's page of the run "
            "has the plan's shape and what stands out in it.",
            [
                table_query(latest_state("spark_sql_execution_status", "status", execution, ONE_RUN)),
                column("spark_sql_execution_duration_seconds"),
                column("spark_sql_execution_task_run_time_seconds"),
                column("spark_sql_execution_jobs"),
                table_query(
                    f"1000 * {last('spark_sql_execution_submitted_timestamp_seconds', execution, ONE_RUN)}"
                ),
            ],
            [
                Column("sql_id", "SQL execution", links=[to_report()], width=130),
                Column("status", "Status", mappings=colored(STATUSES), width=110),
                Column("#B", "Duration", unit="s", decimals=1),
                Column("#C", "Task time", unit="s", decimals=1),
                Column("#D", "Jobs", unit="short"),
                Column("#E", "Submitted", unit="dateTimeAsLocal"),
                *[Column(name, name, hidden=True) for name in ("spark_cluster", "app_id", "attempt_id")],
            ],
            "Duration",
            height=8,
        ),
    ]


VOLUMES = [
    ("read from storage", "input"),
    ("written to storage", "output"),
    ("shuffle written", "shuffle_write"),
    ("shuffle read", "shuffle_read"),
    ("spilled to disk", "disk_spilled"),
]


def _data() -> list:
    return [
        bars(
            "Data moved",
            "Bytes over all task attempts. Spill is data that did not fit into execution memory; it is "
            "written and read again.",
            "bytes",
            [
                value_query(last(f"spark_application_{name}_bytes", RUN, ONE_RUN), words)
                for words, name in VOLUMES
            ],
            width=8,
            overrides=[fixed("spilled to disk", WARNING)],
        ),
        bars(
            "Tasks, stages and jobs",
            "How many there were, by how they ended. Retries and speculative copies of tasks count each.",
            "short",
            [
                value_query(last("spark_application_jobs", f"{RUN}, status", ONE_RUN) + " > 0", "jobs {{status}}"),
                value_query(last("spark_application_stages", f"{RUN}, status", ONE_RUN) + " > 0", "stages {{status}}"),
                value_query(last("spark_application_tasks", f"{RUN}, status", ONE_RUN) + " > 0", "tasks {{status}}"),
            ],
            width=8,
            overrides=[
                {
                    "regex": "/failed$/",
                    "properties": {"color": {"mode": "fixed", "fixedColor": CRITICAL}},
                }
            ],
        ),
        table(
            "What is wrong with the data",
            "Marks of the data of this run itself, such as a log that was cut short or dropped events. Rules "
            "that need the missing part stay silent, so that no finding is not the same as no fault. Empty: "
            "the data is whole.",
            [
                table_query(final("spark_application_data_quality", "1m", ONE_RUN, by=f"{RUN}, reason")),
            ],
            [Column("reason", "Mark"), Column("attempt_id", "Attempt", width=80)],
            "Mark",
            width=8,
            height=8,
            ascending=True,
            no_value="the data is whole",
        ),
    ]
