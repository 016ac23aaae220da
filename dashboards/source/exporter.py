"""Exporter: the daemon itself. What it covers and what it does not, how old its
numbers are, and whether it is a polite guest."""

from frame import dashboard, filled, link, variables
from look import CRITICAL, OK, QUIET, WARNING, steps, yes_no
from panels import (
    Column,
    fixed,
    graph_query,
    stat,
    table,
    table_query,
    timeline,
    timeseries,
    value_query,
)
from query import CLUSTER, series

# Reasons that only say that the costliest subjects of a run have series.
AS_IT_SHOULD_BE = 'reason!~"(stages|executors|sql_executions|streaming_queries|findings)_limit"'
TARGETS = "spark_cluster, target"


def make():
    made = dashboard(
        "exporter",
        "Spark / Exporter",
        "The exporter itself: what it covers and what it does not, how old its numbers are, what it costs.",
        variables("spark_cluster"),
        since="now-6h",
    )
    return filled(
        made,
        _head(),
        {
            "What is covered": _coverage(),
            "How old the numbers are": _lag(),
            "Errors": _errors(),
            "A polite guest": _politeness(),
            "Size": _size(),
            "Store": _store(),
            "Kubernetes": [*_kubernetes(), *_pod_facts()],
            "Sent by OTLP": _otlp(),
        },
    )


def newest(metric: str, *matchers: str) -> str:
    """The last value of each exporter within the time range."""
    return f"last_over_time({series(metric, *matchers)}[$__range])"


def per_second(metric: str, by: str, *matchers: str) -> str:
    return f"sum by ({by}) (rate({series(metric, *matchers)}[$__rate_interval]))"


def grown(metric: str, by: str, *matchers: str) -> str:
    """How many in each minute, or in what the panel's width makes of it."""
    return f"sum by ({by}) (increase({series(metric, *matchers)}[$__rate_interval]))"


def in_range(metric: str, *matchers: str) -> str:
    return f"sum(increase({series(metric, *matchers)}[$__range]))"


def _head() -> list:
    bad = steps((None, OK), (1, CRITICAL))
    odd = steps((None, OK), (1, WARNING))
    return [
        stat(
            "Sources that do not answer",
            "Sources whose latest cycle failed, at the end of the time range. Their running applications have "
            "no fresh numbers.",
            "short",
            value_query(f"count(min by ({TARGETS}) ({series('spark_exporter_target_up', CLUSTER)}) == 0) or vector(0)"),
            limits=bad,
        ),
        stat(
            "Runs not covered",
            "Runs that sources show and that have no series, for whatever reason: the table below says why.",
            "short",
            value_query(f"sum({series('spark_exporter_applications_skipped')})"),
            limits=odd,
        ),
        stat(
            "Runs held",
            "Running applications, and finished ones until their retention ends. Two exporters that show the "
            "same runs count them both.",
            "short",
            value_query(f"sum({series('spark_exporter_applications')})"),
            links=[link("The exporter's page", "${exporter:raw}/", True)],
        ),
        stat(
            "Snapshot's age",
            "The oldest snapshot that an exporter shows. It makes a new one after each cycle.",
            "s",
            value_query(f"max(time() - {series('spark_exporter_snapshot_timestamp_seconds')})"),
            limits=steps((None, OK), (120, WARNING), (600, CRITICAL)),
            width=3,
        ),
        stat(
            "Series lost",
            "Series left out of snapshots within the time range because there were too many in all, or two of "
            "one name. That only the costliest stages, findings and executors of a run have series is as it "
            "should be, and not in it. Added up over snapshots: a series that is left out for an hour counts "
            "once for each.",
            "short",
            value_query(in_range("spark_exporter_series_dropped_total", AS_IT_SHOULD_BE)),
            width=3,
            limits=odd,
            decimals=0,
        ),
        stat(
            "Store",
            "Whether what survives a restart can be read and written. While it is not, series by name are "
            "left out.",
            "none",
            value_query(f"min({series('spark_exporter_storage_up')})"),
            mappings=yes_no("works", "in trouble"),
            width=3,
        ),
        stat(
            "Configuration",
            "Whether the configuration, and the file of the web end with its certificates, were taken when they "
            "were last read. Where they were not, those before are in force, and a restart would fail.",
            "none",
            value_query(
                f"min({series('spark_exporter_config_last_reload_successful')}) "
                f"* (min({series('spark_exporter_web_config_last_reload_successful')}) or vector(1))"
            ),
            mappings=yes_no("taken", "not taken"),
            width=3,
        ),
    ]


