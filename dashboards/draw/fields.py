"""How one column is shown: its options after overrides, the text and the
colour of each of its values.

Place: between frames and panels; units.py writes the numbers.
"""

import copy
import math
import re

import units

# Grafana's named colours (dark theme).
SHADES = {
    "red": ("#C4162A", "#E02F44", "#F2495C", "#FF7383", "#FFA6B0"),
    "orange": ("#FA6400", "#FF780A", "#FF9830", "#FFB357", "#FFCB7D"),
    "yellow": ("#E0B400", "#F2CC0C", "#FADE2A", "#FFEE52", "#FFF899"),
    "green": ("#37872D", "#56A64B", "#73BF69", "#96D98D", "#C8F2C2"),
    "blue": ("#1F60C4", "#3274D9", "#5794F2", "#8AB8FF", "#C0D8FF"),
    "purple": ("#8F3BB8", "#A352CC", "#B877D9", "#CA95E5", "#DEB6F2"),
}
NAMED = {"text": "#CCCCDC", "transparent": "transparent", "white": "#FFFFFF", "black": "#000000", "gray": "#8E8E8E"}
for _name, _shades in SHADES.items():
    for _prefix, _shade in zip(("dark-", "semi-dark-", "", "light-", "super-light-"), _shades):
        NAMED[_prefix + _name] = _shade

# The order in which series that name no colour get one.
PALETTE = [
    "#73BF69", "#F2CC0C", "#8AB8FF", "#FF780A", "#F2495C", "#5794F2", "#B877D9", "#705DA0",
    "#37872D", "#FADE2A", "#447EBC", "#C15C17", "#890F02", "#0A437C", "#6D1F62", "#584477",
    "#B7DBAB", "#F4D598", "#70DBED", "#F9BA8F", "#F29191", "#82B5D8", "#E5A8E2", "#AEA2E0",
]


def color(name):
    if name.startswith("#") or name.startswith("rgb"):
        return name
    if name not in NAMED:
        raise SystemExit(f"the colour {name!r} is not drawn")
    return NAMED[name]


# What colours the values of a panel that says nothing of it.
SCHEMES = {
    "timeseries": "palette-classic",
    "barchart": "palette-classic",
    "piechart": "palette-classic",
    "state-timeline": "continuous-GrYlRd",
}


def options_of(panel, field):
    """The panel's field options with the overrides that fit this field."""
    given = panel.get("fieldConfig", {})
    options = copy.deepcopy(given.get("defaults", {}))
    options["color"] = options.get("color") or {"mode": SCHEMES.get(panel["type"], "thresholds")}
    options.setdefault("custom", {})
    for override in given.get("overrides", []):
        if fits(override["matcher"], field):
            for one in override["properties"]:
                place = options
                *path, last = one["id"].split(".")
                for part in path:
                    place = place.setdefault(part, {})
                place[last] = one.get("value")
    return options


def fits(matcher, field):
    wanted = matcher.get("options")
    match matcher["id"]:
        case "byName":
            return wanted == field.called()
        case "byRegexp":
            return re.search(wanted.strip("/"), field.called()) is not None
        case "byType":
            return wanted == field.kind
        case "byFrameRefID":
            return wanted == field.ref
        case "byNames":
            return field.called() in wanted["names"]
    raise SystemExit(f"overrides with the matcher {matcher['id']!r} are not drawn")


