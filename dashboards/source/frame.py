"""What all dashboards have in common: variables, links, and how one leads to
the next with run and time kept."""

from grafana_foundation_sdk.builders import dashboard as builder
from grafana_foundation_sdk.models import dashboard as model

from look import CRITICAL, INFO
from panels import DATASOURCE
from query import RUN, now, series

DOCS = "https://github.com/spark-exporter/spark-exporter/blob/main/docs"
TAGS = ["spark", "spark-exporter"]

ALL = model.VariableOption(selected=True, text="All", value="$__all")


def _query_variable(
    name: str,
    label: str,
    query: str,
    multi: bool,
    all_value: str | None,
    sort: model.VariableSort,
    description: str,
    hide: bool = False,
):
    variable = (
        builder.QueryVariable(name)
        .label(label)
        .description(description)
        .datasource(DATASOURCE)
        .query(query)
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(sort)
        .multi(multi)
        .include_all(all_value is not None)
    )
    if all_value is not None:
        variable.all_value(all_value).current(ALL)
    if hide:
        variable.hide(model.VariableHide.HIDE_VARIABLE)
    return variable


def _text_box(name: str, label: str, default: str, description: str):
    return (
        builder.TextBoxVariable(name)
        .label(label)
        .description(description)
        .default_value(default)
        .current(model.VariableOption(selected=True, text=default, value=default))
    )


def values_of(metric: str, label: str, *matchers: str) -> str:
    return f"label_values({series(metric, *matchers)}, {label})"


ASCENDING = model.VariableSort.ALPHABETICAL_ASC
DESCENDING = model.VariableSort.ALPHABETICAL_DESC
NUMBERS = model.VariableSort.NUMERICAL_ASC


def variables(*names: str) -> list:
    """Those that every dashboard has, and these."""
    info = "spark_application_info"
    cluster = 'spark_cluster=~"$spark_cluster"'
    run = f'{cluster}, app_id="$app_id", attempt_id=~"$attempt_id"'
    # A job is chosen on Job; on the others it narrows the list of runs.
    one_name = "app_name" in names
    made = {
        "spark_cluster": _query_variable(
            "spark_cluster", "Cluster", values_of(info, "spark_cluster"),
            True, ".+", ASCENDING,
            "Name of the cluster, as the exporter's configuration has it.",
        ),
        "app_name": _query_variable(
            "app_name", "Name", values_of("spark_application_runs_total", "app_name", cluster),
            False, None, ASCENDING,
            "Name of a job: Spark's application name without dates and ids.",
        ),
        "any_app_name": _query_variable(
            "app_name", "Name", values_of(info, "app_name", cluster),
            True, ".+", ASCENDING,
            "Narrows the list of runs to those of a job.",
        ),
        "app_id": _query_variable(
            "app_id", "Run",
            values_of(info, "app_id", cluster, "" if one_name else 'app_name=~"$app_name"'),
            False, None, DESCENDING,
            "Spark's id of the application. Runs that were seen within the time range.",
        ),
        "attempt_id": _query_variable(
            "attempt_id", "Attempt",
            values_of(info, "attempt_id", cluster, 'app_id="$app_id"'),
            False, ".*", NUMBERS,
            "Where the resource manager started the application more than once.",
        ),
        "stage_id": _query_variable(
            "stage_id", "Stage", values_of("spark_stage_status", "stage_id", run),
            False, None, NUMBERS,
            "The costliest stages of the run have series (limits.stages_exported).",
        ),
        "stage_attempt_id": _query_variable(
            "stage_attempt_id", "Stage attempt",
            values_of("spark_stage_status", "stage_attempt_id", run, 'stage_id="$stage_id"'),
            False, ".+", NUMBERS,
            "Where Spark ran the stage more than once.",
        ),
        # A second variable of data sources is one more than linters allow.
        "tempo": _text_box(
            "tempo", "Tempo's uid", "tempo",
            "Uid of the Tempo data source that has the traces, where the exporter sends some.",
        ),
        "stream_app_id": _query_variable(
            "app_id", "Run",
            values_of("spark_streaming_query_active", "app_id", cluster),
            False, ".+", DESCENDING,
            "Applications with streaming queries.",
        ),
        "query_id": _query_variable(
            "query_id", "Query",
            values_of("spark_streaming_query_active", "query_id", cluster, 'app_id=~"$app_id"'),
            True, ".+", ASCENDING,
            "Spark's id of a streaming query: it stays when the query is started anew.",
        ),
    }
    head = [
        builder.DatasourceVariable("datasource")
        .label("Data source")
        .description("The Prometheus that scrapes the exporter.")
        .type("prometheus"),
        _query_variable(
            "job", "Job", "label_values(spark_exporter_build_info, job)", True, ".+", ASCENDING,
            "Prometheus' job of the exporter.",
        ),
        _query_variable(
            "instance", "Instance",
            'label_values(spark_exporter_build_info{job=~"$job"}, instance)', True, ".+", ASCENDING,
            "The exporters to look at. Two that show the same runs are not added up.",
        ),
    ]
    exporter = _text_box(
        "exporter", "Exporter's pages", "http://localhost:10404",
        "Where people reach the exporter's own pages: evidence and advice are there.",
    )
    return [*head, *[made[name] for name in names], exporter]


