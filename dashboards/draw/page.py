"""The page: panels in Grafana's grid, with titles, variables and a foot that
says what this is.

Place: the last step; it asks Prometheus for each panel by way of frames.py and
lets panels.py draw the answers.
"""

import re
import time
from html import escape

import frames
import panels

WIDTH = 1584
GAP = 8
CELL = 30
FOOT = "Drawn from the dashboard's JSON and a real Prometheus's answers, not by Grafana."

STYLE = """
* { box-sizing: border-box; }
body { margin: 0; padding: 8px; width: 1600px; background: #111217; color: #CCCCDC;
  font: 12px Inter, Helvetica, Arial, sans-serif; }
h1 { font-size: 18px; font-weight: 500; margin: 4px 0 8px; }
h1 small { color: #8E8E99; font-weight: 400; font-size: 12px; margin-left: 10px; }
.variables span { display: inline-block; border: 1px solid #2C2E33; background: #181B1F;
  border-radius: 2px; margin: 0 8px 8px 0; }
.variables b { display: inline-block; padding: 5px 8px; background: #22252B; color: #6E9FFF; font-weight: 500; }
.variables i { display: inline-block; padding: 5px 8px; font-style: normal; max-width: 280px;
  overflow: hidden; text-overflow: ellipsis; white-space: nowrap; vertical-align: bottom; }
.variables em { font-style: normal; color: #6E9FFF; margin-right: 12px; }
.grid { position: relative; }
.panel { position: absolute; background: #181B1F; border: 1px solid #24262B; border-radius: 2px; overflow: hidden; }
.panel > header { height: 30px; padding: 8px 8px 0; font-weight: 500; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.panel > div.body { position: absolute; left: 8px; right: 8px; top: 30px; bottom: 8px; overflow: hidden; }
.bare > div.body { top: 8px; }
.none { position: absolute; inset: 0; display: flex; align-items: center; justify-content: center; color: #8E8E99; }
.row { position: absolute; font-size: 14px; font-weight: 500; padding: 6px 4px; }
.tiles { display: flex; gap: 4px; height: 100%; }
.tiles.down { flex-direction: column; }
.tile { flex: 1; position: relative; display: flex; flex-direction: column; justify-content: center;
  align-items: center; border-radius: 2px; overflow: hidden; white-space: nowrap; }
.tile small { font-size: 13px; z-index: 1; }
.tile b { font-weight: 500; line-height: 1.15; z-index: 1; }
.spark { position: absolute; left: 0; bottom: 0; }
table.data { border-collapse: collapse; table-layout: fixed; }
table.data td, table.data th { height: 30px; padding: 0 6px; border-bottom: 1px solid #24262B; white-space: nowrap;
  overflow: hidden; text-overflow: ellipsis; }
table.data th { color: #6E9FFF; font-weight: 500; }
u { color: #6E9FFF; text-decoration: none; }
td[style*="color:"] u { color: inherit; text-decoration: underline; }
.more { color: #8E8E99; padding: 4px; }
.legend { color: #CCCCDC; overflow: hidden; padding-top: 4px; }
.legend span { margin-right: 14px; white-space: nowrap; display: inline-block; line-height: 20px; }
.legend i { display: inline-block; width: 14px; height: 4px; border-radius: 2px; margin-right: 6px; vertical-align: middle; }
.legend b { font-weight: 400; color: #8E8E99; }
.legend table { width: 100%; border-collapse: collapse; }
.legend td, .legend th { padding: 2px 6px; text-align: right; color: #CCCCDC; font-weight: 400; white-space: nowrap; }
.legend th { color: #6E9FFF; }
.legend td:first-child { text-align: left; overflow: hidden; text-overflow: ellipsis; max-width: 200px; }
.beside { display: flex; height: 100%; }
.bar { display: flex; align-items: center; gap: 8px; margin-bottom: 4px; }
.bar > span { flex: none; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.bar > div { flex: 1; height: 100%; min-height: 12px; background: #22252B; border-radius: 2px; overflow: hidden; }
.bar > div i { display: block; height: 100%; min-height: 12px; opacity: .85; }
.bar > b { flex: none; min-width: 70px; text-align: right; font-weight: 500; }
.note { line-height: 1.55; font-size: 13px; }
.note h1, .note h2, .note h3 { margin: 2px 0 6px; font-size: 15px; }
.note ul { margin: 4px 0; padding-left: 20px; }
.note code { background: #22252B; padding: 1px 4px; border-radius: 2px; }
.note td { padding: 2px 10px 2px 0; vertical-align: top; }
footer { color: #8E8E99; padding: 10px 0 4px; }
"""