def _coverage() -> list:
    def column(metric: str, function: str = "min"):
        return table_query(f"{function} by (instance, {TARGETS}) ({newest(metric, CLUSTER)})")

    return [
        table(
            "Sources",
            "Each source that an exporter reads. Last answer: how long ago it answered, at the end of the time "
            "range. Cycle: how long the latest one took.",
            [
                column("spark_exporter_target_up"),
                table_query(
                    f"time() - max by (instance, {TARGETS}) ({newest('spark_exporter_target_last_success_timestamp_seconds', CLUSTER)})"
                ),
                column("spark_exporter_target_scrape_duration_seconds"),
                column("spark_exporter_target_event_logs"),
                column("spark_exporter_target_event_logs_followed"),
                table_query(
                    f"sum by (instance, {TARGETS}) (increase({series('spark_exporter_target_event_log_read_bytes_total', CLUSTER)}[$__range]))"
                ),
            ],
            [
                Column("instance", "Exporter", width=170),
                Column("spark_cluster", "Cluster", width=120),
                Column("target", "Source"),
                Column("#A", "State", mappings=yes_no("up", "down"), width=80),
                Column("#B", "Last answer, ago", unit="s", width=130, decimals=0),
                Column("#C", "Cycle", unit="s", width=90, decimals=2),
                Column("#D", "Event logs", unit="short", width=100),
                Column("#E", "Followed", unit="short", width=90),
                Column("#F", "Read of logs", unit="bytes", width=110),
            ],
            "Last answer, ago",
            width=16,
            filterable=True,
            no_value="",
        ),
        timeseries(
            "Runs not covered, by reason",
            "Runs that sources showed in their latest cycle and that have no series. limit: more than "
            "limits.applications. lookback: ended before read.lookback. unreadable: its log could not be read. "
            "in_progress: a running log that is not followed. running_on_history_server: only its driver knows "
            "it. waiting: its turn will come.",
            "short",
            [graph_query(f"sum by (reason) ({series('spark_exporter_applications_skipped')})", "{{reason}}")],
            width=8,
            height=9,
            stacked=True,
        ),
        table(
            "Shards",
            "Which part of the runs each exporter covers: number and total, as --shard and --total-shards say. "
            "Each number from 0 on should be there once, with the same total. Of other shards: runs that its "
            "sources show and that another exporter covers; a run that two sources show counts twice.",
            [
                table_query(f"max by (instance) ({newest('spark_exporter_shard_ordinal')})"),
                table_query(f"max by (instance) ({newest('spark_exporter_shards')})"),
                table_query(f"max by (instance) ({newest('spark_exporter_applications')})"),
                table_query(f"sum by (instance) ({newest('spark_exporter_applications_elsewhere')})"),
            ],
            [
                Column("instance", "Exporter"),
                Column("#A", "Shard", unit="short", width=90, decimals=0),
                Column("#B", "Of", unit="short", width=90, decimals=0),
                Column("#C", "Runs held", unit="short", width=110),
                Column("#D", "Of other shards", unit="short", width=130),
            ],
            "Shard",
            width=24,
            no_value="",
        ),
        timeline(
            "Sources that answer",
            "Each source over time: green while it answers.",
            [graph_query(f"min by ({TARGETS}) ({series('spark_exporter_target_up', CLUSTER)})", "{{target}}")],
            yes_no("up", "down"),
            height=7,
        ),
        timeseries(
            "Runs held",
            "Runs in the memory of each exporter.",
            "short",
            [graph_query(f"sum by (instance) ({series('spark_exporter_applications')})", "{{instance}}")],
        ),
        timeseries(
            "Runs that came and went",
            "Runs seen for the first time, ended, and given up after their retention.",
            "short",
            [
                graph_query(grown(f"spark_exporter_applications_{name}_total", "job"), name)
                for name in ("appeared", "finished", "expired")
            ],
            bars=True,
        ),
    ]


