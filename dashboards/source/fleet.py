"""Fleet: all runs that the exporters see. What needs somebody, what runs, what
it costs, and which jobs to look at."""

from frame import dashboard, ended_badly, field, filled, link, to_application, to_job, to_report, to_rule, variables
from look import CRITICAL, INFO, OK, STATES, WARNING, colored, steps
from panels import (
    SHORTEST_BAR,
    Column,
    fixed,
    graph_query,
    severity_column,
    stat,
    table,
    table_query,
    timeseries,
    value_query,
)
from query import CLUSTER, RUN, final, grew, joined, last, latest_state, now, of_range, series, with_rank

NAME = "spark_cluster, app_name"
# Runs are seen for their retention (30 min): no need to look every minute.
STEP = "5m"

RUNNING = now("spark_application_state", RUN, CLUSTER, 'state="running"') + " == 1"

# The state a run was last seen in, where it is a bad one. Spark 3 does not tell: there
# the diagnosis says whether a run went down with a job, as it does for the alerts.
ENDED_BADLY = of_range(
    latest_state("spark_application_state", "state", RUN, CLUSTER, step=STEP)
    + f"\nand on ({RUN}, state) (\n"
    + last("spark_application_state", f"{RUN}, state", CLUSTER, 'state=~"failed|lost"')
    + "\nor\n"
    + last("spark_application_state", f"{RUN}, state", CLUSTER, 'state="unknown"')
    + f"\nand on ({RUN})\n"
    + last("spark_finding", RUN, CLUSTER, 'rule=~"job_failed|application_failed", severity="critical"')
    + "\n)",
    CLUSTER,
)

DUE = "spark_application_runs_success_due_timestamp_seconds"
HIDDEN_RUN = [Column(name, name, hidden=True) for name in ("spark_cluster", "attempt_id")]


def make():
    made = dashboard(
        "fleet",
        "Spark / Fleet",
        "All Spark applications that are watched: what needs somebody, what runs, what it costs.",
        variables("spark_cluster"),
    )
    made.annotation(ended_badly(CLUSTER))
    return filled(
        made,
        [*_head(), *_bad()],
        {
            "Runs now": _running(),
            "Jobs": _jobs(),
            "Trends": _trends(),
        },
    )


def _head() -> list:
    some_is_bad = steps((None, OK), (1, CRITICAL))
    return [
        stat(
            "Running now",
            "Applications that run at this moment (at the end of the time range).",
            "short",
            value_query(f"count({RUNNING}) or vector(0)"),
        ),
        stat(
            "Ended badly",
            "Runs that failed or were lost and ended within the time range. The table below names them. "
            "Spark 3 writes no exit code: a run of it is here, as unknown, if it went down with a job that failed.",
            "short",
            value_query(f"count(\n{ENDED_BADLY}\n) or vector(0)"),
            limits=some_is_bad,
        ),
        stat(
            "Overdue jobs",
            "Names without a success although one was due: as the operator said, or as learned from their "
            "past where that is regular.",
            "short",
            value_query(f"count(time() - {last(DUE, NAME, CLUSTER)} > 0) or vector(0)"),
            limits=some_is_bad,
        ),
        stat(
            "Critical findings",
            "The severest findings, as they were when each run was last seen: what cost much of a run, or its "
            "success. Where critical begins, the exporter's configuration says (thresholds.cost).",
            "short",
            value_query(
                "count(\n" + final("spark_finding", STEP, CLUSTER, 'severity="critical"') + "\n) or vector(0)"
            ),
            limits=some_is_bad,
        ),
        stat(
            "Cost",
            "What the runs that were seen within the time range cost, each whole, by the operator's prices. "
            "None: no prices are set.",
            "short",
            value_query(
                "sum by (currency) (\n"
                + of_range(last("spark_application_cost", f"{RUN}, currency", CLUSTER), CLUSTER)
                + "\n)",
                "{{currency}}",
            ),
            named=True,
        ),
        stat(
            "Cores used",
            "Core-seconds in which tasks ran / core-seconds paid for, over the runs that were seen within the "
            "time range. The rest stood idle.",
            "percentunit",
            value_query(
                "sum(\n"
                + of_range(last("spark_application_used_core_seconds", RUN, CLUSTER), CLUSTER)
                + "\n)\n/ sum(\n"
                + of_range(last("spark_application_bought_core_seconds", RUN, CLUSTER), CLUSTER)
                + "\n)"
            ),
        ),
    ]


