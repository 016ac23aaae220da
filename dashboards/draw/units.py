"""Numbers as Grafana writes them.

Place: the last step before a number is seen; fields.py says which unit. The
rules are those that Grafana's documentation and pages show: as many decimals
as tell neighbouring values apart, and the largest unit below the value. A unit
that is not here stops the drawing: a wrong text would be worse.
"""

import datetime
import math

SECONDS = [(60, 1, " s"), (3600, 60, " mins"), (86400, 3600, " hours"), (604800, 86400, " days"),
           (31536000, 604800, " weeks"), (math.inf, 31536000, " years")]
# Whole factors: the same number of anything, of bytes by 1024 and by 1000.
SHORT = ["", " K", " Mil", " Bil", " Tri", " Quadr"]
SI = ["", " k", " M", " G", " T", " P"]
IEC = [" B", " KiB", " MiB", " GiB", " TiB", " PiB"]
BYTES = [" B", " kB", " MB", " GB", " TB", " PB"]


def plain(value, decimals=None):
    """A number with as many decimals as its size asks for."""
    if decimals is None:
        decimals = automatic(value)
    return f"{value:.{decimals}f}"


def automatic(value):
    if value == 0 or value == int(value):
        return 0
    power = math.floor(math.log10(abs(value)))
    decimals = 1 - power
    if value / 10 ** power > 2.25:
        decimals += 1
    return max(0, decimals)


def scaled(value, decimals, factor, names):
    size, index = abs(value), 0
    while size >= factor and index < len(names) - 1:
        size /= factor
        index += 1
    return plain(math.copysign(size, value), decimals) + names[index]


def seconds(value, decimals):
    if value == 0:
        return "0 s"
    size = abs(value)
    for below, factor, name in ((1e-6, 1e9, " ns"), (1e-3, 1e6, " µs"), (1, 1e3, " ms")):
        if size < below:
            return plain(value * factor, decimals) + name
    for below, factor, name in SECONDS:
        if size < below:
            return plain(value / factor, decimals) + name
    raise AssertionError("infinity is a bound")


def moment(milliseconds):
    return datetime.datetime.fromtimestamp(milliseconds / 1000)


def from_now(milliseconds, now):
    """How long ago, in words, as Grafana's "from now" tells."""
    past = now - milliseconds / 1000
    size = abs(past)
    for below, factor, one, many in (
        (45, 1, "a few seconds", None), (90, 60, "a minute", None), (2700, 60, None, "minutes"),
        (5400, 3600, "an hour", None), (79200, 3600, None, "hours"), (129600, 86400, "a day", None),
        (2246400, 86400, None, "days"), (math.inf, 2592000, None, "months"),
    ):
        if size < below:
            words = one or f"{round(size / factor)} {many}"
            return f"{words} ago" if past >= 0 else f"in {words}"
    raise AssertionError("infinity is a bound")


def written(value, unit, decimals, now):
    """The text of a number in a unit; `now` in seconds since the epoch."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if unit.startswith("currency:") or unit.startswith("suffix:") or unit.startswith("prefix:"):
        kind, _, text = unit.partition(":")
        number = scaled(value, decimals, 1000, SHORT)
        return text + number if kind == "prefix" else f"{number}{' ' if kind == 'currency' else ''}{text}"
    match unit:
        case "" | "none" | "string":
            return plain(value, decimals)
        case "short":
            return scaled(value, decimals, 1000, SHORT)
        case "locale":
            return f"{value:,.{automatic(value) if decimals is None else decimals}f}"
        case "percent":
            return plain(value, decimals) + "%"
        case "percentunit":
            return plain(value * 100, decimals) + "%"
        case "s":
            return seconds(value, decimals)
        case "ms":
            return seconds(value / 1000, decimals)
        case "bytes":
            return scaled(value, decimals, 1024, IEC)
        case "decbytes":
            return scaled(value, decimals, 1000, BYTES)
        case "binBps":
            return scaled(value, decimals, 1024, [name + "/s" for name in IEC])
        case "Bps":
            return scaled(value, decimals, 1000, [name + "/s" for name in BYTES])
        case "ops" | "reqps" | "rps" | "wps" | "cps":
            name = {"reqps": "req", "rps": "rd", "wps": "wr", "cps": "c"}.get(unit, "ops")
            return scaled(value, decimals, 1000, SI) + f" {name}/s"
        case "rowsps":
            return scaled(value, decimals, 1000, SI) + " rows/s"
        case "dateTimeAsIso" | "time:YYYY-MM-DD HH:mm:ss":
            return moment(value).strftime("%Y-%m-%d %H:%M:%S")
        case "time:YYYY-MM-DD HH:mm" | "dateTimeAsIsoNoDateIfToday" | "dateTimeAsLocal":
            return moment(value).strftime("%Y-%m-%d %H:%M")
        case "time:HH:mm:ss":
            return moment(value).strftime("%H:%M:%S")
        case "dateTimeFromNow":
            return from_now(value, now)
        case "dtdhms" | "dthms":
            whole = int(value)
            text = f"{whole // 3600 % (24 if unit == 'dtdhms' else 10**9):02}:{whole // 60 % 60:02}:{whole % 60:02}"
            return f"{whole // 86400}d {text}" if unit == "dtdhms" and whole >= 86400 else text
        case "bool":
            return "True" if value else "False"
        case "bool_yes_no":
            return "Yes" if value else "No"
        case "bool_on_off":
            return "On" if value else "Off"
    raise SystemExit(f"the unit {unit!r} is not drawn")