def _lag() -> list:
    return [
        timeseries(
            "Age of the snapshot",
            "How old the numbers are that a scrape shows: sources are read in the background. It should stay "
            "around the interval between cycles.",
            "s",
            [
                graph_query(
                    f"max by (instance) (time() - {series('spark_exporter_snapshot_timestamp_seconds')})",
                    "{{instance}}",
                )
            ],
            width=8,
        ),
        timeseries(
            "Since a source last answered",
            "The longest time of each cluster. A sawtooth of one cycle is healthy.",
            "s",
            [
                graph_query(
                    "max by (spark_cluster) (time() - "
                    + series("spark_exporter_target_last_success_timestamp_seconds", CLUSTER)
                    + ")",
                    "{{spark_cluster}}",
                )
            ],
            width=8,
        ),
        timeseries(
            "Cycle over a source",
            "How long the latest cycle over each source took. The longest ones grow with what a source shows.",
            "s",
            [
                graph_query(
                    f"topk(10, max by ({TARGETS}) ({series('spark_exporter_target_scrape_duration_seconds', CLUSTER)}))",
                    "{{target}}",
                )
            ],
            width=8,
        ),
        timeseries(
            "How far running applications are behind",
            "Now less the moment that the data of a running application speaks of, the ten that are furthest "
            "behind. Event logs that are followed grow in bursts.",
            "s",
            [
                graph_query(
                    "topk(10, max by (spark_cluster, app_id) (time() - "
                    + series("spark_application_observed_timestamp_seconds", CLUSTER)
                    + "\nand on (spark_cluster, app_id, attempt_id, job, instance)\n"
                    + series("spark_application_state", CLUSTER, 'state="running"')
                    + " == 1))",
                    "{{app_id}}",
                )
            ],
            width=24,
        ),
    ]


def _pod_facts() -> list:
    submission = "spark_cluster, k8s_namespace_name, submission, state"

    def of_each(metric: str) -> str:
        return f"max by ({submission}) ({newest(metric, CLUSTER)})"

    return [
        table(
            "SparkApplications to look at",
            "Resources of an operator whose driver waits, failed, is started again, or could not be submitted at "
            "all (then no run of it shows anywhere). Started: how often its driver was. Since: how long ago its "
            "newest attempt was submitted.",
            [
                table_query(of_each("spark_exporter_kubernetes_submission_attempts")),
                table_query(
                    f"time() - {of_each('spark_exporter_kubernetes_submission_timestamp_seconds')}"
                ),
            ],
            [
                Column("spark_cluster", "Cluster", width=120),
                Column("k8s_namespace_name", "Namespace", width=200),
                Column("submission", "SparkApplication"),
                Column("state", "State", width=140),
                Column("#A", "Started", unit="short", width=90),
                Column("#B", "Since", unit="s", width=120, decimals=0),
            ],
            width=16,
        ),
        timeseries(
            "SparkApplications, by what their operator says",
            "Of those that are there. submission_failed: no driver ever ran.",
            "short",
            [
                graph_query(
                    f"sum by (state) ({series('spark_exporter_kubernetes_submissions', CLUSTER)})", "{{state}}"
                )
            ],
            width=8,
            height=9,
            stacked=True,
        ),
        timeseries(
            "What pods told after their run was read",
            "Runs that were judged anew, since Kubernetes told more of them; and what it told that had to be "
            "forgotten for want of room, so that outcomes and causes may be less certain.",
            "short",
            [
                graph_query(grown("spark_exporter_kubernetes_runs_amended_total", "job"), "judged anew"),
                graph_query(grown("spark_exporter_kubernetes_facts_forgotten_total", "job"), "forgotten"),
            ],
            width=24,
            bars=True,
            overrides=[fixed("judged anew", QUIET), fixed("forgotten", WARNING)],
        ),
    ]