def dashboard(name: str, title: str, description: str, variables: list, since: str = "now-24h"):
    made = (
        builder.Dashboard(title)
        .uid(f"spark-exporter-{name}")
        .description(description)
        .tags(TAGS)
        .readonly()
        .timezone("browser")
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
        .refresh("1m")
        .time(since, "now")
        .variables(variables)
    )
    made.link(
        builder.DashboardLink("Spark")
        .type(model.DashboardLinkType.DASHBOARDS)
        .tags(["spark-exporter"])
        .tooltip("The other dashboards, with what is chosen here")
        .include_vars(True)
        .keep_time(True)
    )
    return made


class _Annotation(model.AnnotationQuery):
    """An annotation of Prometheus has a title and a step, which the SDK's type
    leaves out."""

    def __init__(self, title: str, **fields) -> None:
        super().__init__(**fields)
        self.title = title

    def build(self) -> model.AnnotationQuery:
        return self

    def to_json(self) -> dict[str, object]:
        return {**super().to_json(), "titleFormat": self.title, "step": "60s"}


def annotation(name: str, color: str, title: str, expression: str) -> _Annotation:
    """Marks the times at which the expression has a value that is not 0;
    neighbours become one region."""
    return _Annotation(
        title, name=name, datasource=DATASOURCE, enable=True, icon_color=color, expr=expression
    )


def filled(made: builder.Dashboard, head: list, rows: dict[str, list]) -> builder.Dashboard:
    """With these panels: first what is seen at once, then rows by their titles."""
    for panel in head:
        made.with_panel(panel)
    for title, panels in rows.items():
        made.with_row(builder.Row(title))
        for panel in panels:
            made.with_panel(panel)
    return made


def ended_badly(*matchers: str, of=lambda expression: expression) -> _Annotation:
    """For five minutes after the end of each, so that old runs which are read
    again mark nothing."""
    state = now("spark_application_state", f"{RUN}, state", *matchers, 'state=~"failed|lost|unknown"') + " == 1"
    # Unknown (Spark 3) is bad where the run went down with a job.
    died = now("spark_finding", RUN, *matchers, 'rule=~"job_failed|application_failed", severity="critical"')
    unknown = now("spark_application_state", RUN, *matchers, 'state="unknown"') + " == 1"
    bad = f"({state})\nunless on ({RUN})\n(({unknown}) unless on ({RUN}) {died})"
    recent = f"time() - {now('spark_application_observed_timestamp_seconds', RUN, *matchers)} < 300"
    return annotation(
        "Ended badly", CRITICAL, "{{app_id}} {{state}}", of(f"{bad}\nand on ({RUN})\n({recent})")
    )


def runs(*matchers: str, of=lambda expression: expression) -> _Annotation:
    running = now("spark_application_state", RUN, *matchers, 'state="running"')
    return annotation("Runs", INFO, "{{app_id}} runs", of(f"{running} == 1"))


def link(title: str, url: str, new_tab: bool = False):
    return _DataLink(title, url, new_tab)


class _DataLink:
    """A data link has three fields; the SDK's type for it is that of links
    between dashboards, whose other fields mean nothing here."""

    def __init__(self, title: str, url: str, new_tab: bool) -> None:
        self.made = {"title": title, "url": url, "targetBlank": new_tab}

    def build(self) -> dict:
        return self.made


def field(name: str) -> str:
    """The value of this column in the row of a link."""
    return "${__data.fields." + name + ":percentencode}"


def label(name: str) -> str:
    """The value of this label of the series of a link."""
    return "${__field.labels." + name + ":percentencode}"


# Kept by every link: the time, and where the data comes from.
KEPT = "${__url_time_range}&${datasource:queryparam}&${job:queryparam}&${instance:queryparam}&${exporter:queryparam}"


def to(name: str, slug: str, values: dict[str, str]) -> str:
    pairs = "".join(f"&var-{variable}={value}" for variable, value in values.items())
    return f"/d/spark-exporter-{name}/{slug}?{KEPT}{pairs}"


def to_application(of=field):
    values = {key: of(key) for key in ("spark_cluster", "app_id", "attempt_id")}
    return link("This run", to("application", "spark-application", values))


def to_job(of=field):
    values = {key: of(key) for key in ("spark_cluster", "app_name")}
    return link("All runs of this job", to("job", "spark-job", values))


def to_stage(of=field):
    keys = ("spark_cluster", "app_id", "attempt_id", "stage_id", "stage_attempt_id")
    return link("This stage", to("stage", "spark-stage", {key: of(key) for key in keys}))


def to_report(of=field, anchor: str = ""):
    """The exporter's own page about a run. An attempt that is empty leaves a
    slash at the end, which the exporter takes."""
    path = "/".join(of(key) for key in ("spark_cluster", "app_id", "attempt_id"))
    place = f"#{of(anchor)}" if anchor else ""
    return link("Evidence and advice", "${exporter:raw}/applications/" + path + place, True)


def to_trace(of=field):
    """Explore with the run's trace, from a Tempo that the exporter sends to."""
    source = '{"type":"tempo","uid":"${tempo:raw}"}'
    query = f'{{"refId":"A","datasource":{source},"queryType":"traceql","query":"{of("trace_id")}"}}'
    span = '{"from":"${__from}","to":"${__to}"}'
    panes = f'{{"run":{{"datasource":"${{tempo:raw}}","queries":[{query}],"range":{span}}}}}'
    return link("Its trace, where traces are sent", f"/explore?schemaVersion=1&panes={panes}", True)


def to_rule(of=field):
    return link("What the rule rests on", f"{DOCS}/diagnostics.md#{of('rule')}", True)
