"""Draws a dashboard from its JSON and a real Prometheus's answers.

    python3 dashboards/draw DASHBOARD.json OUTPUT.png --prometheus URL
        [--last 15m] [--scrape 1s] [--var NAME=VALUE]... [--above ROW]

Place: docs/dashboards/ has its pictures; `make pictures` runs it on recorded
runs that happen again. It is a stand-in, for machines that have no Grafana: it
draws the kinds of panels, transformations and units that our dashboards use,
the way Grafana does, and stops at any other. OUTPUT.html keeps the page.

Needs Chromium for OUTPUT.png; with Pillow it is a third of the size.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import page
from prometheus import Prometheus
from variables import Variables


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    options.add_argument("dashboard", type=Path)
    options.add_argument("output", type=Path)
    options.add_argument("--prometheus", required=True, help="its URL")
    options.add_argument("--last", default="15m", help="the time range, ending now")
    options.add_argument("--scrape", default="1s", help="how often Prometheus scrapes")
    options.add_argument("--var", action="append", default=[], help="NAME=VALUE of a variable")
    options.add_argument("--above", help="only what stands above the row with this title")
    options = options.parse_args()

    dashboard = json.loads(options.dashboard.read_text())
    if options.above:
        ends = next(one["gridPos"]["y"] for one in dashboard["panels"] if one.get("title") == options.above)
        dashboard["panels"] = [one for one in dashboard["panels"] if one["gridPos"]["y"] < ends]
    ends = time.time()
    prometheus = Prometheus(options.prometheus, ends - page.in_seconds(options.last), ends)
    scrape = page.in_seconds(options.scrape)
    given = dict(one.split("=", 1) for one in options.var)
    variables = Variables(dashboard, prometheus, given, scrape)
    drawn = page.Page(dashboard, prometheus, variables, scrape)
    html, height = drawn.html()
    if options.output.suffix == ".html":
        options.output.write_text(html)
    else:
        photograph(html, height, options.output)
    for title in drawn.empty:
        print(f"{options.dashboard.name}: no data: {title}", file=sys.stderr)


def photograph(html, height, output):
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("Chromium is not installed (Debian: chromium)")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "page.html"
        source.write_text(html)
        shot = Path(folder) / "shot.png"
        command = [
            chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
            f"--user-data-dir={folder}/profile", f"--window-size=1600,{int(height)}", f"--screenshot={shot}", source.as_uri(),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if not shot.exists():
            sys.exit(f"Chromium made no picture:\n{done.stderr}")
        try:
            from PIL import Image
        except ImportError:
            output.write_bytes(shot.read_bytes())
            return
        # Few large areas of colour: each must stay what it is.
        few = Image.open(shot).convert("RGB").quantize(256, method=Image.Quantize.MAXCOVERAGE)
        few.save(output, optimize=True)


if __name__ == "__main__":
    main()