def _errors() -> list:
    return [
        timeseries(
            "Failed requests to Spark",
            "Requests that failed, by how they failed. The exporter's log says which ones and why.",
            "reqps",
            [graph_query(per_second("spark_exporter_fetch_errors_total", "kind"), "{{kind}}")],
            width=8,
        ),
        timeseries(
            "Event logs that could not be read",
            "By reason. Their runs have no series from the log.",
            "short",
            [
                graph_query(grown("spark_exporter_event_log_read_failures_total", "reason"), "{{reason}}")
            ],
            width=8,
            bars=True,
        ),
        timeseries(
            "What was skipped within logs",
            "Lines that are no event, too long or cut, and events of a kind that this version does not know "
            "(no fault in itself).",
            "short",
            [
                graph_query(grown("spark_exporter_event_log_bad_lines_total", "job"), "bad lines"),
                graph_query(grown("spark_exporter_event_log_unknown_events_total", "job"), "unknown events"),
            ],
            width=8,
            bars=True,
            overrides=[fixed("bad lines", WARNING), fixed("unknown events", QUIET)],
        ),
        timeseries(
            "Connections refused or broken",
            "At the exporter's own web end, by reason.",
            "short",
            [graph_query(grown("spark_exporter_http_failures_total", "reason"), "{{reason}}")],
            width=8,
            bars=True,
        ),
        timeseries(
            "Two runs with one id",
            "Runs that carry the id of another run: their sources need different cluster names, or two runs "
            "are taken for one.",
            "short",
            [graph_query(grown("spark_exporter_identity_collisions_total", "instance"), "{{instance}}")],
            width=8,
            bars=True,
        ),
        timeseries(
            "Runs added up under _other",
            "Names beyond limits.app_names: their runs have no series by name of their own. Raise the limit, or "
            "join names by names.rules.",
            "short",
            [graph_query(grown("spark_exporter_app_names_overflowed_total", "instance"), "{{instance}}")],
            width=8,
            bars=True,
        ),
    ]


def _politeness() -> list:
    return [
        timeseries(
            "Requests to Spark",
            "By what is asked for, failed ones included. A driver is asked at most every 10 s, a History "
            "Server twice a cycle.",
            "reqps",
            [graph_query(per_second("spark_exporter_fetch_requests_total", "endpoint"), "{{endpoint}}")],
            width=8,
            stacked=True,
        ),
        timeseries(
            "Bytes that Spark sent",
            "Bodies of answers, by what was asked for.",
            "Bps",
            [graph_query(per_second("spark_exporter_fetched_bytes_total", "endpoint"), "{{endpoint}}")],
            width=8,
            stacked=True,
        ),
        timeseries(
            "How finished runs of History Servers are read",
            "From their event log (zip), which costs the server little; by its REST API instead (rest), which "
            "makes it replay the log; or not at all this time (none).",
            "short",
            [graph_query(grown("spark_exporter_history_server_reads_total", "route"), "{{route}}")],
            width=8,
            bars=True,
            overrides=[fixed("zip", OK), fixed("rest", WARNING), fixed("none", CRITICAL)],
        ),
        timeseries(
            "Bytes of event logs read",
            "As they lie in their place (read), and decompressed.",
            "Bps",
            [
                graph_query(per_second("spark_exporter_target_event_log_read_bytes_total", "job"), "read"),
                graph_query(per_second("spark_exporter_event_log_decompressed_bytes_total", "job"), "decompressed"),
            ],
            width=8,
        ),
        timeseries(
            "Event logs and lines read",
            "Logs read a second, and their lines.",
            "short",
            [
                graph_query(per_second("spark_exporter_event_log_reads_total", "job"), "logs"),
                graph_query(per_second("spark_exporter_event_log_lines_total", "job"), "lines"),
            ],
            width=8,
        ),
        timeseries(
            "Requests to the exporter",
            "Scrapes, pages and API calls that it answered, by path and status.",
            "reqps",
            [graph_query(per_second("spark_exporter_http_requests_total", "path, code") + " > 0", "{{path}} {{code}}")],
            width=8,
        ),
    ]


