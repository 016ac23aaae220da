"""Panels that are text: single numbers, tables, bars beside names, notes. As
HTML. And the choice of which panel is drawn by what.

Place: after fields.py and charts.py; page.py puts what they make in its place.
"""

import re
from html import escape

import charts
import fields
import shares
from frames import missing, reduced, sorted_frame


def draw(panel, frames, width, height, page):
    """The inside of a panel, or None where it has no data."""
    kind = panel["type"]
    match kind:
        case "text":
            return text(panel, page)
        case "stat":
            return stat(panel, frames, width, height, page)
        case "gauge":
            return stat(panel, frames, width, height, page)
        case "table":
            return table(panel, frames, width, height, page)
        case "bargauge":
            return bar_gauge(panel, frames, width, height, page)
        case "timeseries":
            return charts.time_series(panel, frames, width, height, page)
        case "state-timeline":
            return charts.state_timeline(panel, frames, width, height, page)
        case "barchart":
            return shares.bar_chart(panel, frames, width, height, page)
        case "piechart":
            return shares.pie(panel, single_values(panel, frames), width, height, page)
    raise SystemExit(f"panels of type {kind!r} are not drawn (panel {panel.get('title')!r})")


def single_values(panel, frames):
    """What a panel of single numbers shows: (name, value, field, options)."""
    given = panel.get("options", {}).get("reduceOptions", {})
    wanted = given.get("fields", "")
    out = []
    for frame in frames:
        names = next((one for one in frame.fields if one.kind == "string"), None)
        for field in frame.fields:
            if wanted and wanted.startswith("/"):
                chosen = re.search(wanted.strip("/"), field.called()) is not None
            elif wanted:
                chosen = field.called() == wanted
            else:
                chosen = field.kind == "number"
            options = fields.options_of(panel, field)
            if not chosen or (options["custom"].get("hideFrom") or {}).get("viz"):
                continue
            if given.get("values"):
                for index, value in enumerate(field.values[: given.get("limit") or 25]):
                    name = names.values[index] if names and names is not field else field.called()
                    out.append((options.get("displayName") or name, value, field, options))
            else:
                for calc in given.get("calcs") or ["lastNotNull"]:
                    value = reduced(field.values, calc)
                    out.append((options.get("displayName") or field.called(), value, field, options))
    return out


def stat(panel, frames, width, height, page):
    values = single_values(panel, frames)
    if not values:
        empty = panel.get("fieldConfig", {}).get("defaults", {}).get("noValue")
        if not empty:
            return None
        return f'<div class="tiles"><div class="tile"><b style="font-size:{min(height * 0.5, 34):.0f}px">{escape(empty)}</b></div></div>'
    options = panel.get("options", {})
    mode, with_text = options.get("colorMode", "value"), options.get("textMode", "auto")
    named = with_text in ("value_and_name", "name") or (with_text == "auto" and len(values) > 1)
    across = options.get("orientation", "auto") != "horizontal"
    count = len(values)
    tile_width = width / count if across else width
    tile_height = height if across else height / count
    tiles = []
    for index, (name, value, field, field_options) in enumerate(values):
        paint = fields.paint(value, field_options, index, fields.bounds_of(field_options, field.values))
        words = name if with_text == "name" else fields.text(value, field, field_options, page.now)
        if with_text == "none":
            words = ""
        size = options.get("text", {}).get("valueSize") or min(
            tile_height * (0.42 if named else 0.62), (tile_width - 16) / max(1, len(words)) / 0.56, 56
        )
        style = f"background:{paint}" if mode.startswith("background") else ""
        text_color = "#FFFFFF" if mode.startswith("background") else paint if mode == "value" else "#CCCCDC"
        title = f"<small>{escape(name)}</small>" if named and with_text != "name" else ""
        line = sparkline(field, frames, tile_width, tile_height, paint) if options.get("graphMode") == "area" else ""
        tiles.append(
            f'<div class="tile" style="{style}">{line}{title}<b style="font-size:{size:.0f}px;color:{text_color}">{escape(words)}</b></div>'
        )
    return f'<div class="tiles {"" if across else "down"}">{"".join(tiles)}</div>'


