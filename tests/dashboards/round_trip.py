"""Reads dashboards through the types of a version of Grafana's Foundation SDK
and writes them again: whatever those types do not know is lost on the way, and
is said. Run with the Python of that version: round_trip.py FILE..."""

import json
import sys

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

# Fields that Prometheus's data source reads of an annotation, which the SDK's
# type of annotations leaves out.
OF_ANNOTATIONS = {"titleFormat", "step"}


def lost(before, after, place: str):
    """Fields of `before` that `after` has not, or has otherwise."""
    if isinstance(before, dict):
        if not isinstance(after, dict):
            yield f"{place}: became {after!r}"
            return
        for key, value in before.items():
            where = f"{place}.{key}"
            if ".annotations.list" in place and key in OF_ANNOTATIONS:
                continue
            if key in after:
                yield from lost(value, after[key], where)
            elif value not in (None, [], {}):
                yield f"{where}: not known"
    elif isinstance(before, list):
        if not isinstance(after, list) or len(before) != len(after):
            yield f"{place}: became {after!r}"
            return
        for number, (one, other) in enumerate(zip(before, after)):
            yield from lost(one, other, f"{place}[{number}]")
    elif before != after:
        yield f"{place}: {before!r} became {after!r}"


def main() -> int:
    register_default_plugins()
    found = 0
    for file in sys.argv[1:]:
        with open(file, encoding="utf-8") as handle:
            before = json.load(handle)
        after = json.loads(json.dumps(Dashboard.from_json(before), cls=JSONEncoder))
        for problem in lost(before, after, "$"):
            print(f"{file}: {problem}")
            found += 1
    return 1 if found else 0


sys.exit(main())
