#!/usr/bin/env python3
"""Lets the recorded runs of examples/ happen again, now.

Place: it stands in for Spark in the compose file, and in `make pictures`. It
writes event logs as a driver does: line by line as their moments come, into a
file that ends in `.inprogress` and is renamed when the run has ended. All
moments of a run are moved by the same time, and it gets an id of its own;
nothing else is changed, so a run takes as long as the real one did, and what
the exporter says of it is what it says of the recording.

    replay.py EXAMPLES OUT [--once] [--keep SECONDS]

Needs Python 3.14, whose standard library reads zstd, or an older one with the
package backports.zstd.
"""

import argparse
import calendar
import heapq
import itertools
import re
import sys
import time
from pathlib import Path

try:
    from compression import zstd
except ImportError:
    from backports import zstd

# Nights of one job that lie behind us when this starts, one a day: what its
# later nights are held against. The nineteenth night was slowed on purpose.
HISTORY = "history/nightly_etl/4.3.0"
PAST_NIGHTS = 17

# What runs now: each row one after the other, the rows beside each other.
ROWS = {
    "the same job, every few minutes": [
        *(f"{HISTORY}/*-{night:04}" for night in (18, 19, 20, 21, 22, 23, 24, 25)),
    ],
    "failures": [
        "logs/application_failed/4.3.0",
        "logs/stage_retries/4.3.0",
        "logs/executor_heap_oom/4.3.0",
        "logs/job_failed/4.3.0",
        "logs/task_failures/4.3.0",
    ],
    "slow": [
        "logs/hot_key/4.3.0",
        "logs/healthy/4.3.0",
        "logs/gc_pressure/4.3.0",
        "logs/spill/4.3.0",
        "logs/hot_key-healthy/4.3.0",
        "logs/straggler_slow_host/4.3.0",
        "logs/join_explosion/4.3.0",
        "logs/python_udf/4.3.0",
        "logs/driver_gap/4.3.0",
        "logs/io_bound/4.3.0",
        "logs/scheduling_no_executors/4.3.0",
    ],
    "streams": [
        "logs/streaming_behind/4.3.0",
        "logs/streaming/4.3.0",
    ],
}
# A driver that waits for a task for ever: its log has no end. Played once.
STUCK = "logs/stuck_stage/4.3.0"

# Between two runs of a row.
PAUSE_SECONDS = 10
# Streams trigger at whole multiples of their interval (2 and 4 seconds here)
# since the epoch; moved by anything else, none of them would any more.
GRID = 4_000
DAY = 86_400_000

# Spark writes moments in milliseconds; progress of a streaming query as text.
MOMENT = re.compile(r"\b1[6-9]\d{11}\b")
MOMENT_AS_TEXT = re.compile(r"\b(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.(\d{3})Z")

# Events after which a driver writes out what waits in its buffer.
WRITTEN_OUT = re.compile(
    r'\{"Event":"SparkListener(Application(Start|End)|Job(Start|End)|StageCompleted|Executor(Added|Removed))"'
)


def decompressed(file):
    """The text of a file, of one that was cut off too: as far as it goes."""
    data = file.read_bytes()
    if ".zstd" not in file.name:
        return data.decode()
    parts = []
    while data:
        frame = zstd.ZstdDecompressor()
        parts.append(frame.decompress(data))
        data = frame.unused_data if frame.eof else b""
    return b"".join(parts).decode(errors="ignore")


def lines_of(place):
    """The events of the one run in a folder, as text."""
    files = [place] if place.is_file() else sorted(place.rglob("*"))
    # A rolling log has a file that only says whether it has ended.
    logs = [file for file in files if file.is_file() and not file.name.startswith("appstatus_")]
    if not logs:
        sys.exit(f"no event log in {place}")
    lines = "".join(map(decompressed, logs)).splitlines()
    return [line for line in lines if line.startswith("{") and line.endswith("}")]


