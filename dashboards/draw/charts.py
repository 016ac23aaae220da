"""Panels over time: lines, bars and states. As SVG.

Place: beside panels.py, which has those that are text, and shares.py.
"""

import math
from html import escape

import fields
import units
from frames import missing, reduced

AXIS = "#8E8E99"
GRID = "#2C2E33"
FONT = 'font-family="Inter, Helvetica, Arial, sans-serif"'


def svg(width, height, inner):
    return f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}">{"".join(inner)}</svg>'


def label(x, y, text, anchor="start", size=11, fill=AXIS, more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{fill}" {FONT} {more}>{escape(text)}</text>'


def nice_ticks(low, high, count, factor=10):
    """Round values between two others; of bytes, powers of two."""
    span = (high - low) or 1
    raw = span / max(1, count)
    if factor == 1024 and raw >= 1:
        scale = 1024 ** math.floor(math.log(raw, 1024))
        step = next((scale * one for one in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024) if scale * one >= raw))
    else:
        scale = 10 ** math.floor(math.log10(raw))
        step = next(scale * one for one in (1, 2, 2.5, 5, 10) if scale * one >= raw * 0.999)
    first = math.ceil(low / step - 1e-9) * step
    return [first + index * step for index in range(int((high - first) / step + 1e-6) + 1)]


def alike(ticks, unit):
    """How many decimals tell ticks apart that stand in one scale; None where
    each finds its own scale, as times and bytes do."""
    if len(ticks) < 2 or max(map(abs, ticks)) >= 1000 or unit in ("s", "ms") or "bytes" in unit:
        return None
    step = (ticks[1] - ticks[0]) * (100 if unit == "percentunit" else 1)
    return next(places for places in range(12) if abs(step * 10**places - round(step * 10**places)) < 1e-6)


def time_ticks(begins, ends, count):
    steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400]
    step = next((one for one in steps if (ends - begins) / one <= count), 86400)
    first = math.ceil(begins / step) * step
    form = "%H:%M:%S" if step < 60 else "%H:%M" if step < 86400 else "%m/%d"
    return [(moment, units.moment(moment * 1000).strftime(form)) for moment in range(first, int(ends) + 1, step)]


class Series:
    """One number field over time, with its options."""

    def __init__(self, panel, frame, field, index):
        self.field = field
        self.options = fields.options_of(panel, field)
        self.custom = self.options["custom"]
        self.times = [value / 1000 for value in next(one for one in frame.fields if one.kind == "time").values]
        self.values = field.values
        self.name = self.options.get("displayName") or field.called()
        last = reduced(self.values, "lastNotNull")
        self.color = fields.paint(last, self.options, index, fields.bounds_of(self.options, self.values))
        self.right = self.custom.get("axisPlacement") == "right"
        hidden = self.custom.get("hideFrom") or {}
        self.hidden, self.unlisted = hidden.get("viz", False), hidden.get("legend", False)


def series_of(panel, frames):
    """Every number field of frames that have a time."""
    found = []
    for frame in frames:
        if not any(one.kind == "time" for one in frame.fields):
            continue
        for field in frame.fields:
            if field.kind == "number":
                found.append(Series(panel, frame, field, len(found)))
    return found


def stacked(series):
    """The lines with those below them added, group by group."""
    sums = {}
    for one in series:
        stacking = one.custom.get("stacking") or {}
        one.base = [0.0] * len(one.values)
        one.drawn = one.values
        if stacking.get("mode", "none") == "none":
            continue
        if stacking["mode"] not in ("normal", "percent"):
            raise SystemExit(f"stacking {stacking['mode']!r} is not drawn")
        below = sums.setdefault((stacking.get("group", "A"), one.right), {})
        one.base = [below.get(moment, 0.0) for moment in one.times]
        one.drawn = [None if missing(value) else value + base for value, base in zip(one.values, one.base)]
        for moment, value in zip(one.times, one.values):
            below[moment] = below.get(moment, 0.0) + (0 if missing(value) else value)
    for one in series:
        if (one.custom.get("stacking") or {}).get("mode") == "percent":
            total = sums[(one.custom["stacking"].get("group", "A"), one.right)]
            one.base = [base / (total[moment] or 1) for moment, base in zip(one.times, one.base)]
            one.drawn = [
                None if missing(value) else value / (total[moment] or 1) for moment, value in zip(one.times, one.drawn)
            ]


