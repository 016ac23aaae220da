"""Streaming: structured streaming queries. Do they keep up, how far behind are
they, and what does their state do."""

from frame import dashboard, filled, to_application, to_report, to_rule, variables
from look import CRITICAL, INFO, OK, QUIET, steps, yes_no
from panels import (
    Column,
    graph_query,
    last_columns,
    severity_column,
    stat,
    table,
    table_query,
    timeseries,
    timeline,
    value_query,
)
from query import CLUSTER, RUN, final, joined, last, now, with_rank

QUERY = f"{RUN}, query_id"
APPLICATIONS = f'{CLUSTER}, app_id=~"$app_id"'
QUERIES = f'{APPLICATIONS}, query_id=~"$query_id"'
LEGEND = "{{query_id}}"
HIDDEN = [Column(name, name, hidden=True) for name in ("spark_cluster", "attempt_id")]


def make():
    made = dashboard(
        "streaming",
        "Spark / Streaming",
        "Structured streaming queries: whether they keep up, how far they are behind, what their state does.",
        variables("spark_cluster", "stream_app_id", "query_id"),
        since="now-6h",
    )
    return filled(
        made,
        [*_head(), *_queries()],
        {
            "Does it keep up": _pace(),
            "State": _state(),
        },
    )


def _head() -> list:
    behind = 'rule="streaming_behind"'
    return [
        stat(
            "Queries that run",
            "Streaming queries that run at the end of the time range.",
            "short",
            value_query(f"count({now('spark_streaming_query_active', QUERY, QUERIES)} == 1) or vector(0)"),
        ),
        stat(
            "Behind",
            "Findings of the rule streaming_behind: batches outlast their trigger one after the other, or what "
            "waits in the source grows from batch to batch. It is over after five good batches.",
            "short",
            value_query(f"count(\n{final('spark_finding', '1m', APPLICATIONS, behind)}\n) or vector(0)"),
            limits=steps((None, OK), (1, CRITICAL)),
        ),
        stat(
            "Oldest progress",
            "Of the queries that run, the longest time since one ended a batch or said that it was idle. Much "
            "more than its trigger interval: it hangs, or its log is read late.",
            "s",
            value_query(
                "max(time() - "
                + now("spark_streaming_query_last_progress_timestamp_seconds", QUERY, QUERIES)
                + f"\nand on ({QUERY})\n({now('spark_streaming_query_active', QUERY, QUERIES)} == 1))"
            ),
            width=5,
        ),
        stat(
            "Longest batch",
            "Longest last batch of the queries.",
            "s",
            value_query(f"max({last('spark_streaming_query_batch_duration_seconds', QUERY, QUERIES)})"),
            width=5,
            decimals=1,
        ),
        stat(
            "State in memory",
            "Memory of state after the last batch, over all queries and their stateful operators. State that "
            "only grows ends in memory errors: give it a watermark.",
            "bytes",
            value_query(f"sum({last('spark_streaming_query_state_memory_bytes', QUERY, QUERIES)})"),
            width=6,
        ),
    ]