def _size() -> list:
    return [
        timeseries(
            "Series",
            "Series of the exposition of each exporter. limits.series is the most that it shows.",
            "short",
            [graph_query(f"sum by (instance) ({series('spark_exporter_series')})", "{{instance}}")],
            width=8,
        ),
        timeseries(
            "Series dropped",
            "Series left out of snapshots, by the limit that was reached, a second. Costliest stages, findings "
            "and executors are kept, so *_limit of those is no loss of importance; series_limit is.",
            "short",
            [graph_query(per_second("spark_exporter_series_dropped_total", "reason") + " > 0", "{{reason}}")],
            width=8,
        ),
        timeseries(
            "Scrape",
            "How long Prometheus takes to scrape each exporter. Its timeout is 10 s where nobody set another.",
            "s",
            [
                graph_query(
                    f"max by (instance) ({series('scrape_duration_seconds')}\nand on (job, instance)\n{series('spark_exporter_build_info')})",
                    "{{instance}}",
                )
            ],
            width=8,
        ),
        table(
            "Versions",
            "Which version runs where, and since when.",
            [
                table_query(f"max by (instance, version, revision) ({newest('spark_exporter_build_info')})"),
                table_query(f"1000 * max by (instance) ({newest('spark_exporter_start_timestamp_seconds')})"),
                table_query(f"max by (instance) ({newest('spark_exporter_series')})"),
            ],
            [
                Column("instance", "Exporter"),
                Column("version", "Version", width=120),
                Column("revision", "Commit", width=160),
                Column("#B", "Runs since", unit="dateTimeAsLocal", width=180),
                Column("#C", "Series", unit="short", width=100),
            ],
            "Exporter",
            ascending=True,
            height=6,
            no_value="",
        ),
    ]


def _store() -> list:
    def of(metric: str, legend: str = "{{instance}}"):
        return graph_query(f"max by (instance) ({series(metric)})", legend)

    return [
        timeseries(
            "Runs that wait to be written",
            "Runs that were read and are not in the store yet. More than a handful for more than a minute: the "
            "store is in trouble, and they are counted once it works again.",
            "short",
            [of("spark_exporter_storage_pending_runs")],
            width=8,
        ),
        timeseries(
            "Troubles of the store",
            "Times it could not be opened, read or written. unusable: damaged, foreign or newer, somebody has "
            "to look. unavailable: not at that time.",
            "short",
            [
                graph_query(grown("spark_exporter_storage_failures_total", "reason"), "{{reason}}"),
            ],
            width=8,
            bars=True,
            overrides=[fixed("unusable", CRITICAL), fixed("unavailable", WARNING)],
        ),
        timeseries(
            "Size of the store",
            "Its file or tables, or what its runs take in memory.",
            "bytes",
            [of("spark_exporter_storage_size_bytes")],
            width=8,
        ),
        timeseries(
            "What is in it",
            "Runs, and names of applications with totals.",
            "short",
            [
                of("spark_exporter_storage_runs", "runs, {{instance}}"),
                of("spark_exporter_storage_names", "names, {{instance}}"),
            ],
        ),
        timeseries(
            "Runs that left it",
            "Older than storage.retention.time, or the oldest beyond storage.retention.size.",
            "short",
            [graph_query(grown("spark_exporter_storage_runs_forgotten_total", "instance"), "{{instance}}")],
            bars=True,
        ),
    ]