def sparkline(field, frames, width, height, paint):
    frame = next(one for one in frames if field in one.fields)
    times = next((one for one in frame.fields if one.kind == "time"), None)
    points = [(t, v) for t, v in zip(times.values, field.values) if not missing(v)] if times else []
    if len(points) < 2:
        return ""
    low, high = min(v for _, v in points), max(v for _, v in points)
    first, last = points[0][0], points[-1][0]
    tall = height * 0.35
    path = charts.path_of(
        [((t - first) / (last - first) * width, height - 2 - (v - low) / ((high - low) or 1) * tall) for t, v in points], False
    )
    return (
        f'<svg class="spark" width="{width:.0f}" height="{height:.0f}"><path d="{path}L{width:.0f},{height:.0f}L0,{height:.0f}Z" fill="{paint}" fill-opacity="0.15"/>'
        f'<path d="{path}" fill="none" stroke="{paint}"/></svg>'
    )


def bar_gauge(panel, frames, width, height, page):
    values = [one for one in single_values(panel, frames) if not missing(one[1])]
    if not values:
        return None
    options = panel.get("options", {})
    numbers = [value for _, value, _, _ in values]
    if options.get("orientation") == "vertical":
        raise SystemExit("vertical bar gauges are not drawn")
    row = min(40, (height - 4) / len(values))
    name_width = min(width * 0.4, 16 + max(len(name) for name, *_ in values) * 6.8)
    out = []
    for index, (name, value, field, field_options) in enumerate(values):
        low, high = fields.bounds_of(field_options, numbers)
        paint = fields.paint(value, field_options, index, (low, high))
        share = min(1, max(0, (value - low) / (high - low))) * 100
        words = fields.text(value, field, field_options, page.now)
        out.append(
            f'<div class="bar" style="height:{row - 4:.0f}px;font-size:{min(13, row - 5):.0f}px"><span style="width:{name_width:.0f}px">{escape(name)}</span>'
            f'<div><i style="width:{share:.1f}%;background:{paint};"></i></div><b style="color:{paint}">{escape(words)}</b></div>'
        )
    return "".join(out)


def table(panel, frames, width, height, page):
    frame = next((one for one in frames if len(one)), None)
    if frame is None:
        return None
    if sum(1 for one in frames if len(one)) > 1:
        raise SystemExit(f"the table {panel.get('title')!r} has several frames: Grafana shows one of them only")
    with_options = [(field, fields.options_of(panel, field)) for field in frame.fields]
    # The first key decides: sorted last.
    for key in reversed(panel.get("options", {}).get("sortBy") or []):
        names = {options.get("displayName") or field.called(): field.name for field, options in with_options}
        if key["displayName"] not in names:
            raise SystemExit(f"the table {panel.get('title')!r} is sorted by {key['displayName']!r}, which it has not")
        frame = sorted_frame(frame, names[key["displayName"]], key.get("desc", False))
    columns = []
    for field in frame.fields:
        options = fields.options_of(panel, field)
        hidden = options["custom"].get("hidden") or (options["custom"].get("hideFrom") or {}).get("viz")
        if not hidden:
            columns.append((field, options))
    widths = column_widths([options["custom"] for _, options in columns], width)
    head = "".join(
        f'<th style="{column_style(field, options)};width:{wide:.0f}px">{escape(options.get("displayName") or field.called())}</th>'
        for (field, options), wide in zip(columns, widths)
    )
    shown = min(len(frame), max(1, int((height - 34) / 30)))
    body = "".join(
        "<tr>" + "".join(cell(field, options, frame, index, page) for field, options in columns) + "</tr>"
        for index in range(shown)
    )
    more = f'<div class="more">{len(frame) - shown} more rows below</div>' if len(frame) > shown else ""
    return f'<table class=data style="width:{sum(widths):.0f}px"><tr>{head}</tr>{body}</table>{more}'


