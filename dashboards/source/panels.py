"""Panels, each with what every panel must have: a title, a description that
says how to read it, a unit, the data source that was chosen."""

from grafana_foundation_sdk.builders import (
    bargauge,
    common as common_builders,
    prometheus,
    stat as stat_builder,
    statetimeline,
    table as table_builder,
    text as text_builder,
    timeseries as timeseries_builder,
)
from grafana_foundation_sdk.models import common, dashboard as model

from look import QUIET, SEVERITIES, ranked, steps
from query import last

DATASOURCE = model.DataSourceRef(type_val="prometheus", uid="${datasource}")


class Made:
    """A builder's result that is a builder again, where the SDK asks for one."""

    def __init__(self, made: object) -> None:
        self.made = made

    def build(self) -> object:
        return self.made


def graph_query(expression: str, legend: str) -> prometheus.Dataquery:
    """Over time."""
    return (
        prometheus.Dataquery()
        .datasource(DATASOURCE)
        .expr(expression)
        .range()
        .legend_format(legend)
    )


def value_query(expression: str, legend: str = "") -> prometheus.Dataquery:
    """At the end of the time range."""
    query = prometheus.Dataquery().datasource(DATASOURCE).expr(expression).instant()
    return query.legend_format(legend or "__auto")


def table_query(expression: str) -> prometheus.Dataquery:
    """At the end of the time range, labels as columns."""
    from grafana_foundation_sdk.models import prometheus as prometheus_model

    return value_query(expression).format(prometheus_model.PromQueryFormat.TABLE)


def last_columns(by: str, scope: str):
    """Makes the queries of a table of such subjects: the last value of a metric."""

    def column(metric: str, *matchers: str):
        return table_query(last(metric, by, scope, *matchers))

    return column


def _begin(panel, title: str, description: str, unit: str, width: int, height: int, queries: list):
    panel = (
        panel.title(title)
        .description(description)
        .unit(unit)
        .datasource(DATASOURCE)
        .span(width)
        .height(height)
    )
    for place, query in enumerate(queries):
        panel.with_target(query.ref_id(chr(ord("A") + place)))
    return panel


def fixed(name: str, color: str) -> dict:
    """An override: the series of this name has this colour."""
    return {"name": name, "properties": {"color": {"mode": "fixed", "fixedColor": color}}}


def limit_line(name: str) -> dict:
    """An override: this series is a limit, drawn as a dashed line without area."""
    return {
        "name": name,
        "properties": {
            "color": {"mode": "fixed", "fixedColor": SEVERITIES["warning"]},
            "custom.lineStyle": {"fill": "dash", "dash": [8, 6]},
            "custom.fillOpacity": 0,
            "custom.lineWidth": 2,
            "custom.stacking": {"mode": "none", "group": "A"},
        },
    }


def _override(panel, overrides: list[dict]):
    for override in overrides:
        properties = [
            model.DynamicConfigValue(id_val=name, value=value)
            for name, value in override["properties"].items()
        ]
        if "regex" in override:
            panel.override_by_regexp(override["regex"], properties)
        else:
            panel.override_by_name(override["name"], properties)
    return panel


# Half an hour a bar in a day. None is shorter than four scrapes of most
# Prometheuses: increase() would count into its neighbours.
BARS = 48
SHORTEST_BAR = "2m"


def timeseries(
    title: str,
    description: str,
    unit: str,
    queries: list,
    width: int = 12,
    height: int = 8,
    stacked: bool = False,
    bars: bool = False,
    overrides: list[dict] = (),
    links: list = (),
    minimum: float | None = 0,
    legend_values: tuple[str, ...] = (),
):
    panel = _begin(timeseries_builder.Panel(), title, description, unit, width, height, queries)
    panel.line_width(1 if stacked else 2).fill_opacity(60 if stacked else 8)
    panel.show_points(common.VisibilityMode.AUTO)
    # Runs come and go: a gap is a gap.
    panel.insert_nulls(False)
    if bars:
        panel.draw_style(common.GraphDrawStyle.BARS).fill_opacity(80).line_width(0)
        panel.max_data_points(BARS)
    if stacked:
        stacking = common_builders.StackingConfig().mode(common.StackingMode.NORMAL).group("A")
        panel.stacking(stacking)
    if minimum is not None:
        panel.min(minimum)
    legend = (
        common_builders.VizLegendOptions()
        .show_legend(True)
        .placement(common.LegendPlacement.BOTTOM)
        .display_mode(common.LegendDisplayMode.TABLE if legend_values else common.LegendDisplayMode.LIST)
        .calcs(list(legend_values))
    )
    panel.legend(legend)
    tooltip = common_builders.VizTooltipOptions()
    panel.tooltip(tooltip.mode(common.TooltipDisplayMode.MULTI).sort(common.SortOrder.DESCENDING))
    if links:
        panel.data_links(list(links))
    return _override(panel, list(overrides))


def stat(
    title: str,
    description: str,
    unit: str,
    query,
    width: int = 4,
    height: int = 4,
    mappings: list = (),
    limits: model.ThresholdsConfig | None = None,
    field: str = "",
    no_value: str = "none",
    links: list = (),
    decimals: int | None = None,
    named: bool = False,
):
    """One number, or with `field` the word of that label."""
    panel = _begin(
        stat_builder.Panel(), title, description, "string" if field else unit, width, height, [query]
    )
    panel.graph_mode(common.BigValueGraphMode.NONE)
    colors = bool(mappings) or limits is not None
    panel.color_mode(common.BigValueColorMode.VALUE if colors else common.BigValueColorMode.NONE)
    panel.text_mode(common.BigValueTextMode.VALUE_AND_NAME if named else common.BigValueTextMode.AUTO)
    reduce = common_builders.ReduceDataOptions().calcs(["lastNotNull"]).values(bool(field))
    panel.reduce_options(reduce.fields(f"/^{field}$/" if field else ""))
    panel.no_value(no_value)
    if decimals is not None:
        panel.decimals(decimals)
    if mappings:
        panel.mappings(list(mappings))
    panel.thresholds(Made(limits or steps((None, QUIET))))
    if links:
        panel.data_links(list(links))
    return panel