def time_series(panel, frames, width, height, page):
    series = series_of(panel, frames)
    if not series:
        return None
    legend = panel.get("options", {}).get("legend", {})
    shown = [one for one in series if not one.hidden]
    listed = [one for one in series if not one.unlisted]
    side = legend.get("placement") == "right"
    calcs = legend.get("calcs") or []
    rows = len(listed) + 1 if legend.get("displayMode") == "table" else None
    if legend.get("displayMode") == "hidden" or legend.get("showLegend") is False:
        side, foot = False, 0
    elif side:
        foot = 0
    elif rows:
        foot = min(rows * 20 + 4, height * 0.45)
    else:
        foot = 6 + 20 * math.ceil(sum(len(one.name) * 6.6 + 38 for one in listed) / width)
        foot = min(foot, height * 0.4)
    chart = width - (min(320, width * 0.42) if side else 0)
    stacked(shown)
    picture = lines(shown, chart, height - foot, page)
    if not foot and not side:
        return picture
    list_width = width - chart if side else width
    entries = legend_html(listed, legend, calcs, page)
    style = f"width:{list_width:.0f}px;max-height:{height if side else foot:.0f}px"
    inner = f'<div class="legend {"side" if side else ""}" style="{style}">{entries}</div>'
    return f'<div class="{"beside" if side else "above"}">{picture}{inner}</div>'


def legend_html(listed, legend, calcs, page):
    titles = {"lastNotNull": "Last *", "last": "Last", "max": "Max", "mean": "Mean", "min": "Min", "sum": "Total"}
    if legend.get("displayMode") == "table":
        head = "".join(f"<th>{titles[calc]}</th>" for calc in calcs)
        body = "".join(
            f'<tr><td><i style="background:{one.color}"></i>{escape(one.name)}</td>'
            + "".join(f"<td>{escape(shown_value(one, calc, page))}</td>" for calc in calcs)
            + "</tr>"
            for one in listed
        )
        return f"<table><tr><th></th>{head}</tr>{body}</table>"
    return "".join(
        f'<span><i style="background:{one.color}"></i>{escape(one.name)}'
        + "".join(f" <b>{titles[calc]}: {escape(shown_value(one, calc, page))}</b>" for calc in calcs)
        + "</span>"
        for one in listed
    )


def shown_value(one, calc, page):
    return fields.text(reduced(one.values, calc), one.field, one.options, page.now)


