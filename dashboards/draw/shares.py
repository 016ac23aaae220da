"""Panels of one moment that are pictures: pies and groups of bars. As SVG.

Place: beside charts.py, whose ticks and labels it uses.
"""

import math
from html import escape

import charts
import fields
import units
from frames import missing, reduced


def pie(panel, values, width, height, page):
    """`values`: [(name, number, field, options)]."""
    values = [one for one in values if one[1]]
    total = math.fsum(one[1] for one in values)
    if not total:
        return None
    options = panel.get("options", {})
    legend = options.get("legend", {})
    side = legend.get("placement") == "right" and legend.get("showLegend") is not False
    chart = width * 0.5 if side else width
    tall = height if side or legend.get("showLegend") is False else height - 24
    radius = min(chart, tall) / 2 - 6
    cx, cy, angle, out = chart / 2, tall / 2, -math.pi / 2, []
    entries = []
    for index, (name, number, field, field_options) in enumerate(values):
        paint = fields.paint(number, field_options, index)
        share = number / total
        end = angle + share * 2 * math.pi
        if len(values) == 1:
            out.append(f'<circle cx="{cx}" cy="{cy}" r="{radius}" fill="{paint}"/>')
        else:
            large = 1 if share > 0.5 else 0
            out.append(
                f'<path d="M{cx:.1f},{cy:.1f}L{cx + radius * math.cos(angle):.1f},{cy + radius * math.sin(angle):.1f}'
                f'A{radius:.1f},{radius:.1f} 0 {large} 1 {cx + radius * math.cos(end):.1f},{cy + radius * math.sin(end):.1f}Z" fill="{paint}"/>'
            )
        angle = end
        parts = legend.get("values") or []
        words = [fields.text(number, field, field_options, page.now)] if "value" in parts else []
        words += [f"{share * 100:.0f}%"] if "percent" in parts else []
        entries.append(f'<tr><td><i style="background:{paint}"></i>{escape(name)}</td>' + "".join(f"<td>{escape(word)}</td>" for word in words) + "</tr>")
    if options.get("pieType") == "donut":
        out.append(f'<circle cx="{cx}" cy="{cy}" r="{radius * 0.6:.1f}" fill="#181B1F"/>')
    picture = charts.svg(round(chart), round(tall), out)
    if legend.get("showLegend") is False:
        return picture
    if not side:
        inline = "".join(entries).replace("<tr>", "<span>").replace("</tr>", "</span>").replace("<td>", " ").replace("</td>", "")
        return f'<div class="above">{picture}<div class="legend">{inline}</div></div>'
    return f'<div class="beside">{picture}<div class="legend side" style="width:{width - chart:.0f}px"><table>{"".join(entries)}</table></div></div>'


def bar_chart(panel, frames, width, height, page):
    """Groups of bars: a text field along the axis, number fields as bars."""
    options = panel.get("options", {})
    frame = next((one for one in frames if len(one)), None)
    if frame is None:
        return None
    names = frame.named(options["xField"]) if options.get("xField") else None
    names = names or next((one for one in frame.fields if one.kind == "string"), frame.fields[0])
    bars = []
    for field in frame.fields:
        field_options = fields.options_of(panel, field)
        if field.kind == "number" and field is not names and not (field_options["custom"].get("hideFrom") or {}).get("viz"):
            bars.append((field, field_options))
    if not bars:
        return None
    stack = options.get("stacking", "none") != "none"
    across = options.get("orientation") == "horizontal"
    sums = [math.fsum(f.values[i] or 0 for f, _ in bars if not missing(f.values[i])) for i in range(len(frame))]
    tops = sums if stack else [value for f, _ in bars for value in f.values if not missing(value)]
    high = max([bars[0][1].get("max") or 0, max(tops, default=1) * 1.05]) or 1
    legend = options.get("legend", {}).get("showLegend", True) and len(bars) > 1
    foot = (24 if legend else 0) + 22
    texts = [fields.text(value, names, fields.options_of(panel, names), page.now) for value in names.values]
    pad = min(width * 0.35, 16 + max(map(len, texts), default=1) * 6.6) if across else 62
    inner_width, inner_height = width - pad - 12, height - foot - 8
    out = []
    slot = (inner_height if across else inner_width) / len(frame)
    thick = slot * 0.8 / (1 if stack else len(bars))
    unit = bars[0][1].get("unit") or "short"
    for tick in charts.nice_ticks(0, high, max(2, (inner_width // 90) if across else (inner_height // 40)), 1024 if unit == "bytes" else 10):
        at = tick / high
        text = units.written(tick, unit, bars[0][1].get("decimals"), page.now)
        if across:
            px = pad + at * inner_width
            out += [f'<line x1="{px:.1f}" x2="{px:.1f}" y1="8" y2="{8 + inner_height:.1f}" stroke="{charts.GRID}"/>', charts.label(px, inner_height + 22, text, "middle")]
        else:
            py = 8 + inner_height * (1 - at)
            out += [f'<line x1="{pad}" x2="{pad + inner_width:.1f}" y1="{py:.1f}" y2="{py:.1f}" stroke="{charts.GRID}"/>', charts.label(pad - 6, py + 4, text, "end")]
    for row in range(len(frame)):
        base = 0.0
        for index, (field, field_options) in enumerate(bars):
            value = field.values[row]
            if missing(value):
                continue
            paint = fields.paint(value, field_options, index, (0, high))
            opacity = field_options["custom"].get("fillOpacity", 80) / 100
            offset = row * slot + slot * 0.1 + (0 if stack else index * thick)
            size, start = value / high, base / high
            if across:
                box = (pad + start * inner_width, 8 + offset, size * inner_width, thick)
            else:
                box = (pad + offset, 8 + inner_height * (1 - start - size), thick, size * inner_height)
            out.append('<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" '.format(*box) + f'fill="{paint}" fill-opacity="{opacity}"/>')
            base += value if stack else 0
        if across:
            out.append(charts.label(pad - 6, 8 + row * slot + slot / 2 + 4, cut(texts[row], pad), "end"))
        elif slot > 26 or row % math.ceil(60 / slot) == 0:
            out.append(charts.label(pad + row * slot + slot / 2, inner_height + 22, cut(texts[row], max(slot, 60)), "middle"))
    picture = charts.svg(round(width), round(height - (24 if legend else 0)), out)
    if not legend:
        return picture
    entries = "".join(
        f'<span><i style="background:{fields.paint(reduced(f.values, "lastNotNull"), o, index, (0, high))}"></i>{escape(o.get("displayName") or f.called())}</span>'
        for index, (f, o) in enumerate(bars)
    )
    return f'<div class="above">{picture}<div class="legend">{entries}</div></div>'


def cut(text, width):
    most = max(3, int(width / 6.4))
    return text if len(text) <= most else text[: most - 1] + "…"
