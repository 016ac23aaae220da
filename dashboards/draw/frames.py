"""Columns of values, and what a panel's transformations make of them.

Place: between Prometheus's answers and panels. A frame is what Grafana calls
one: fields of equal length. A transformation that is not here stops the
drawing, since the panel would show something else than Grafana does.
"""

import math
import re
from dataclasses import dataclass, field


@dataclass
class Field:
    name: str
    kind: str  # "time" (milliseconds), "number" or "string"
    values: list
    labels: dict = field(default_factory=dict)
    legend: str = ""  # what legendFormat says
    ref: str = ""

    def called(self):
        """The name that a person sees, and that overrides by name look at."""
        return self.legend or self.name


@dataclass
class Frame:
    fields: list
    ref: str = ""

    def __len__(self):
        return len(self.fields[0].values) if self.fields else 0

    def rows(self, order):
        """The frame with its rows in this order, or only some of them."""
        fields = [Field(**{**one.__dict__, "values": [one.values[i] for i in order]}) for one in self.fields]
        return Frame(fields, self.ref)

    def named(self, name):
        return next((one for one in self.fields if name in (one.name, one.called())), None)


def number(text):
    return float(text)


def legend_of(template, labels, several):
    """What a series is called: legendFormat with its labels, or its labels."""
    if template and template != "__auto":
        return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda found: labels.get(found[1], ""), template)
    rest = {key: value for key, value in labels.items() if key != "__name__"}
    if template == "__auto" and not several and len(rest) == 1:
        return next(iter(rest.values()))
    inner = ", ".join(f'{key}="{value}"' for key, value in sorted(rest.items()))
    return f"{labels.get('__name__', '')}{{{inner}}}" if inner else labels.get("__name__", "Value")


def from_range(series, target):
    frames = []
    for one in series:
        labels = one["metric"]
        times = [moment * 1000 for moment, _ in one["values"]]
        values = [number(text) for _, text in one["values"]]
        legend = legend_of(target.get("legendFormat"), labels, False)
        frames.append(Frame([
            Field("Time", "time", times),
            Field("Value", "number", values, labels, legend, target["refId"]),
        ], target["refId"]))
    return frames


def from_instant(series, target):
    as_range = [{"metric": one["metric"], "values": [one["value"]]} for one in series]
    return from_range(as_range, target)


def as_table(series, target, alone):
    """One frame: a column for each label, and one for the value."""
    names = sorted({key for one in series for key in one["metric"]})
    samples = [(one["metric"], sample) for one in series for sample in one.get("values") or [one["value"]]]
    fields = [Field("Time", "time", [sample[0] * 1000 for _, sample in samples])]
    for name in names:
        fields.append(Field(name, "string", [labels.get(name, "") for labels, _ in samples]))
    value = "Value" if alone else f"Value #{target['refId']}"
    fields.append(Field(value, "number", [number(sample[1]) for _, sample in samples], ref=target["refId"]))
    return [Frame(fields, target["refId"])]


# ---- transformations -------------------------------------------------------


def transformed(frames, transformations):
    for one in transformations:
        if one.get("disabled"):
            continue
        make = TRANSFORMATIONS.get(one["id"])
        if make is None:
            raise SystemExit(f"the transformation {one['id']!r} is not drawn")
        frames = make(frames, one.get("options", {}))
    return frames


def merge(frames, _options):
    """Rows of all frames under the union of their columns; rows that agree in
    all columns that both have become one."""
    frames = [frame for frame in frames if len(frame)]
    columns = {}
    rows = []
    for frame in frames:
        for one in frame.fields:
            columns.setdefault(one.name, one)
        for index in range(len(frame)):
            row = {one.name: one.values[index] for one in frame.fields}
            for other in rows:
                shared = row.keys() & other.keys()
                if all(row[key] == other[key] for key in shared) and shared:
                    other.update(row)
                    break
            else:
                rows.append(row)
    fields = [
        Field(**{**one.__dict__, "values": [row.get(name) for row in rows]})
        for name, one in columns.items()
    ]
    return [Frame(fields)] if fields else []


def organize(frames, options):
    excluded = options.get("excludeByName", {})
    included = options.get("includeByName", {})
    index = options.get("indexByName", {})
    renamed = options.get("renameByName", {})
    out = []
    for frame in frames:
        fields = [one for one in frame.fields if not excluded.get(one.called())]
        if included:
            fields = [one for one in fields if included.get(one.called())]
        if index:
            fields.sort(key=lambda one: index.get(one.called(), math.inf))
        for one in fields:
            one.legend = renamed.get(one.called()) or one.legend
        out.append(Frame(fields, frame.ref))
    return out


def sort_by(frames, options):
    for key in reversed(options.get("sort", [])):
        frames = [sorted_frame(frame, key["field"], key.get("desc", False)) for frame in frames]
    return frames


def sorted_frame(frame, name, descending):
    key = frame.named(name)
    if key is None:
        return frame
    present = [index for index, value in enumerate(key.values) if not missing(value)]
    absent = [index for index, value in enumerate(key.values) if missing(value)]
    present.sort(key=lambda index: key.values[index], reverse=descending)
    return frame.rows(present + absent)


