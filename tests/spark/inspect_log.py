#!/usr/bin/env python3
"""Print what an event log says, one line a stage attempt.

    inspect_log.py [--json] LOG

LOG is a single file or a rolling directory (eventlog_v2_*), plain or zstd.
This is a second implementation, on purpose independent of the one in src/ and
slow: tests and people compare the two. Times are seconds, sizes bytes.

A stage line shows: attempt, status, tasks ok/failed/killed, then for run time
min/median/max over successful tasks by Spark's own quantile,
sorted[min(floor(q * n), n - 1)], then max/median of run time, of records and of
bytes, and sums over all attempts that carry metrics.
"""

import argparse
import collections
import json
import math
import pathlib
import re
import subprocess
import sys

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


def files_of(path):
    """The event files of a log in the order in which they were written."""
    if not path.is_dir():
        return [path]
    numbered = []
    for file in path.iterdir():
        match = re.match(r"events_(\d+)_", file.name)
        if match:
            numbered.append((int(match.group(1)), file))
    return [file for _, file in sorted(numbered)]


def events_of(path):
    for file in files_of(path):
        with open(file, "rb") as opened:
            compressed = opened.read(4) == ZSTD_MAGIC
        if compressed:
            text = subprocess.run(["zstd", "-dcq", file], stdout=subprocess.PIPE, check=False).stdout
        else:
            text = file.read_bytes()
        for line in text.splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                yield {"Event": "unreadable line"}


def quantile(values, q):
    values = sorted(values)
    return values[min(math.floor(q * len(values)), len(values) - 1)] if values else None


def task_numbers(event):
    """What a task did, in seconds, bytes and records; None where it has no metrics."""
    metrics = event.get("Task Metrics")
    if metrics is None:
        return None
    read = metrics.get("Shuffle Read Metrics", {})
    write = metrics.get("Shuffle Write Metrics", {})
    source = metrics.get("Input Metrics", {})
    sink = metrics.get("Output Metrics", {})
    shuffle_read = read.get("Remote Bytes Read", 0) + read.get("Local Bytes Read", 0)
    return {
        "run_time": metrics["Executor Run Time"] / 1e3,
        "cpu_time": metrics["Executor CPU Time"] / 1e9,
        "gc": metrics["JVM GC Time"] / 1e3,
        "deserialize": metrics["Executor Deserialize Time"] / 1e3,
        "fetch_wait": read.get("Fetch Wait Time", 0) / 1e3,
        "records_read": source.get("Records Read", 0) + read.get("Total Records Read", 0),
        "records_written": sink.get("Records Written", 0) + write.get("Shuffle Records Written", 0),
        "bytes_read": source.get("Bytes Read", 0) + shuffle_read,
        "input": source.get("Bytes Read", 0),
        "output": sink.get("Bytes Written", 0),
        "shuffle_read": shuffle_read,
        "shuffle_write": write.get("Shuffle Bytes Written", 0),
        "memory_spilled": metrics["Memory Bytes Spilled"],
        "disk_spilled": metrics["Disk Bytes Spilled"],
    }


class Log:
    def __init__(self, path):
        self.application = {}
        self.jobs = {}
        self.stages = collections.OrderedDict()
        self.tasks = collections.defaultdict(list)
        self.executors = collections.OrderedDict()
        self.kinds = collections.Counter()
        for event in events_of(path):
            self.read(event)

    def read(self, event):
        kind = event["Event"].split(".")[-1].removeprefix("SparkListener")
        self.kinds[kind] += 1
        if kind == "LogStart":
            self.application["spark"] = event["Spark Version"]
        elif kind == "ApplicationStart":
            self.application |= {
                "id": event["App ID"], "name": event["App Name"], "start": event["Timestamp"],
                "attempt": event.get("App Attempt ID"),
            }
        elif kind == "ApplicationEnd":
            self.application |= {"end": event["Timestamp"], "exit_code": event.get("ExitCode")}
        elif kind == "JobStart":
            self.jobs[event["Job ID"]] = {"start": event["Submission Time"], "stages": event["Stage IDs"]}
        elif kind == "JobEnd":
            result = event["Job Result"]
            reason = result.get("Exception", {}).get("Message") or ""
            self.jobs[event["Job ID"]] |= {
                "end": event["Completion Time"], "result": result["Result"], "reason": reason.split("\n")[0],
            }
        elif kind in ("StageSubmitted", "StageCompleted"):
            info = event["Stage Info"]
            self.stages[info["Stage ID"], info["Stage Attempt ID"]] = info
        elif kind == "TaskEnd":
            self.tasks[event["Stage ID"], event["Stage Attempt ID"]].append(event)
        elif kind == "ExecutorAdded":
            self.executors[event["Executor ID"]] = {
                "host": event["Executor Info"]["Host"], "cores": event["Executor Info"]["Total Cores"],
                "added": event["Timestamp"],
            }
        elif kind == "ExecutorRemoved":
            self.executors.setdefault(event["Executor ID"], {})
            self.executors[event["Executor ID"]] |= {
                "removed": event["Timestamp"], "reason": event["Removed Reason"].split("\n")[0],
            }

    def stage(self, key):
        info, ends = self.stages[key], self.tasks[key]
        reasons = collections.Counter(end["Task End Reason"]["Reason"] for end in ends)
        # By the reason and not by the flags of Task Info, as Spark's own listener
        # does: a Resubmitted end repeats the info of a task that succeeded before
        # its executor was lost, and counts as failed.
        succeeded = [end for end in ends if end["Task End Reason"]["Reason"] == "Success"]
        good = [numbers for numbers in map(task_numbers, succeeded) if numbers]
        everything = [numbers for numbers in map(task_numbers, ends) if numbers]
        submitted, completed = info.get("Submission Time"), info.get("Completion Time")
        launches = [end["Task Info"]["Launch Time"] for end in ends]
        answer = {
            "stage": key[0],
            "attempt": key[1],
            "name": info["Stage Name"].split(" at ")[0],
            "status": "failed" if info.get("Failure Reason") else "complete" if completed else "unfinished",
            "failure": (info.get("Failure Reason") or "").split("\n")[0] or None,
            "wall": (completed - submitted) / 1e3 if submitted and completed else None,
            "first_launch_after": (min(launches) - submitted) / 1e3 if launches and submitted else None,
            "number_of_tasks": info["Number of Tasks"],
            "succeeded": len(succeeded),
            "killed": reasons["TaskKilled"] + reasons["TaskCommitDenied"],
            "reasons": dict(reasons),
            "localities": dict(collections.Counter(end["Task Info"]["Locality"] for end in ends)),
            "speculative": sum(end["Task Info"]["Speculative"] for end in ends),
            "sums": {name: sum(numbers[name] for numbers in everything) for name in (everything or [{}])[0]},
            "quantiles": {
                name: {label: quantile([numbers[name] for numbers in good], q)
                       for label, q in (("min", 0.0), ("p25", 0.25), ("median", 0.5), ("p75", 0.75),
                                        ("p95", 0.95), ("max", 1.0))}
                for name in (good or [{}])[0]
            },
        }
        answer["failed"] = len(ends) - answer["succeeded"] - answer["killed"]
        return answer

    def summary(self):
        return {
            "application": self.application,
            "jobs": self.jobs,
            "stages": [self.stage(key) for key in sorted(self.stages)],
            "executors": self.executors,
            "events": dict(self.kinds),
        }