def column_widths(customs, width):
    """Columns without a width share what is left, and are 150 pixels at least:
    then the table is wider than its panel, and Grafana scrolls."""
    left = width - sum(custom.get("width") or 0 for custom in customs)
    free = sum(1 for custom in customs if not custom.get("width"))
    share = left / free if free else 0
    return [custom.get("width") or max(share, custom.get("minWidth") or 150) for custom in customs]


def column_style(field, options):
    custom = options["custom"]
    align = custom.get("align") or "auto"
    if align == "auto":
        align = "right" if field.kind == "number" and not options.get("mappings") else "left"
    return f"text-align:{align}"


def cell(field, options, frame, index, page):
    value = field.values[index]
    words = fields.text(value, field, options, page.now)
    style = column_style(field, options)
    look = options["custom"].get("cellOptions") or {"type": "auto"}
    bounds = fields.bounds_of(options, field.values)
    if look["type"] == "color-background":
        paint = fields.paint(value, options, 0, bounds)
        style += f";background:{paint};color:#FFFFFF" if paint != "transparent" else ""
    elif look["type"] == "color-text":
        style += f";color:{fields.paint(value, options, 0, bounds)}"
    elif look["type"] == "gauge":
        if missing(value):
            return f'<td style="{style}"></td>'
        share = min(1, max(0, (value - bounds[0]) / (bounds[1] - bounds[0]))) * 100
        paint = fields.paint(value, options, 0, bounds)
        return f'<td><div class="bar"><div><i style="width:{share:.1f}%;background:{paint}"></i></div><b style="color:{paint}">{escape(words)}</b></div></td>'
    elif look["type"] not in ("auto", "data-links"):
        raise SystemExit(f"cells of type {look['type']!r} are not drawn")
    text = escape(words)
    if options.get("links") and words:
        text = f"<u>{text}</u>"
    return f'<td style="{style}">{text}</td>'


def text(panel, page):
    """Markdown of the kind that dashboards use: paragraphs, lists, headings,
    bold, code, links and tables."""
    options = panel.get("options", {})
    content = page.variables.put_into(options.get("content", ""))
    if options.get("mode") == "html":
        return f'<div class="note">{content}</div>'
    if options.get("mode", "markdown") != "markdown":
        raise SystemExit(f"text in the mode {options['mode']!r} is not drawn")
    out, items, rows = [], [], []

    def finish():
        if items:
            out.append("<ul>" + "".join(f"<li>{one}</li>" for one in items) + "</ul>")
            items.clear()
        if rows:
            out.append("<table>" + "".join(rows) + "</table>")
            rows.clear()

    for block in content.split("\n"):
        line = block.strip()
        if found := re.match(r"(#+) (.*)", line):
            finish()
            out.append(f"<h{len(found[1])}>{inline(found[2])}</h{len(found[1])}>")
        elif found := re.match(r"(?:[-*]|\d+\.) (.*)", line):
            items.append(inline(found[1]))
        elif line.startswith("|"):
            cells = [inline(one.strip()) for one in line.strip("|").split("|")]
            if not re.fullmatch(r"[|:\- ]+", line):
                rows.append("<tr>" + "".join(f"<td>{one}</td>" for one in cells) + "</tr>")
        elif items and line and block.startswith(" "):
            items[-1] += " " + inline(line)
        else:
            finish()
            out.append(inline(line) + " " if line else "<p>")
    finish()
    return f'<div class="note">{"".join(out)}</div>'


def inline(text):
    text = escape(text, quote=False)
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    text = re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", text)
    text = re.sub(r"(?<![*\w])\*([^*]+)\*", r"<em>\1</em>", text)
    return re.sub(r"\[([^\]]+)\]\(([^)]+)\)", r"<u>\1</u>", text)