def _kubernetes() -> list:
    def gauge(metric: str, by: str):
        return graph_query(f"sum by ({by}) ({series(metric, CLUSTER)})", "{{" + by + "}}")

    return [
        timeseries(
            "Drivers by state",
            "Pods of drivers by what became of asking them. silent: the pod runs and its driver does not answer. "
            "idle: a notebook without a session. waiting: the pod does not run yet. limit: more than "
            "limits.applications.",
            "short",
            [gauge("spark_exporter_kubernetes_drivers", "state")],
            width=8,
            height=9,
            stacked=True,
        ),
        timeline(
            "What is watched",
            "Each kind of object over time: green while it is watched in every namespace asked for. Without "
            "driver_pods and client_mode_pods drivers stay unseen; the others only add to what is known.",
            [
                graph_query(
                    f"min by (spark_cluster, kind) ({series('spark_exporter_kubernetes_watch_up', CLUSTER)})",
                    "{{spark_cluster}} {{kind}}",
                )
            ],
            yes_no("up", "down"),
            width=16,
            height=9,
        ),
        timeseries(
            "Lists and watches that failed",
            "Each try, by reason. forbidden: the service account lacks list or watch. expired: the server "
            "forgot where the watch stood, no fault in itself.",
            "short",
            [
                graph_query(
                    grown("spark_exporter_kubernetes_watch_failures_total", "kind, reason", CLUSTER) + " > 0",
                    "{{kind}} {{reason}}",
                )
            ],
            width=8,
            bars=True,
        ),
        timeseries(
            "Lists",
            "A watch begins with a list, and again after each failure.",
            "short",
            [graph_query(grown("spark_exporter_kubernetes_lists_total", "kind", CLUSTER), "{{kind}}")],
            width=8,
            bars=True,
        ),
        timeseries(
            "Drivers that came, and fell silent",
            "Drivers that began to be asked, and times that one was found silent.",
            "short",
            [
                graph_query(
                    grown(f"spark_exporter_kubernetes_drivers_{what}_total", "spark_cluster", CLUSTER),
                    "{{spark_cluster}} " + what,
                )
                for what in ("found", "silenced")
            ],
            width=8,
            bars=True,
        ),
        timeseries(
            "Objects",
            "What is known, ended pods included as long as the server keeps them.",
            "short",
            [gauge("spark_exporter_kubernetes_objects", "kind")],
            width=24,
        ),
    ]


def _otlp() -> list:
    def of(metric: str, what: str):
        return graph_query(grown(metric, "signal"), f"{{{{signal}}}} {what}")

    return [
        timeseries(
            "Requests by OTLP",
            "By what became of them. refused: never to be taken, what was in them is lost. given_up: not taken in "
            "time; what is sent next makes up for it.",
            "short",
            [graph_query(grown("spark_exporter_otlp_requests_total", "signal, outcome"), "{{signal}} {{outcome}}")],
            width=8,
            bars=True,
        ),
        timeseries(
            "Attempts that failed",
            "By reason; a request has many of them before it is given up.",
            "short",
            [
                graph_query(
                    grown("spark_exporter_otlp_attempt_failures_total", "signal, reason") + " > 0",
                    "{{signal}} {{reason}}",
                )
            ],
            width=8,
            bars=True,
        ),
        timeseries(
            "Since a request was taken",
            "How long the back end has taken nothing. Traces and logs are sent when there are some: between runs "
            "that may be long.",
            "s",
            [
                graph_query(
                    "time() - max by (instance, signal) "
                    f"({series('spark_exporter_otlp_last_success_timestamp_seconds')})",
                    "{{signal}}, {{instance}}",
                )
            ],
            width=8,
        ),
        timeseries(
            "Points, spans and log records",
            "What the back end took; what it left out of requests that it took (rejected), what was in requests "
            "that it refused (lost), and what was never sent, since too much waited or a trace was too large "
            "(dropped).",
            "short",
            [
                of("spark_exporter_otlp_items_sent_total", "sent"),
                of("spark_exporter_otlp_items_rejected_total", "rejected"),
                of("spark_exporter_otlp_items_failed_total", "lost"),
                of("spark_exporter_otlp_items_dropped_total", "dropped"),
            ],
            bars=True,
        ),
        timeseries(
            "Bytes sent by OTLP",
            "Of requests that were taken, before compression, a second.",
            "Bps",
            [graph_query(per_second("spark_exporter_otlp_request_bytes_total", "signal"), "{{signal}}")],
        ),
    ]
