"""Job: one name of applications over its runs. Does it still do what it used
to, when did it last, what does it cost, what is wrong with it again and again."""

from frame import dashboard, ended_badly, filled, runs, to_application, to_report, to_rule, variables
from look import CRITICAL, INFO, OK, QUIET, SEVERITIES, STATES, WARNING, colored, steps
from panels import (
    SHORTEST_BAR,
    Column,
    fixed,
    graph_query,
    limit_line,
    stat,
    table,
    table_query,
    timeseries,
    value_query,
)
from query import CLUSTER, ONE_NAME, RUN, final, grew, last, latest_state, now, series
from words import rule_mapping

NAME = "spark_cluster, app_name"
STEP = "5m"
OF_NAME = 'app_name="$app_name"'


def of_name(expression: str) -> str:
    """Of these runs, those of this job."""
    info = last("spark_application_info", RUN, ONE_NAME)
    return f"{expression}\nand on ({RUN})\n{info}"


def _shown(expression: str) -> str:
    """As `of_name`, at each moment."""
    return f"({expression})\nand on ({RUN})\n{now('spark_application_info', RUN, ONE_NAME)}"


def make():
    made = dashboard(
        "job",
        "Spark / Job",
        "One job over its runs: duration against what is usual, outcomes, findings, cost, last success.",
        variables("spark_cluster", "app_name"),
        since="now-7d",
    )
    made.annotation(runs(CLUSTER, of=_shown)).annotation(ended_badly(CLUSTER, of=_shown))
    return filled(
        made,
        [*_head(), *_durations(), *_runs()],
        {
            "What is wrong again and again": _findings(),
            "What it takes": _amounts(),
        },
    )


def _head() -> list:
    return [
        stat(
            "Last success",
            "When a run of this job last ended well: succeeded, or ended with nothing that speaks against it "
            "(Spark 3 does not tell success). None: no such run is known.",
            "dateTimeFromNow",
            value_query(
                "1000 * " + last("spark_application_runs_last_success_timestamp_seconds", NAME, ONE_NAME),
                "{{spark_cluster}}",
            ),
            width=3,
        ),
        stat(
            "Next success due in",
            "When the next run that ends well is due at the latest, as the operator set it or as learned from "
            "the spacing of earlier ones. Negative and red: overdue by so much. None: nothing is due, since "
            "the spacing is not regular or too few runs are known.",
            "s",
            value_query(
                last("spark_application_runs_success_due_timestamp_seconds", NAME, ONE_NAME) + " - time()",
                "{{spark_cluster}}",
            ),
            limits=steps((None, CRITICAL), (0, OK)),
            width=3,
        ),
        stat(
            "Last run took",
            "Duration of the latest run that has ended, well or not.",
            "s",
            value_query(
                last("spark_application_runs_last_duration_seconds", NAME, ONE_NAME), "{{spark_cluster}}"
            ),
            decimals=1,
            width=3,
        ),
        stat(
            "Usually takes",
            "Median of the earlier runs that the newest good one was compared with: same name, about as much "
            "data. None: there are fewer than five.",
            "s",
            value_query(
                last("spark_application_runs_baseline_duration_seconds", NAME, ONE_NAME), "{{spark_cluster}}"
            ),
            decimals=1,
            width=3,
        ),
        stat(
            "Against usual",
            "Newest run that ended well / what runs usually take. Whether it is a regression, the finding says: "
            "it looks at the spread of the earlier runs as well.",
            "short",
            value_query(last("spark_application_regression_ratio", NAME, ONE_NAME), "{{spark_cluster}}"),
            decimals=2,
            width=3,
        ),
        stat(
            "Failed or lost",
            "Runs of this job that failed or were lost within the time range.",
            "short",
            value_query(
                "sum("
                + grew("spark_application_runs_total", f"{NAME}, outcome", ONE_NAME, 'outcome=~"failed|lost"')
                + ")"
            ),
            limits=steps((None, OK), (0.5, CRITICAL)),
            decimals=0,
            width=3,
        ),
        stat(
            "Failed in a row",
            "The latest runs, back to the last that ended well, that failed or were lost. Of Spark 3, which "
            "tells no exit code, those with a failed job and no end that was good.",
            "short",
            value_query(
                last("spark_application_runs_failures_in_a_row", NAME, ONE_NAME), "{{spark_cluster}}"
            ),
            limits=steps((None, OK), (1, CRITICAL)),
            width=3,
        ),
        stat(
            "Unused core time",
            "Core time paid for in which no task ran, of the runs that ended within the time range.",
            "percentunit",
            value_query(
                f"{grew('spark_application_runs_wasted_core_seconds_total', NAME, ONE_NAME)}\n"
                f"/ ({grew('spark_application_runs_bought_core_seconds_total', NAME, ONE_NAME)} > 0)",
                "{{spark_cluster}}",
            ),
            decimals=0,
            width=3,
        ),
    ]