def _queries() -> list:
    column = last_columns(QUERY, QUERIES)

    return [
        table(
            "Queries",
            "Streaming queries that told of progress within the time range. Rates beside each other say little "
            "of a source with a limit a trigger: the backlog does. The backlog is in the source's own unit "
            "(Kafka: records); empty where offsets are no numbers.",
            [
                table_query(joined(last("spark_streaming_query_active", QUERY, QUERIES), "app_name")),
                table_query(
                    "time() - " + last("spark_streaming_query_last_progress_timestamp_seconds", QUERY, QUERIES)
                ),
                column("spark_streaming_query_batches"),
                column("spark_streaming_query_batch_duration_seconds"),
                column("spark_streaming_query_input_rows_per_second"),
                column("spark_streaming_query_processed_rows_per_second"),
                column("spark_streaming_query_backlog_offsets"),
                column("spark_streaming_query_state_rows"),
                column("spark_streaming_query_state_memory_bytes"),
            ],
            [
                Column("app_name", "Job"),
                Column("app_id", "Run", links=[to_application(), to_report()]),
                Column("query_id", "Query", width=290),
                Column("#A", "State", mappings=yes_no("runs", "ended", INFO, QUIET), width=80),
                Column("#B", "Last progress, ago", unit="s", width=140, decimals=0),
                Column("#C", "Batches", unit="short", width=80),
                Column("#D", "Last batch took", unit="s", width=120, decimals=1),
                Column("#E", "Rows in / s", unit="short", width=100, decimals=0),
                Column("#F", "Rows done / s", unit="short", width=110, decimals=0),
                Column("#G", "Backlog", unit="short", width=100, decimals=0),
                Column("#H", "Rows of state", unit="short", width=110),
                Column("#I", "State in memory", unit="bytes", width=120),
                *HIDDEN,
            ],
            "Last progress, ago",
            ascending=True,
            height=7,
            no_value="",
        ),
        table(
            "Which are behind",
            "Findings of the rule streaming_behind as they were when the run was last seen. The report says "
            "which query it is, by its trigger and batches, and what to change.",
            [table_query(with_rank(final("spark_finding", "1m", APPLICATIONS, 'rule="streaming_behind"')))],
            [
                severity_column(),
                Column("app_name", "Job"),
                Column("app_id", "Run", links=[to_application(), to_report(anchor="rule")]),
                Column("rule", "Rule", links=[to_rule()], width=170),
                Column("sql_id", "SQL", width=80),
                *HIDDEN,
            ],
            "Severity",
            height=5,
            no_value="",
        ),
    ]


def _pace() -> list:
    def query(metric: str, legend: str = LEGEND):
        return graph_query(now(metric, QUERY, QUERIES), legend)

    return [
        timeseries(
            "Batch duration",
            "Start to end of the trigger of the last batch. A query keeps up while this stays below its "
            "trigger interval.",
            "s",
            [query("spark_streaming_query_batch_duration_seconds")],
        ),
        timeseries(
            "Backlog",
            "How far the last batch ended behind the newest offset of the source, in its own unit. What grows "
            "from batch to batch is not kept up with.",
            "short",
            [query("spark_streaming_query_backlog_offsets")],
        ),
        timeseries(
            "Rows in and rows done",
            "Rows that arrived a second before the last batch, and rows processed a second in it. A source "
            "with a limit a trigger balances the two even where the query is hopelessly behind.",
            "short",
            [
                query("spark_streaming_query_input_rows_per_second", "in, " + LEGEND),
                query("spark_streaming_query_processed_rows_per_second", "done, " + LEGEND),
            ],
        ),
        timeseries(
            "Since the last progress",
            "Time since each query that runs last ended a batch or said that it was idle. A sawtooth is "
            "healthy; a line that climbs is a query that hangs. Empty: no query runs.",
            "s",
            [
                graph_query(
                    "time() - "
                    + now("spark_streaming_query_last_progress_timestamp_seconds", QUERY, QUERIES)
                    + f"\nand on ({QUERY})\n({now('spark_streaming_query_active', QUERY, QUERIES)} == 1)",
                    LEGEND,
                )
            ],
        ),
    ]


def _state() -> list:
    return [
        timeseries(
            "Rows of state",
            "Rows of state after the last batch, over all stateful operators. Without a watermark they only "
            "grow.",
            "short",
            [graph_query(now("spark_streaming_query_state_rows", QUERY, QUERIES), LEGEND)],
        ),
        timeseries(
            "Memory of state",
            "Memory of state after the last batch; absent where Spark tells what cannot be true.",
            "bytes",
            [graph_query(now("spark_streaming_query_state_memory_bytes", QUERY, QUERIES), LEGEND)],
        ),
        timeline(
            "When they ran",
            "Each query while it ran and after it ended, as long as it was watched.",
            [graph_query(now("spark_streaming_query_active", QUERY, QUERIES), LEGEND)],
            yes_no("runs", "ended", INFO, QUIET),
        ),
    ]