def _bad() -> list:
    bad_severities = 'severity=~"critical|warning"'
    return [
        table(
            "Worst findings",
            "Critical findings and warnings of runs seen within the time range: the worst first, then the costliest. "
            "A rule leads to evidence and advice on the exporter's page, a run to its dashboard. No seconds: "
            "Spark gives no time for that fault, or it is a failure.",
            [
                table_query(with_rank(final("spark_finding", STEP, CLUSTER, bad_severities))),
                table_query(final("spark_finding_wall_seconds", STEP, CLUSTER, bad_severities)),
                table_query(final("spark_finding_core_seconds", STEP, CLUSTER, bad_severities)),
            ],
            [
                severity_column(),
                Column("app_name", "Job", links=[to_job()]),
                Column("rule", "Rule", links=[to_report(anchor="rule"), to_rule()], width=170),
                Column("cause", "Cause", width=150),
                Column("#B", "Wall time to save", unit="s", width=140, decimals=1),
                Column("#C", "Core time to save", unit="s", width=140, decimals=1),
                Column("app_id", "Run", links=[to_application()], width=270),
                Column("stage_id", "Stage", width=70),
                *HIDDEN_RUN,
            ],
            "Severity",
            "Wall time to save",
            filterable=True,
            no_value="",
        ),
        table(
            "Runs that ended badly",
            "Failed: its exit code, resource manager or pod says so. Lost: gone without an end. Unknown: it went "
            "down with a job that failed (Spark 3). Only runs that ended within the time range.",
            [
                table_query(joined(ENDED_BADLY, "app_name")),
                table_query(f"1000 * {last('spark_application_observed_timestamp_seconds', RUN, CLUSTER)}\nand on ({RUN})\n({ENDED_BADLY})"),
                table_query(f"{last('spark_application_duration_seconds', RUN, CLUSTER)}\nand on ({RUN})\n({ENDED_BADLY})"),
            ],
            [
                Column("state", "State", mappings=colored(STATES), fill=True, width=90),
                Column("app_name", "Job", links=[to_job()]),
                Column("app_id", "Run", links=[to_application(), to_report()]),
                Column("#B", "Ended", unit="dateTimeAsLocal", width=170),
                Column("#C", "Took", unit="s", width=90, decimals=1),
                *HIDDEN_RUN,
            ],
            "Ended",
            width=13,
            height=8,
            no_value="",
        ),
        table(
            "Firing alerts",
            "Alerts of alerts/*.yml that fire at this moment, where Prometheus has loaded them. Empty without "
            "those rules, too.",
            [
                table_query(
                    with_rank(
                        "max by (alertname, severity, spark_cluster, app_name, app_id, attempt_id, rule) "
                        '(ALERTS{alertname=~"Spark.*", alertstate="firing"})'
                    )
                ),
            ],
            [
                severity_column(),
                Column(
                    "alertname",
                    "Alert",
                    links=[
                        link(
                            "Runbook",
                            "https://github.com/spark-exporter/spark-exporter/blob/main/docs/runbooks/"
                            + field("alertname")
                            + ".md",
                            True,
                        )
                    ],
                ),
                Column("app_name", "Job", links=[to_job()]),
                Column("app_id", "Run", links=[to_application()]),
                *HIDDEN_RUN,
            ],
            "Severity",
            width=11,
            height=8,
            no_value="",
        ),
    ]


def _running() -> list:
    def column(metric: str):
        return table_query(f"{now(metric, RUN, CLUSTER)}\nand on ({RUN})\n({RUNNING})")

    # Core time is told when tasks end: a long task brings more of it at once than
    # its core can have spent just then.
    cores = now("spark_application_executor_cores", RUN, CLUSTER)
    growth = f"deriv({series('spark_application_used_core_seconds', CLUSTER)}[$__rate_interval])"
    busy = f"(clamp_min(max by ({RUN}) ({growth}), 0) and on ({RUN}) ({RUNNING}))"
    return [
        table(
            "Running applications",
            "Those that run at this moment, the longest first. A run without a core waits for its executors. Ill: "
            "its critical findings and warnings so far.",
            [
                table_query(joined(RUNNING, "app_name", "kind", "user")),
                column("spark_application_duration_seconds"),
                column("spark_application_executors"),
                column("spark_application_executor_cores"),
                table_query(
                    "sum by (" + RUN + ") ("
                    + now("spark_application_findings", f"{RUN}, severity", CLUSTER, 'severity=~"critical|warning"')
                    + f")\nand on ({RUN})\n({RUNNING})"
                ),
                table_query(f"{now('spark_application_cost', f'{RUN}, currency', CLUSTER)}\nand on ({RUN})\n({RUNNING})"),
            ],
            [
                Column("app_name", "Job", links=[to_job()]),
                Column("app_id", "Run", links=[to_application(), to_report()]),
                Column("kind", "Kind", width=85),
                Column("user", "User", width=85),
                Column("#B", "Runs for", unit="s", width=85),
                Column("#C", "Executors", unit="short", width=80),
                Column("#D", "Cores", unit="short", width=65),
                Column("#E", "Ill", unit="short", width=60, limits=[(None, "text"), (1, WARNING)]),
                Column("#F", "Cost so far", unit="short", width=85, decimals=2),
                Column("currency", "Currency", width=80),
                *HIDDEN_RUN,
            ],
            "Runs for",
            width=14,
            no_value="",
        ),
        timeseries(
            "Cores bought and used",
            "Cores of executors of running applications, and how many of them tasks kept busy, by how fast "
            "the core time in use grew. The gap is what is paid for and idle.",
            "short",
            [
                graph_query(
                    f"sum(\n{now('spark_application_executor_cores', RUN, CLUSTER)}\n) or vector(0)", "bought"
                ),
                graph_query(
                    f"sum(\n({busy} <= {cores})\nor ({cores} and {busy})\n) or vector(0)",
                    "used",
                ).interval("1m"),
            ],
            width=10,
            height=9,
            overrides=[fixed("bought", INFO), fixed("used", OK)],
        ),
    ]