def ratio(stage, name):
    numbers = stage["quantiles"].get(name)
    if not numbers or not numbers["median"]:
        return "-"
    return f"{numbers['max'] / numbers['median']:.1f}"


def size(count):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f}{unit}" if unit == "B" else f"{count:.1f}{unit}"
        count /= 1024


def text(summary):
    application = summary["application"]
    seconds = (application["end"] - application["start"]) / 1e3 if "end" in application else math.nan
    yield (f"{application.get('name')} {application.get('id')} Spark {application.get('spark')} "
           f"{seconds:.1f}s exit_code={application.get('exit_code')}")
    for number, job in summary["jobs"].items():
        if job.get("result") != "JobSucceeded":
            yield f"  job {number}: {job.get('result')} {job.get('reason', '')[:160]}"
    shown = summary["stages"]
    if len(shown) > 30:
        yield f"  {len(shown)} stage attempts, the 30 longest:"
        shown = sorted(sorted(shown, key=lambda stage: -(stage["wall"] or 0))[:30], key=lambda s: s["stage"])
    for stage in shown:
        sums, run = stage["sums"], stage["quantiles"].get("run_time")
        line = (f"  stage {stage['stage']}.{stage['attempt']} {stage['name']} {stage['status']} "
                f"wall={stage['wall']}s first_launch=+{stage['first_launch_after']}s "
                f"tasks={stage['number_of_tasks']} ok/failed/killed={stage['succeeded']}/{stage['failed']}/{stage['killed']}")
        if run:
            line += (f"\n    run min/med/max={run['min']:.3f}/{run['median']:.3f}/{run['max']:.3f}s"
                     f" ratio run={ratio(stage, 'run_time')} read={ratio(stage, 'records_read')}"
                     f" written={ratio(stage, 'records_written')} bytes_read={ratio(stage, 'bytes_read')}")
        if sums:
            line += (f"\n    sum run={sums['run_time']:.1f}s cpu={sums['cpu_time']:.1f}s gc={sums['gc']:.1f}s"
                     f" deser={sums['deserialize']:.1f}s fetch_wait={sums['fetch_wait']:.1f}s"
                     f" records_read={sums['records_read']} in={size(sums['input'])} out={size(sums['output'])}"
                     f" sr={size(sums['shuffle_read'])} sw={size(sums['shuffle_write'])}"
                     f" spill mem/disk={size(sums['memory_spilled'])}/{size(sums['disk_spilled'])}")
        extra = {name: count for name, count in stage["reasons"].items() if name != "Success"}
        if extra or stage["speculative"]:
            line += f"\n    {extra} speculative={stage['speculative']}"
        if stage["failure"]:
            line += f"\n    failure: {stage['failure'][:200]}"
        yield line
    for number, executor in summary["executors"].items():
        if "removed" in executor:
            ending = f"removed +{(executor['removed'] - application['start']) / 1e3:.1f}s: {executor['reason'][:160]}"
        else:
            ending = "not removed"
        added = f"+{(executor['added'] - application['start']) / 1e3:.1f}s" if "added" in executor else "never"
        yield f"  executor {number} on {executor.get('host')} cores={executor.get('cores')} added {added} {ending}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("log", type=pathlib.Path)
    options = parser.parse_args()
    if not options.log.exists():
        sys.exit(f"inspect_log: no such log: {options.log}")
    summary = Log(options.log).summary()
    if options.json:
        json.dump(summary, sys.stdout, indent=1)
    else:
        print("\n".join(text(summary)))


if __name__ == "__main__":
    main()