class Run:
    """A recorded run whose beginning, or end, is put at a moment."""

    def __init__(self, place, number, begins=None, ends=None):
        lines = lines_of(place)
        started = next(line for line in lines if "SparkListenerApplicationStart" in line)
        old_id = re.search(r'"App ID":"([^"]+)"', started)[1]
        # A number as large as a moment need not be one: those near the run are.
        self.began = int(re.search(r'"Timestamp":(\d+)', started)[1])
        due = list(itertools.accumulate(map(self.latest, lines), max))
        self.shift = begins - self.began if ends is None else ends - due[-1]
        self.shift -= self.shift % GRID
        begins = self.began + self.shift
        stamp = time.strftime("%Y%m%d%H%M%S", time.gmtime(begins / 1000))
        self.id = f"app-{stamp}-{number:04}"
        self.lines = [self.moved(line).replace(old_id, self.id) for line in lines]
        self.due = [moment + self.shift for moment in due]
        self.has_end = any("SparkListenerApplicationEnd" in line for line in lines[-20:])

    def near(self, moment):
        return self.began - DAY < moment < self.began + DAY

    def latest(self, line):
        return max(filter(self.near, map(int, MOMENT.findall(line))), default=0)

    def moved(self, line):
        def number(found):
            moment = int(found[0])
            return str(moment + self.shift) if self.near(moment) else found[0]

        def text(found):
            seconds = calendar_seconds(found[1]) * 1000 + int(found[2]) + self.shift
            day = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds // 1000))
            return f"{day}.{seconds % 1000:03}Z"

        return MOMENT_AS_TEXT.sub(text, MOMENT.sub(number, line))


def calendar_seconds(text):
    return calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))


def now():
    return time.time_ns() // 1_000_000


def write_history(examples, out, numbers):
    """The nights that lie behind us, whole."""
    nights = sorted((examples / HISTORY).iterdir())[:PAST_NIGHTS]
    for age, place in zip(range(len(nights), 0, -1), nights):
        run = Run(place, next(numbers), ends=now() - age * DAY)
        (out / run.id).write_text("\n".join(run.lines) + "\n")


def play(run, out):
    """Writes the run as time goes by; yields the moment it wants to go on."""
    growing = out / f"{run.id}.inprogress"
    print(f"begins: {run.id}", flush=True)
    waiting = []
    for line, due in zip(run.lines, run.due):
        if due > now():
            yield due
        waiting.append(line + "\n")
        if WRITTEN_OUT.match(line):
            with growing.open("a") as log:
                log.writelines(waiting)
            waiting = []
    with growing.open("a") as log:
        log.writelines(waiting)
    if run.has_end:
        growing.rename(out / run.id)
        print(f"ended: {run.id}", flush=True)


def row(places, examples, out, numbers, once):
    """Plays the runs of a row one after the other, over and over."""
    for pattern in places if once else itertools.cycle(places):
        found = sorted(examples.glob(pattern))
        if not found:
            sys.exit(f"{examples} has no {pattern}")
        yield from play(Run(found[0], next(numbers), begins=now()), out)
        yield now() + PAUSE_SECONDS * 1000


def forget(out, keep):
    """Removes logs that nobody wrote for so long, but those of days ago."""
    for log in out.glob("app-*"):
        written = log.stat().st_mtime
        recent = time.strftime("app-%Y%m%d", time.gmtime(written))
        if log.name.startswith(recent) and time.time() - written > keep:
            log.unlink(missing_ok=True)


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    options.add_argument("examples", type=Path, help="the folder examples/")
    options.add_argument("out", type=Path, help="where logs are written")
    options.add_argument("--once", action="store_true", help="each run once, then end")
    options.add_argument("--keep", type=float, default=7200, help="seconds that logs are kept")
    options = options.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    numbers = itertools.count()
    # Logs of an earlier start stay: the exporter knows them already.
    if not any(options.out.iterdir()):
        write_history(options.examples, options.out, numbers)
    given = (options.examples, options.out, numbers)
    rows = [row(places, *given, options.once) for places in ROWS.values()]
    rows.append(row([STUCK], *given, once=True))

    # Whoever is due first goes on.
    waiting = [(0, index, one) for index, one in enumerate(rows)]
    while waiting:
        due, index, one = heapq.heappop(waiting)
        time.sleep(max(0, due - now()) / 1000)
        due = next(one, None)
        if due is not None:
            heapq.heappush(waiting, (due, index, one))
        forget(options.out, options.keep)


if __name__ == "__main__":
    main()