def _durations() -> list:
    usual = now("spark_application_runs_baseline_duration_seconds", NAME, ONE_NAME)
    spread = now("spark_application_runs_baseline_spread_seconds", NAME, ONE_NAME)
    ratio = series("spark_exporter_threshold", 'rule="regression"', 'threshold="ratio"')
    return [
        timeseries(
            "Duration against what is usual",
            "How long the latest run took, from its end to the end of the next, beside the median of the "
            "earlier ones and their spread (median distance from it, to both sides). The dashed line is where "
            "the rule regression begins to look: a run above it that is also beyond the spread, on about as "
            "much data, is one.",
            "s",
            [
                graph_query(now("spark_application_runs_last_duration_seconds", NAME, ONE_NAME), "latest run"),
                graph_query(usual, "usual"),
                graph_query(f"{usual}\n+ {spread}", "usual + spread"),
                graph_query(f"clamp_min({usual}\n- {spread}, 0)", "usual - spread"),
                graph_query(f"{usual}\n* scalar(max({ratio}))", "regression begins"),
            ],
            width=16,
            overrides=[
                fixed("latest run", INFO),
                fixed("usual", OK),
                fixed("usual + spread", QUIET),
                fixed("usual - spread", QUIET),
                limit_line("regression begins"),
            ],
        ),
        timeseries(
            "Runs by outcome",
            "Runs of this job that ended in the time of each bar.",
            "short",
            [
                graph_query(
                    "sum by (outcome) (max by (spark_cluster, outcome) (increase("
                    + series("spark_application_runs_total", ONE_NAME)
                    + "[$__rate_interval])))",
                    "{{outcome}}",
                ).interval(SHORTEST_BAR),
            ],
            width=8,
            stacked=True,
            bars=True,
            overrides=[fixed(state, color) for state, color in STATES.items()],
        ),
    ]


def _runs() -> list:
    saved = f"sum by ({RUN}) (\n{final('spark_finding_wall_seconds', STEP, CLUSTER, OF_NAME)}\n)"

    def column(metric: str, factor: str = ""):
        return table_query(of_name(factor + last(metric, RUN, CLUSTER)))

    return [
        table(
            "Runs",
            "Runs of this job that were seen within the time range. A run is shown for a while after its end "
            "(retention): Prometheus keeps it for longer, so older runs are in older time ranges. Could be "
            "saved: what its findings cost it, by estimate.",
            [
                table_query(of_name(latest_state("spark_application_state", "state", RUN, CLUSTER, step=STEP))),
                column("spark_application_start_timestamp_seconds", "1000 * "),
                column("spark_application_duration_seconds"),
                table_query(saved),
                table_query(
                    of_name(last("spark_application_findings", RUN, CLUSTER, 'severity="critical"'))
                ),
                table_query(of_name(last("spark_application_findings", RUN, CLUSTER, 'severity="warning"'))),
                column("spark_application_executor_cores_peak"),
                table_query(
                    of_name(
                        f"{last('spark_application_used_core_seconds', RUN, CLUSTER)}\n"
                        f"/ {last('spark_application_bought_core_seconds', RUN, CLUSTER)}"
                    )
                ),
                column("spark_application_input_bytes"),
                table_query(of_name(last("spark_application_cost", f"{RUN}, currency", CLUSTER))),
            ],
            [
                Column("app_id", "Run", links=[to_application(), to_report()]),
                Column("attempt_id", "Attempt", width=80),
                Column("state", "State", mappings=colored(STATES), fill=True, width=100),
                Column("#B", "Started", unit="dateTimeAsLocal", width=170),
                Column("#C", "Took", unit="s", width=90, decimals=1),
                Column("#D", "Could be saved", unit="s", width=120, decimals=1),
                Column("#E", "Critical", unit="short", width=80, limits=[(None, "text"), (1, SEVERITIES["critical"])]),
                Column("#F", "Warnings", unit="short", width=90, limits=[(None, "text"), (1, SEVERITIES["warning"])]),
                Column("#G", "Most cores", unit="short", width=100),
                Column("#H", "Cores used", unit="percentunit", width=100, decimals=0),
                Column("#I", "Read", unit="bytes", width=100),
                Column("#J", "Cost", unit="short", width=90, decimals=4),
                Column("currency", "Currency", width=80),
                Column("spark_cluster", "spark_cluster", hidden=True),
            ],
            "Started",
            height=10,
            filterable=True,
            no_value="",
        ),
    ]


