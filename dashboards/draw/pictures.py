#!/usr/bin/env python3
"""Makes docs/dashboards/*.png: `make pictures`.

Place: runs the whole. Recorded runs happen again (examples/compose/replay.py),
our daemon reads their logs, a real Prometheus scrapes it, and after some
minutes each dashboard is drawn from its JSON and what that Prometheus answers.

    dashboards/draw/pictures.py [--minutes 8] [DASHBOARD...]

Needs the program (cargo build), Chromium, and tests/parts/.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from prometheus import Prometheus

ROOT = Path(__file__).resolve().parents[2]
SCRAPE = "2s"
# Pictures are part of the documentation, and of every clone.
LARGEST = 250_000

# The newest run in which it was found: its beginning is in the time range.
SKEWED = (
    'topk(1, spark_finding_wall_seconds{app_name="orders-by-customer", rule="data_skew"} * 0'
    " + on (spark_cluster, app_id, attempt_id) group_left () spark_application_start_timestamp_seconds)"
)

# What each dashboard is about: the variables that a person would choose, found
# by a query whose first series has them as labels.
SUBJECTS = {
    "fleet": (None, []),
    "job": ('spark_application_info{app_name="nightly-etl"}', ["spark_cluster", "app_name"]),
    "application": (
        SKEWED,
        ["spark_cluster", "app_name", "app_id"],
    ),
    "stage": (
        SKEWED,
        ["spark_cluster", "app_name", "app_id", "stage_id"],
    ),
    # While it runs and is behind: some of each two minutes.
    "streaming": (
        'spark_finding{rule="streaming_behind"}'
        ' and on (spark_cluster, app_id, attempt_id) spark_application_state{state="running"} == 1',
        ["spark_cluster", "app_name", "app_id"],
    ),
    "exporter": (None, []),
}


# README.md shows the head of one.
HEAD = ("fleet", "Runs now", "fleet-head")


def part(*arguments):
    script = ROOT / "tests/parts" / arguments[0]
    done = subprocess.run([script, *arguments[1:]], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{script} failed: it says above why")
    return Path(done.stdout.strip().splitlines()[-1])


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Started:
    """Programs that end with this."""

    def __init__(self):
        self.programs = []

    def start(self, log, *command):
        with log.open("w") as output:
            self.programs.append(subprocess.Popen(list(map(str, command)), stdout=output, stderr=output))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for program in self.programs:
            program.terminate()
        for program in self.programs:
            program.wait(timeout=20)


def run_all(started, folder, minutes):
    """Starts everything and waits; the URL of Prometheus."""
    logs = folder / "spark-events"
    logs.mkdir()
    program = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug/spark-exporter"
    if not program.exists():
        sys.exit(f"{program} is not there: cargo build")
    exporter, page = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    given = (ROOT / "examples/compose/spark-exporter.yml").read_text()
    config = folder / "spark-exporter.yml"
    config.write_text(given.replace("/var/log/spark-events", str(logs)))
    scrape = folder / "prometheus.yml"
    scrape.write_text(
        f"global: {{scrape_interval: {SCRAPE}, evaluation_interval: {SCRAPE}}}\n"
        f"rule_files: ['{ROOT}/alerts/spark-*.yml']\n"
        f"scrape_configs: [{{job_name: spark-exporter, static_configs: [{{targets: ['{exporter}']}}]}}]\n"
    )
    python = part("compose-tools") / "bin/python"
    started.start(folder / "replay.log", python, ROOT / "examples/compose/replay.py", ROOT / "examples", logs)
    started.start(folder / "exporter.log", program, f"--config.file={config}", f"--web.listen-address={exporter}")
    started.start(
        folder / "prometheus.log", part("prometheus") / "prometheus", f"--config.file={scrape}",
        f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address={page}",
    )
    print(f"Prometheus: http://{page}, the exporter: http://{exporter}; drawing in {minutes} minutes")
    ends = time.time() + minutes * 60
    while time.time() < ends:
        time.sleep(1)
        for one in started.programs:
            if one.poll() is not None:
                sys.exit(f"{one.args[0]} ended: see\n" + "\n".join(log.read_text()[-2000:] for log in folder.glob("*.log")))
    return f"http://{page}"


def subject(url, name):
    """--var NAME=VALUE of what a dashboard is about."""
    expression, labels = SUBJECTS[name]
    if expression is None:
        return []
    patience = time.time() + 300
    while not (found := Prometheus(url, time.time() - 60, time.time()).instant(expression)):
        if time.time() > patience:
            sys.exit(f"{name}: nothing to show, {expression} has no result")
        time.sleep(1)
    wanted = {one["name"] for one in json.loads((ROOT / f"dashboards/{name}.json").read_text())["templating"]["list"]}
    given = found[0]["metric"]
    return [word for label in labels if label in wanted for word in ("--var", f"{label}={given[label]}")]


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    options.add_argument("dashboards", nargs="*", default=list(SUBJECTS), metavar="DASHBOARD")
    options.add_argument("--minutes", type=float, default=8)
    options.add_argument("--prometheus", help="draw from this one instead, which is there already")
    options.add_argument("--keep", type=Path, help="a folder for logs and data, kept afterwards")
    options = options.parse_args()
    # What was started ends with this, however it ends.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    out = ROOT / "docs/dashboards"
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, Started() as started:
        url = options.prometheus or run_all(started, options.keep or Path(folder), options.minutes)
        last = f"{max(5, round(options.minutes))}m"
        python = part("picture-tools") / "bin/python"
        pictures = [(name, name, []) for name in options.dashboards]
        if HEAD[0] in options.dashboards:
            pictures.append((HEAD[0], HEAD[2], ["--above", HEAD[1]]))
        for name, file, more in pictures:
            picture = out / f"{file}.png"
            command = [python, ROOT / "dashboards/draw", ROOT / f"dashboards/{name}.json", picture, *more]
            given = ["--prometheus", url, "--last", last, "--scrape", SCRAPE, *subject(url, name)]
            subprocess.run([*map(str, command), *given], check=True)
            size = picture.stat().st_size
            print(f"{picture.relative_to(ROOT)}: {size // 1000} kB")
            if size > LARGEST:
                sys.exit(f"{picture} is larger than {LARGEST // 1000} kB")


if __name__ == "__main__":
    main()
