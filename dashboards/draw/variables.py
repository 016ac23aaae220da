"""The variables of a dashboard: their values, and texts with them put in.

Place: after prometheus.py, whose answers fill lists of values; everything that
reads a text of the dashboard (queries, titles, links) has it put in here first.
"""

import re

# $name, [[name]] and ${name:format} as Grafana writes variables.
REFERENCE = re.compile(r"\$(\w+)|\[\[(\w+)\]\]|\$\{(\w+)(?:\.[^:}]+)?(?::(\w+))?\}")
LABEL_VALUES = re.compile(r"^label_values\((?:(.+),)?\s*(\w+)\)$", re.S)
QUERY_RESULT = re.compile(r"^query_result\((.+)\)$", re.S)


def one_regex(value):
    """A value as a regular expression of Prometheus takes it."""
    return re.sub(r"([\\^$.|?*+()\[\]{}])", r"\\\\\1", value)


class Variables:
    def __init__(self, dashboard, prometheus, given, scrape_seconds):
        """`given`: name to value, instead of the first of its list."""
        range_seconds = int(prometheus.ends - prometheus.begins)
        self.builtin = {
            "__range": f"{range_seconds}s",
            "__range_s": str(range_seconds),
            "__range_ms": str(range_seconds * 1000),
            "__from": str(int(prometheus.begins * 1000)),
            "__to": str(int(prometheus.ends * 1000)),
            "__url_time_range": f"from={int(prometheus.begins * 1000)}&to={int(prometheus.ends * 1000)}",
            "__dashboard": dashboard["title"],
        }
        self.scrape_seconds = scrape_seconds
        self.step(scrape_seconds)
        self.values = {}
        self.labels = {}
        self.prometheus = prometheus
        unknown = set(given) - {one["name"] for one in variables_of(dashboard)}
        if unknown:
            raise SystemExit(f"{dashboard['title']} has no variable {', '.join(sorted(unknown))}")
        for variable in variables_of(dashboard):
            name = variable["name"]
            self.labels[name] = variable.get("label") or name
            self.values[name] = self._value(variable, given.get(name))

    def step(self, seconds):
        """From now on samples are so far apart: each query has its own."""
        # Grafana's own: at least four scrapes, so that rate() finds samples.
        rate = max(seconds + self.scrape_seconds, 4 * self.scrape_seconds)
        self.builtin["__interval"] = f"{seconds}s"
        self.builtin["__interval_ms"] = str(seconds * 1000)
        self.builtin["__rate_interval"] = f"{rate}s"

    def _value(self, variable, given):
        """A text, or a list of texts where several are chosen."""
        kind = variable["type"]
        if kind == "datasource":
            return given or "prometheus"
        if kind in ("textbox", "constant"):
            return given if given is not None else variable.get("query", "")
        if kind == "custom":
            options = [one.strip() for one in variable["query"].split(",")]
        elif kind == "query":
            options = self._options(variable)
        else:
            raise SystemExit(f"variables of type {kind} are not drawn")
        if given is not None:
            return given.split(",") if variable.get("multi") else given
        chosen = (variable.get("current") or {}).get("value")
        all_of_them = "$__all" in (chosen if isinstance(chosen, list) else [chosen])
        if variable.get("includeAll") and (all_of_them or not chosen):
            return [variable["allValue"]] if variable.get("allValue") else (options or [""])
        if kind == "custom" and chosen:
            return chosen
        first = options[0] if options else ""
        return [first] if variable.get("multi") else first

    def _options(self, variable):
        query = variable["query"]
        text = query.get("query", "") if isinstance(query, dict) else query
        text = self.put_into(text).strip()
        if found := LABEL_VALUES.match(text):
            selector, label = found.groups()
            if selector:
                values = {one[label] for one in self.prometheus.series(selector) if label in one}
            else:
                values = set(self.prometheus.label_values(label))
        elif found := QUERY_RESULT.match(text):
            values = set()
            for one in self.prometheus.instant(found[1]):
                labels = dict(one["metric"])
                name = labels.pop("__name__", "")
                inner = ",".join(f'{key}="{value}"' for key, value in labels.items())
                values.add(f"{name}{{{inner}}} {one['value'][1]} {int(one['value'][0] * 1000)}")
        else:
            raise SystemExit(f"variable {variable['name']}: a query like {text!r} is not drawn")
        if pattern := variable.get("regex"):
            found = (re.search(pattern.strip("/"), value) for value in sorted(values))
            values = {(one[1] if one.re.groups else one[0]) for one in found if one}
        ordered = sorted(values)
        # Grafana: 2 is alphabetical descending, 4 numerical descending, 3 numerical.
        sort = variable.get("sort", 0)
        if sort in (3, 4):
            ordered.sort(key=lambda value: float(re.search(r"\d+(\.\d+)?", value)[0]))
        return ordered[::-1] if sort in (2, 4) else ordered

    def put_into(self, text, more=None):
        """The text with values in place of variables. `more`: values of a row
        or a series, such as __data.fields.x, whole names in ${…} only."""
        if not text:
            return text
        for name, value in (more or {}).items():
            text = text.replace("${" + name + "}", value)

        def value(found):
            name = found[1] or found[2] or found[3]
            if name in self.builtin:
                return self.builtin[name]
            if name not in self.values:
                return found[0]
            return formatted(self.values[name], found[4])

        return REFERENCE.sub(value, text)


def variables_of(dashboard):
    return dashboard.get("templating", {}).get("list", [])


def formatted(value, form):
    """A variable's value as `${name:form}` has it; in a query several values
    are one regular expression."""
    several = value if isinstance(value, list) else [value]
    if form in (None, "regex"):
        if not isinstance(value, list):
            return value if form is None else one_regex(value)
        # What a list is made of may be a pattern of its own (allValue).
        if len(several) == 1:
            return several[0] if several[0] in (".*", ".+") else one_regex(several[0])
        return "(" + "|".join(map(one_regex, several)) + ")"
    if form == "raw":
        return ",".join(several)
    if form == "pipe":
        return "|".join(several)
    if form in ("csv", "text"):
        return ",".join(several)
    if form == "queryparam":
        raise SystemExit("the format queryparam is not drawn")
    if form == "percentencode":
        return ",".join(several)
    raise SystemExit(f"the format {form} of a variable is not drawn")