def _findings() -> list:
    of_rule = "spark_cluster, app_name, rule"
    return [
        table(
            "Rules that found something",
            "In how many runs that ended within the time range each rule found something, and what it cost "
            "those runs that were shown within it. What comes back in every run is worth mending once.",
            [
                table_query(
                    grew("spark_application_runs_with_finding_total", of_rule, ONE_NAME) + " > 0"
                ),
                table_query(
                    f"sum by ({of_rule}) (\n{final('spark_finding_wall_seconds', STEP, CLUSTER, OF_NAME)}\n)"
                ),
                table_query(
                    f"sum by ({of_rule}) (\n{final('spark_finding_core_seconds', STEP, CLUSTER, OF_NAME)}\n)"
                ),
                table_query(
                    'label_replace(\ncount by ('
                    + of_rule
                    + ") (\n"
                    + final("spark_finding", STEP, CLUSTER, OF_NAME)
                    + '\n),\n"meaning", "$1", "rule", "(.+)")'
                ),
            ],
            [
                Column("rule", "Rule", links=[to_rule()], width=190),
                Column("meaning", "What it means", mappings=rule_mapping()),
                Column("#A", "Runs", unit="short", width=80, decimals=0),
                Column("#D", "Findings", unit="short", width=90),
                Column("#B", "Wall time to save", unit="s", width=140, decimals=1),
                Column("#C", "Core time to save", unit="s", width=140, decimals=1),
            ],
            "Wall time to save",
            width=14,
            no_value="",
        ),
        timeseries(
            "Runs with findings, by rule",
            "Runs in which the rule found something, whatever its severity, in the time of each bar. A rule "
            "that begins at some point began with a change: of data, code, settings or cluster.",
            "short",
            [
                graph_query(
                    "sum by (rule) (max by (spark_cluster, rule) (increase("
                    + series("spark_application_runs_with_finding_total", ONE_NAME)
                    + "[$__rate_interval]))) > 0",
                    "{{rule}}",
                ).interval(SHORTEST_BAR),
            ],
            width=10,
            height=9,
            stacked=True,
            bars=True,
        ),
    ]


def _amounts() -> list:
    def grown(metric: str, by: str = "spark_cluster") -> str:
        return f"max by ({by}) (increase({series(metric, ONE_NAME)}[$__rate_interval]))"

    def by_bar(expression: str, legend: str):
        return graph_query(expression, legend).interval(SHORTEST_BAR)

    return [
        timeseries(
            "Core time",
            "Core-seconds of runs that ended in the time of each bar: those in which a task ran, and those that were "
            "paid for and stood idle.",
            "s",
            [
                by_bar(grown("spark_application_runs_used_core_seconds_total"), "used"),
                by_bar(grown("spark_application_runs_wasted_core_seconds_total"), "not used"),
            ],
            width=8,
            stacked=True,
            bars=True,
            overrides=[fixed("used", OK), fixed("not used", WARNING)],
        ),
        timeseries(
            "Cost",
            "What runs that ended in the time of each bar cost, by the operator's prices. Empty without prices.",
            "short",
            [by_bar(grown("spark_application_runs_cost_total", "spark_cluster, currency"), "{{currency}}")],
            width=8,
            bars=True,
        ),
        timeseries(
            "Data moved",
            "Bytes that runs which ended in the time of each bar read, wrote, shuffled and spilled. Spill is data that "
            "did not fit into execution memory.",
            "bytes",
            [
                by_bar(grown("spark_application_runs_input_bytes_total"), "read"),
                by_bar(grown("spark_application_runs_output_bytes_total"), "written"),
                by_bar(grown("spark_application_runs_shuffle_read_bytes_total"), "shuffle read"),
                by_bar(grown("spark_application_runs_shuffle_write_bytes_total"), "shuffle written"),
                by_bar(grown("spark_application_runs_disk_spilled_bytes_total"), "spilled to disk"),
            ],
            width=8,
            overrides=[fixed("spilled to disk", WARNING)],
        ),
    ]