def mapped(value, options):
    """What a value mapping says of a value: {text, color}, or None."""
    text = format(value, ".17g") if isinstance(value, float) else value
    for mapping in options.get("mappings") or []:
        wanted = mapping["options"]
        match mapping["type"]:
            case "value":
                if text is not None and text in wanted:
                    return wanted[text]
            case "range":
                low, high = wanted.get("from"), wanted.get("to")
                if isinstance(value, float) and (low is None or value >= low) and (high is None or value <= high):
                    return wanted["result"]
            case "regex":
                if isinstance(text, str) and (found := re.search(wanted["pattern"].strip("/"), text)):
                    result = dict(wanted["result"])
                    if "text" in result:
                        result["text"] = re.sub(r"\$(\d)", lambda one: found[int(one[1])] or "", result["text"])
                    return result
            case "special":
                empty = wanted["match"] in ("null", "null+nan") and value is None
                nan = wanted["match"] in ("nan", "null+nan") and isinstance(value, float) and math.isnan(value)
                if empty or nan or (wanted["match"] == "empty" and value == ""):
                    return wanted["result"]
            case other:
                raise SystemExit(f"value mappings of type {other!r} are not drawn")
    return None


def text(value, field, options, now):
    found = mapped(value, options)
    if found and found.get("text"):
        return found["text"]
    if value is None:
        return options.get("noValue", "")
    if isinstance(value, str):
        # Grafana writes a text that is a number in the field's unit, too.
        return value
    unit = options.get("unit") or ""
    if field.kind == "time":
        return units.written(value, unit or "dateTimeAsIso", None, now)
    return units.written(value, unit, options.get("decimals"), now)


def paint(value, options, index=0, bounds=(0, 100)):
    """The colour of a value: of its mapping, its threshold or its scheme."""
    found = mapped(value, options)
    if found and found.get("color"):
        return color(found["color"])
    scheme = options["color"]
    match scheme.get("mode"):
        case "fixed":
            return color(scheme.get("fixedColor", "gray"))
        case "palette-classic" | "palette-classic-by-name":
            return PALETTE[index % len(PALETTE)]
        case "shades":
            return color(scheme.get("fixedColor", "gray"))
        case "thresholds" | None:
            return threshold(value, options, bounds)
        case mode if mode.startswith("continuous-"):
            return continuous(mode, value, bounds)
    raise SystemExit(f"the colour scheme {scheme!r} is not drawn")


def threshold(value, options, bounds):
    given = options.get("thresholds") or {"mode": "absolute", "steps": [{"color": "green", "value": None}]}
    if isinstance(value, float) and given.get("mode") == "percentage":
        low, high = bounds
        value = (value - low) / ((high - low) or 1) * 100
    chosen = given["steps"][0]["color"]
    for step in given["steps"]:
        if step.get("value") is None or (isinstance(value, float) and value >= step["value"]):
            chosen = step["color"]
    return color(chosen)


def continuous(mode, value, bounds):
    names = {"GrYlRd": ["#73BF69", "#FADE2A", "#F2495C"], "RdYlGr": ["#F2495C", "#FADE2A", "#73BF69"],
             "BlYlRd": ["#5794F2", "#FADE2A", "#F2495C"], "blues": ["#22252B", "#5794F2"],
             "reds": ["#22252B", "#F2495C"], "greens": ["#22252B", "#73BF69"], "purples": ["#22252B", "#B877D9"]}
    stops = names.get(mode.removeprefix("continuous-"))
    if stops is None:
        raise SystemExit(f"the colour scheme {mode!r} is not drawn")
    low, high = bounds
    at = min(1, max(0, ((value or 0) - low) / ((high - low) or 1))) * (len(stops) - 1)
    left = min(int(at), len(stops) - 2)
    channels = [
        round(int(stops[left][i : i + 2], 16) * (1 - at + left) + int(stops[left + 1][i : i + 2], 16) * (at - left))
        for i in (1, 3, 5)
    ]
    return "#" + "".join(f"{channel:02X}" for channel in channels)


def bounds_of(options, values):
    """From where to where a bar or a gauge goes."""
    there = [value for value in values if isinstance(value, float) and math.isfinite(value)]
    low = options.get("min")
    high = options.get("max")
    if low is None:
        low = min([0.0, *there])
    if high is None:
        if options.get("unit") == "percentunit" and not there:
            high = 1
        else:
            high = max(there, default=1.0)
    return float(low), float(high) if high > low else float(low) + 1