class Page:
    """What drawing needs to know of the whole: time range and variables."""

    def __init__(self, dashboard, prometheus, variables, scrape_seconds):
        self.dashboard = dashboard
        self.prometheus = prometheus
        self.variables = variables
        self.scrape_seconds = scrape_seconds
        self.begins, self.ends, self.now = prometheus.begins, prometheus.ends, prometheus.ends
        self.empty = []

    def html(self):
        """The page, and its height in pixels."""
        places, height = [], 0
        offset = 0
        for panel in self.dashboard["panels"]:
            place = panel["gridPos"]
            top = (place["y"] + offset) * (CELL + GAP)
            if panel["type"] == "row":
                inside = panel.get("panels") or []
                places.append(self.row(panel, top))
                if panel.get("collapsed") and inside:
                    # In Grafana a person opens it; here it is open.
                    first = min(one["gridPos"]["y"] for one in inside)
                    last = max(one["gridPos"]["y"] + one["gridPos"]["h"] for one in inside)
                    for one in inside:
                        at = (place["y"] + offset + 1 + one["gridPos"]["y"] - first) * (CELL + GAP)
                        places.append(self.panel(one, at))
                        height = max(height, at + box(one)[2])
                    offset += last - first
            else:
                places.append(self.panel(panel, top))
            height = max(height, top + box(panel)[2])
        text = f"""<!doctype html><meta charset="utf-8"><style>{STYLE}</style>
<h1>{escape(self.dashboard["title"])}<small>{self.range_text()}</small></h1>
<div class="variables">{self.variable_line()}</div>
<div class="grid" style="height:{height}px">{"".join(places)}</div>
<footer>{FOOT}</footer>"""
        return text, height + 44 + self.variable_rows() * 36 + 50

    def range_text(self):
        form = "%Y-%m-%d %H:%M:%S"
        begins, ends = (time.strftime(form, time.localtime(one)) for one in (self.begins, self.ends))
        return f"{begins} to {ends}"

    def variable_line(self):
        out = []
        for name, value in self.shown_variables():
            label = escape(self.variables.labels[name])
            words = ["All" if one in (".*", ".+") else one for one in (value if isinstance(value, list) else [value])]
            out.append(f"<span><b>{label}</b><i>{escape(' + '.join(words)) or '&nbsp;'}</i></span>")
        links = "".join(f"<em>↗ {escape(link['title'])}</em>" for link in self.dashboard.get("links", []) if link.get("title"))
        return "".join(out) + links

    def shown_variables(self):
        hidden = {one["name"] for one in self.dashboard.get("templating", {}).get("list", []) if one.get("hide") == 2}
        return [(name, value) for name, value in self.variables.values.items() if name not in hidden]

    def variable_rows(self):
        pixels = sum(50 + 7 * (len(name) + min(40, len(str(value)))) for name, value in self.shown_variables())
        return 1 + pixels // WIDTH

    def row(self, panel, top):
        title = escape(self.variables.put_into(panel.get("title", "")))
        return f'<div class="row" style="top:{top}px;left:0">⌄ {title}</div>'

    def panel(self, panel, top):
        if panel.get("repeat"):
            raise SystemExit(f"repeated panels are not drawn ({panel.get('title')!r})")
        left, width, height = box(panel)
        title = escape(self.variables.put_into(panel.get("title", "")))
        bare = "" if title else " bare"
        inner_width, inner_height = width - 18, height - (40 if title else 18)
        answers = self.answers(panel, inner_width)
        inside = panels.draw(panel, answers, inner_width, inner_height, self)
        if inside is None:
            self.empty.append(panel.get("title") or f"panel {panel.get('id')}")
            words = panel.get("fieldConfig", {}).get("defaults", {}).get("noValue") or "No data"
            inside = f'<div class="none">{escape(words)}</div>'
        header = f"<header>{title}</header>" if title else ""
        style = f"left:{left:.0f}px;top:{top}px;width:{width:.0f}px;height:{height:.0f}px"
        transparent = ";background:none;border-color:transparent" if panel.get("transparent") else ""
        return f'<div class="panel{bare}" style="{style}{transparent}">{header}<div class="body">{inside}</div></div>'

    def answers(self, panel, width):
        """The frames of a panel: its queries' answers, transformed."""
        found = []
        targets = [one for one in panel.get("targets", []) if not one.get("hide")]
        for target in targets:
            found += self.answer(panel, target, width, len(targets) == 1)
        return frames.transformed(found, panel.get("transformations") or [])

    def answer(self, panel, target, width, alone):
        source = (target.get("datasource") or panel.get("datasource") or {}).get("uid", "")
        if source and not re.match(r"\$\{?\w+\}?$", source):
            raise SystemExit(f"{panel.get('title')!r} asks the data source {source!r}: not one of a variable")
        points = min(panel.get("maxDataPoints") or width, width)
        step = max(self.scrape_seconds, rounded((self.ends - self.begins) / points))
        for given in (panel.get("interval"), target.get("interval")):
            if given:
                step = max(step, in_seconds(self.variables.put_into(given)))
        self.variables.step(step)
        expression = self.variables.put_into(target["expr"])
        table = target.get("format") == "table"
        if target.get("format") not in (None, "table", "time_series"):
            raise SystemExit(f"answers as {target['format']!r} are not drawn")
        target = {**target, "legendFormat": self.variables.put_into(target.get("legendFormat") or "")}
        if target.get("instant"):
            series = self.prometheus.instant(expression)
            return frames.as_table(series, target, alone) if table else frames.from_instant(series, target)
        series = self.prometheus.range(expression, step)
        return frames.as_table(series, target, alone) if table else frames.from_range(series, target)


def box(panel):
    """Left edge, width and height of a panel in pixels."""
    place = panel["gridPos"]
    column = (WIDTH - 23 * GAP) / 24
    left = place["x"] * (column + GAP)
    width = place["w"] * column + (place["w"] - 1) * GAP
    return left, width, place["h"] * CELL + (place["h"] - 1) * GAP


def rounded(seconds):
    """The step nearest to this of those that Grafana takes."""
    steps = [1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400]
    return min(steps, key=lambda step: abs(step - seconds))


def in_seconds(text):
    found = re.fullmatch(r"(\d+)(ms|s|m|h|d)", text.lstrip(">"))
    if not found:
        raise SystemExit(f"an interval {text!r} is not understood")
    return max(1, int(int(found[1]) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}[found[2]]))
