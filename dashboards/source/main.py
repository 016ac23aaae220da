"""Writes dashboards/*.json. Run by `make dashboards`; `--check` compares and
writes nothing; `--to DIRECTORY` writes there.

The dashboards are made with Grafana's own Foundation SDK, in the version for
the oldest Grafana that is supported, so that nothing newer than that is used."""

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from grafana_foundation_sdk.cog.encoder import JSONEncoder  # noqa: E402
from grafana_foundation_sdk.models.dashboard import RowPanel  # noqa: E402

import application  # noqa: E402
import exporter  # noqa: E402
import fleet  # noqa: E402
import job  # noqa: E402
import stage  # noqa: E402
import streaming  # noqa: E402

MAKERS = {
    "fleet": fleet.make,
    "job": job.make,
    "application": application.make,
    "stage": stage.make,
    "streaming": streaming.make,
    "exporter": exporter.make,
}

# What Grafana 10.1 writes itself; newer ones bring it up to date when they load it.
SCHEMA_VERSION = 38


def rendered(name: str) -> str:
    made = MAKERS[name]().build()
    made.schema_version = SCHEMA_VERSION
    # Stable: panels are numbered in the order in which they are read.
    for number, panel in enumerate(made.panels or [], start=1):
        panel.id_val = number
        if isinstance(panel, RowPanel):
            panel.panels = []
    out = json.loads(json.dumps(made, cls=JSONEncoder))
    # Defaults of the SDK that say nothing, some of which newer types have given up.
    del out["style"]
    for variable in out["templating"]["list"]:
        for key in ("id", "auto", "auto_min", "auto_count"):
            del variable[key]
    return json.dumps(out, indent=2, ensure_ascii=False) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--to", type=Path, default=Path(__file__).resolve().parents[1])
    arguments = parser.parse_args()
    stale = []
    for name in MAKERS:
        text, file = rendered(name), arguments.to / f"{name}.json"
        if not arguments.check:
            file.write_text(text, encoding="utf-8")
        elif not file.exists() or file.read_text(encoding="utf-8") != text:
            stale.append(file.name)
    if stale:
        print(f"{', '.join(stale)}: not what the source makes: run make dashboards", file=sys.stderr)
    return 1 if stale else 0


sys.exit(main())