def missing(value):
    return value is None or (isinstance(value, float) and math.isnan(value))


def limit(frames, options):
    most = int(options.get("limitField", 10))
    return [frame.rows(range(min(len(frame), most))) for frame in frames]


def filter_fields(frames, options):
    def kept(side, one):
        names = side.get("names", [])
        pattern = side.get("pattern")
        return one.called() in names or bool(pattern and re.search(pattern.strip("/"), one.called()))

    out = []
    for frame in frames:
        fields = frame.fields
        if include := options.get("include"):
            fields = [one for one in fields if kept(include, one)]
        if exclude := options.get("exclude"):
            fields = [one for one in fields if not kept(exclude, one)]
        out.append(Frame(fields, frame.ref))
    return out


def join_by_field(frames, options):
    name, inner = options.get("byField", "Time"), options.get("mode", "outer") == "inner"
    frames = [frame for frame in frames if frame.named(name)]
    if not frames:
        return []
    keys = {}
    for frame in frames:
        for value in frame.named(name).values:
            keys[value] = keys.get(value, 0) + 1
    order = [key for key, count in keys.items() if not inner or count == len(frames)]
    if frames[0].named(name).kind == "time":
        order.sort()
    fields = [Field(**{**frames[0].named(name).__dict__, "values": order})]
    for frame in frames:
        at = {value: index for index, value in enumerate(frame.named(name).values)}
        for one in frame.fields:
            if one is not frame.named(name):
                values = [one.values[at[key]] if key in at else None for key in order]
                fields.append(Field(**{**one.__dict__, "values": values}))
    return [Frame(fields)]


def labels_to_fields(frames, options):
    """Labels become columns; with `valueLabel` one of them names the values."""
    wanted = options.get("keepLabels")
    value_label = options.get("valueLabel")
    out = []
    for frame in frames:
        fields = []
        for one in frame.fields:
            labels = {key: value for key, value in one.labels.items() if not wanted or key in wanted}
            named = labels.pop(value_label, None) if value_label else None
            for key, value in labels.items():
                fields.append(Field(key, "string", [value] * len(frame)))
            fields.append(Field(named or one.name, one.kind, one.values, ref=one.ref, legend="" if named else one.legend))
        out.append(Frame(fields, frame.ref))
    return out


def group_by(frames, options):
    rules = options.get("fields", {})
    out = []
    for frame in frames:
        keys = [one for one in frame.fields if rules.get(one.called(), {}).get("operation") == "groupby"]
        groups = {}
        for index in range(len(frame)):
            groups.setdefault(tuple(one.values[index] for one in keys), []).append(index)
        fields = [Field(**{**one.__dict__, "values": [key[at] for key in groups]}) for at, one in enumerate(keys)]
        for one in frame.fields:
            rule = rules.get(one.called(), {})
            if rule.get("operation") != "aggregate":
                continue
            for calc in rule.get("aggregations", []):
                values = [reduced([one.values[i] for i in rows], calc) for rows in groups.values()]
                fields.append(Field(f"{one.called()} ({calc})", "number", values, ref=one.ref))
        out.append(Frame(fields, frame.ref))
    return out


def reduce_rows(frames, options):
    """Each series becomes a row: its name and the reducers."""
    if options.get("mode", "seriesToRows") != "seriesToRows":
        raise SystemExit("the transformation reduce is drawn in the mode seriesToRows only")
    numbers = [one for frame in frames for one in frame.fields if one.kind == "number"]
    fields = [Field("Field", "string", [one.called() for one in numbers])]
    for calc in options["reducers"]:
        title = {"lastNotNull": "Last *", "max": "Max", "mean": "Mean", "sum": "Total", "min": "Min"}[calc]
        fields.append(Field(title, "number", [reduced(one.values, calc) for one in numbers]))
    return [Frame(fields)]


TRANSFORMATIONS = {
    "merge": merge,
    "organize": organize,
    "sortBy": sort_by,
    "limit": limit,
    "filterFieldsByName": filter_fields,
    "joinByField": join_by_field,
    "labelsToFields": labels_to_fields,
    "groupBy": group_by,
    "reduce": reduce_rows,
}


def reduced(values, calc):
    """One value of many, as a panel's reducer or a legend's column has it."""
    there = [value for value in values if not missing(value)]
    match calc:
        case "lastNotNull":
            return there[-1] if there else None
        case "last":
            return values[-1] if values else None
        case "firstNotNull":
            return there[0] if there else None
        case "count":
            return float(len(values))
        case "allValues" | "uniqueValues":
            return there
        case "distinctCount":
            return float(len(set(values)))
    if not there:
        return None
    match calc:
        case "max":
            return max(there)
        case "min":
            return min(there)
        case "sum":
            return math.fsum(there)
        case "mean":
            return math.fsum(there) / len(there)
        case "range":
            return max(there) - min(there)
        case "diff":
            return there[-1] - there[0]
    raise SystemExit(f"the calculation {calc!r} is not drawn")