def _jobs() -> list:
    per_outcome = f"{NAME}, outcome"
    return [
        table(
            "Jobs",
            "Names of applications over their runs. In a row: those that failed since the last success. Overdue: seconds since a success was due. Against usual: "
            "the newest run that ended well / the median of those before it; whether that is a regression, "
            "the finding says, which looks at spread and data as well. Unused: core time paid for in which no "
            "task ran. Counts are of the time range.",
            [
                table_query(f"sum by ({NAME}) ({grew('spark_application_runs_total', per_outcome, CLUSTER)})"),
                table_query(
                    "sum by (" + NAME + ") ("
                    + grew("spark_application_runs_total", per_outcome, CLUSTER, 'outcome=~"failed|lost"')
                    + ")"
                ),
                table_query(f"time() - {last(DUE, NAME, CLUSTER)} > 0"),
                table_query(
                    f"1000 * {last('spark_application_runs_last_success_timestamp_seconds', NAME, CLUSTER)}"
                ),
                table_query(last("spark_application_runs_last_duration_seconds", NAME, CLUSTER)),
                table_query(last("spark_application_regression_ratio", NAME, CLUSTER)),
                table_query(
                    f"{grew('spark_application_runs_wasted_core_seconds_total', NAME, CLUSTER)}\n"
                    f"/ ({grew('spark_application_runs_bought_core_seconds_total', NAME, CLUSTER)} > 0)"
                ),
                table_query(grew("spark_application_runs_cost_total", f"{NAME}, currency", CLUSTER)),
                table_query(last("spark_application_runs_failures_in_a_row", NAME, CLUSTER)),
            ],
            [
                Column("app_name", "Job", links=[to_job()]),
                Column("spark_cluster", "Cluster", width=120),
                Column("#A", "Runs", unit="short", width=80, decimals=0),
                Column("#B", "Failed or lost", unit="short", width=110, decimals=0, limits=[(None, "text"), (0.5, CRITICAL)]),
                Column("#I", "In a row", unit="short", width=80, decimals=0, limits=[(None, "text"), (1, CRITICAL)]),
                Column("#C", "Overdue", unit="s", width=110, limits=[(None, CRITICAL)]),
                Column("#D", "Last success", unit="dateTimeFromNow", width=140),
                Column("#E", "Last run took", unit="s", width=110, decimals=1),
                Column("#F", "Against usual", unit="short", width=110, decimals=2),
                Column("#G", "Unused", unit="percentunit", width=90, decimals=0),
                Column("#H", "Cost", unit="short", width=90, decimals=2),
                Column("currency", "Currency", width=80),
            ],
            "Failed or lost",
            height=10,
            filterable=True,
            no_value="",
        ),
    ]


def _trends() -> list:
    def by(metric: str, labels: str, label: str, *matchers: str) -> str:
        grown = f"max by ({labels}) (increase({series(metric, CLUSTER, *matchers)}[$__rate_interval]))"
        return f"sum by ({label}) ({grown})" if label else f"sum({grown})"

    return [
        timeseries(
            "Runs by outcome",
            "Runs that ended in the time of each bar.",
            "short",
            [
                graph_query(by("spark_application_runs_total", f"{NAME}, outcome", "outcome"), "{{outcome}}").interval(SHORTEST_BAR),
            ],
            stacked=True,
            bars=True,
            overrides=[fixed(state, color) for state, color in STATES.items()],
        ),
        timeseries(
            "Runs with findings, by rule",
            "Runs in which the rule found something, whatever its severity, in the time of each bar. A rule that grows "
            "is worth a look at its jobs. A run counts once for each rule.",
            "short",
            [
                graph_query(by("spark_application_runs_with_finding_total", f"{NAME}, rule", "rule") + " > 0", "{{rule}}").interval(SHORTEST_BAR),
            ],
            stacked=True,
            bars=True,
        ),
        timeseries(
            "Core time of runs that ended",
            "Core-seconds that the runs which ended in the time of each bar paid for, split into those in which a task "
            "ran and those that stood idle.",
            "s",
            [
                graph_query(by("spark_application_runs_used_core_seconds_total", NAME, ""), "used").interval(SHORTEST_BAR),
                graph_query(by("spark_application_runs_wasted_core_seconds_total", NAME, ""), "not used").interval(SHORTEST_BAR),
            ],
            stacked=True,
            bars=True,
            overrides=[fixed("used", OK), fixed("not used", WARNING)],
        ),
        timeseries(
            "Cost of runs that ended",
            "What the runs that ended in the time of each bar cost, by the operator's prices. Empty without prices.",
            "short",
            [
                graph_query(by("spark_application_runs_cost_total", f"{NAME}, currency", "currency"), "{{currency}}").interval(SHORTEST_BAR),
            ],
            bars=True,
        ),
    ]