def lines(series, width, height, page):
    left_axis = [one for one in series if not one.right]
    right_axis = [one for one in series if one.right]
    pad_left, pad_right, top, foot = 62, 60 if right_axis else 14, 8, 22
    inner_width, inner_height = width - pad_left - pad_right, height - top - foot
    out = []

    def x(moment):
        return pad_left + (moment - page.begins) / (page.ends - page.begins) * inner_width

    for moment, text in time_ticks(page.begins, page.ends, max(2, inner_width // 80)):
        out.append(f'<line x1="{x(moment):.1f}" x2="{x(moment):.1f}" y1="{top}" y2="{top + inner_height}" stroke="{GRID}"/>')
        out.append(label(x(moment), height - 6, text, "middle"))
    for axis in (left_axis, right_axis):
        if not axis:
            continue
        low, high = scale_of(axis)
        options = axis[0].options

        def y(value, low=low, high=high):
            return top + inner_height - (value - low) / (high - low) * inner_height

        right = axis is right_axis
        factor = 1024 if (options.get("unit") or "") in ("bytes", "binBps") else 10
        ticks = nice_ticks(low, high, max(2, inner_height // 40), factor)
        decimals = options.get("decimals")
        if decimals is None:
            decimals = alike(ticks, options.get("unit") or "short")
        for tick in ticks:
            if not right:
                out.append(f'<line x1="{pad_left}" x2="{width - pad_right}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" stroke="{GRID}"/>')
            text = units.written(tick, options.get("unit") or "short", decimals, page.now)
            out.append(label(width - pad_right + 6 if right else pad_left - 6, y(tick) + 4, text, "start" if right else "end"))
        out += limit_lines(axis, pad_left, width - pad_right, y, low, high)
        spacing = min((b - a for one in axis for a, b in zip(one.times, one.times[1:])), default=None)
        bar = inner_width * (spacing / (page.ends - page.begins) if spacing else 0.05) * 0.8
        # The first lies in front.
        for one in reversed(axis):
            out += one_line(one, x, y, low, max(1.0, bar))
    return svg(round(width), round(height), out)


def scale_of(axis):
    """The values at the foot and at the top of an axis."""
    values = [value for one in axis for value in one.drawn if not missing(value)]
    limits = [
        step["value"]
        for one in axis
        if (one.custom.get("thresholdsStyle") or {}).get("mode", "off") != "off"
        for step in one.options.get("thresholds", {}).get("steps", [])
        if step.get("value") is not None
    ]
    low = min([one.options["min"] for one in axis if one.options.get("min") is not None], default=None)
    high = max([one.options["max"] for one in axis if one.options.get("max") is not None], default=None)
    soft_low = [one.custom["axisSoftMin"] for one in axis if one.custom.get("axisSoftMin") is not None]
    soft_high = [one.custom["axisSoftMax"] for one in axis if one.custom.get("axisSoftMax") is not None]
    found_low = min(values + limits + soft_low + ([0.0] if filled(axis) else []), default=0.0)
    found_high = max(values + limits + soft_high, default=1.0)
    low = found_low if low is None else low
    high = found_high + (found_high - low) * 0.05 if high is None else high
    if high <= low:
        low, high = (low - 1, high + 1) if low else (0.0, 1.0)
    return low, high


def filled(axis):
    return any(one.custom.get("fillOpacity") or one.custom.get("drawStyle") == "bars" for one in axis)


def limit_lines(axis, left, right, y, low, high):
    out = []
    for one in axis[:1]:
        mode = (one.custom.get("thresholdsStyle") or {}).get("mode", "off")
        if mode == "off":
            continue
        if mode not in ("line", "dashed"):
            raise SystemExit(f"thresholds shown as {mode!r} are not drawn")
        for step in one.options["thresholds"]["steps"]:
            value = step.get("value")
            if value is not None and low <= value <= high:
                dash = 'stroke-dasharray="10 6"' if mode == "dashed" else ""
                out.append(f'<line x1="{left}" x2="{right}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="{fields.color(step["color"])}" stroke-width="1.5" {dash}/>')
    return out


def one_line(one, x, y, low, bar):
    style = one.custom.get("drawStyle", "line")
    width = one.custom.get("lineWidth", 1)
    fill = one.custom.get("fillOpacity", 0) / 100
    points = [
        (x(moment), y(max(value, low)), y(max(base, low)))
        for moment, value, base in zip(one.times, one.drawn, one.base)
        if not missing(value)
    ]
    if style == "points":
        size = one.custom.get("pointSize", 5) / 2
        return [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="{size}" fill="{one.color}"/>' for px, py, _ in points]
    if style == "bars":
        return [
            f'<rect x="{px - bar / 2:.1f}" y="{py:.1f}" width="{bar:.1f}" height="{max(0, below - py):.1f}" fill="{one.color}" fill-opacity="{max(fill, 0.1):.2f}" stroke="{one.color}"/>'
            for px, py, below in points
        ]
    if style != "line":
        raise SystemExit(f"lines drawn as {style!r} are not drawn")
    out = []
    dashes = (one.custom.get("lineStyle") or {}).get("dash")
    dash = f'stroke-dasharray="{" ".join(map(str, dashes))}"' if dashes else ""
    stepped = one.custom.get("lineInterpolation") in ("stepAfter", "stepBefore")
    for piece in pieces(one, points):
        if len(piece) == 1:
            out.append(f'<circle cx="{piece[0][0]:.1f}" cy="{piece[0][1]:.1f}" r="2" fill="{one.color}"/>')
            continue
        path = path_of([(px, py) for px, py, _ in piece], stepped)
        if fill:
            back = path_of([(px, below) for px, _, below in reversed(piece)], False).replace("M", "L", 1)
            out.append(f'<path d="{path}{back}Z" fill="{one.color}" fill-opacity="{fill:.2f}"/>')
        if width:
            out.append(f'<path d="{path}" fill="none" stroke="{one.color}" stroke-width="{width}" {dash}/>')
    return out


def pieces(one, points):
    """A line is torn where samples are missing, unless it spans gaps."""
    times = [moment for moment, value in zip(one.times, one.drawn) if not missing(value)]
    if one.custom.get("spanNulls") is True or len(times) < 3:
        return [points] if points else []
    usual = min(b - a for a, b in zip(times, times[1:]))
    out = [[points[0]]]
    for before, moment, point in zip(times, times[1:], points[1:]):
        if moment - before > usual * 1.5:
            out.append([])
        out[-1].append(point)
    return out


def path_of(points, stepped):
    words = [f"M{points[0][0]:.1f},{points[0][1]:.1f}"]
    for px, py in points[1:]:
        words.append(f"H{px:.1f}V{py:.1f}" if stepped else f"L{px:.1f},{py:.1f}")
    return "".join(words)


def state_timeline(panel, frames, width, height, page):
    rows = []
    for frame in frames:
        times = next((one for one in frame.fields if one.kind == "time"), None)
        for field in frame.fields:
            if field.kind != "time" and times is not None:
                rows.append((field, [value / 1000 for value in times.values]))
    if not rows:
        return None
    pad, foot = min(220, 20 + max(len(field.called()) for field, _ in rows) * 6.6), 22
    inner = width - pad - 10
    tall = (height - foot) / len(rows)
    merged = panel.get("options", {}).get("mergeValues", True)
    show = panel.get("options", {}).get("showValue", "auto")
    thick = tall * panel.get("options", {}).get("rowHeight", 0.9)
    out = []

    def x(moment):
        return pad + (min(max(moment, page.begins), page.ends) - page.begins) / (page.ends - page.begins) * inner

    for index, (field, times) in enumerate(rows):
        options = fields.options_of(panel, field)
        y = index * tall + (tall - thick) / 2
        out.append(label(pad - 8, y + thick / 2 + 4, options.get("displayName") or field.called(), "end"))
        usual = min((b - a for a, b in zip(times, times[1:])), default=page.ends - page.begins)
        spans = []
        for moment, value in zip(times, field.values):
            if missing(value):
                continue
            last = spans[-1] if spans else None
            if merged and last and last[2] == value and moment - last[1] < usual * 0.5:
                last[1] = moment + usual
            else:
                spans.append([moment, moment + usual, value])
        for begins, ends, value in spans:
            wide = max(1, x(ends) - x(begins))
            paint = fields.paint(value, options, index, fields.bounds_of(options, field.values))
            out.append(f'<rect x="{x(begins):.1f}" y="{y:.1f}" width="{wide:.1f}" height="{thick:.1f}" fill="{paint}" fill-opacity="0.8"/>')
            text = fields.text(value, field, options, page.now)
            if show != "never" and thick > 12 and len(text) * 6.6 < wide:
                out.append(label(x(begins) + 4, y + thick / 2 + 4, text, fill="#FFFFFF"))
    for moment, text in time_ticks(page.begins, page.ends, max(2, inner // 80)):
        out.append(label(x(moment), height - 6, text, "middle"))
    return svg(round(width), round(height), out)