def bars(
    title: str,
    description: str,
    unit: str,
    queries: list,
    width: int = 12,
    height: int = 8,
    overrides: list[dict] = (),
    limits: model.ThresholdsConfig | None = None,
    links: list = (),
):
    """A horizontal bar each series, its name on the left."""
    panel = _begin(bargauge.Panel(), title, description, unit, width, height, queries)
    panel.orientation(common.VizOrientation.HORIZONTAL)
    panel.display_mode(common.BarGaugeDisplayMode.BASIC).show_unfilled(False)
    panel.value_mode(common.BarGaugeValueMode.TEXT)
    panel.reduce_options(common_builders.ReduceDataOptions().calcs(["lastNotNull"]).values(False))
    panel.min(0)
    panel.thresholds(Made(limits or steps((None, SEVERITIES["info"]))))
    if links:
        panel.data_links(list(links))
    return _override(panel, list(overrides))


def timeline(title: str, description: str, queries: list, mappings: list, width: int = 24, height: int = 6):
    """States over time, a row each series."""
    panel = _begin(statetimeline.Panel(), title, description, "none", width, height, queries)
    panel.mappings(mappings).merge_values(True).show_value(common.VisibilityMode.NEVER)
    panel.row_height(0.8).fill_opacity(80).line_width(0)
    legend = common_builders.VizLegendOptions().show_legend(True)
    return panel.legend(
        legend.placement(common.LegendPlacement.BOTTOM).display_mode(common.LegendDisplayMode.LIST)
    )


class Column:
    """A column of a table: a label, or the value of a query (`#A`)."""

    def __init__(
        self,
        name: str,
        title: str,
        unit: str | None = None,
        mappings: list = (),
        links: list = (),
        width: int | None = None,
        hidden: bool = False,
        fill: bool = False,
        decimals: int | None = None,
        gauge: bool = False,
        limits: list[tuple[float | None, str]] = (),
    ) -> None:
        self.name = f"Value {name}" if name.startswith("#") else name
        self.properties: dict[str, object] = {"displayName": title}
        # Labels are words, though some look like numbers.
        self.properties["unit"] = unit or ("none" if name.startswith("#") else "string")
        if decimals is not None:
            self.properties["decimals"] = decimals
        if mappings:
            self.properties["mappings"] = list(mappings)
        # A word without a colour of its own would get that of the lowest threshold.
        if any(result.color for mapping in mappings for result in mapping.options.values()):
            self.properties["custom.cellOptions"] = (
                {"type": "color-background", "mode": "basic"} if fill else {"type": "color-text"}
            )
        if limits:
            self.properties["thresholds"] = steps(*limits)
            self.properties["custom.cellOptions"] = {"type": "color-text"}
        if gauge:
            self.properties["custom.cellOptions"] = {"type": "gauge", "mode": "basic"}
            self.properties["color"] = {"mode": "fixed", "fixedColor": SEVERITIES["info"]}
        if links:
            self.properties["links"] = [link.build() for link in links]
        if width:
            self.properties["custom.width"] = width
        if hidden:
            self.properties["custom.hidden"] = True


def table(
    title: str,
    description: str,
    queries: list,
    columns: list[Column],
    *sort: str,
    width: int = 24,
    height: int = 9,
    no_value: str = "-",
    filterable: bool = False,
    ascending: bool = False,
):
    """Queries joined on the labels they share; the columns in this order, and
    no others. Columns are named by overrides, so that links still find them by
    the names of their labels."""
    panel = _begin(table_builder.Panel(), title, description, "none", width, height, queries)
    if len(queries) == 1:
        for column in columns:
            column.name = column.name.replace("Value #A", "Value")
    panel.with_transformation(model.DataTransformerConfig(id_val="merge", options={}))
    names = [column.name for column in columns]
    organize = {
        "excludeByName": {},
        "indexByName": {name: place for place, name in enumerate(names)},
        "renameByName": {},
    }
    # What to keep, and not what to leave out: the time, which is the end of the
    # range in every row, or a label that somebody adds makes no column then.
    pattern = "^(" + "|".join(names) + ")$"
    panel.with_transformation(
        model.DataTransformerConfig(
            id_val="filterFieldsByName", options={"include": {"pattern": pattern}}
        )
    )
    panel.with_transformation(model.DataTransformerConfig(id_val="organize", options=organize))
    panel.sort_by(
        [
            common_builders.TableSortByFieldState().display_name(name).desc(not ascending)
            for name in sort
        ]
    )
    panel.show_header(True).cell_height(common.TableCellHeight.SM).no_value(no_value)
    panel.footer(common_builders.TableFooterOptions().show(False).reducer(["sum"]).count_rows(False))
    if filterable:
        for column in columns:
            column.properties["custom.filterable"] = True
    return _override(
        panel, [{"name": column.name, "properties": column.properties} for column in columns]
    )


def severity_column() -> Column:
    """Of a first query whose values are ranks of severities."""
    return Column("#A", "Severity", mappings=ranked(), fill=True, width=90)


def text(title: str, content: str, width: int = 24, height: int = 4):
    return (
        text_builder.Panel()
        .title(title)
        .description("How to read this dashboard.")
        .mode("markdown")
        .content(content)
        .span(width)
        .height(height)
    )
