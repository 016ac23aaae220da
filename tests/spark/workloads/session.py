"""What the workloads share: the session, and a few ways to do harm."""

import argparse
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time

from pyspark.sql import SparkSession

# Data that a workload reads or writes: a neutral place, because its path is in
# the event log.
DATA = pathlib.Path(tempfile.gettempdir()) / "spark-exporter" / "data"


def arguments(*more):
    """`--healthy` and what the workload adds, as (name, default) pairs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--healthy", action="store_true")
    for name, default in more:
        parser.add_argument(f"--{name}", type=type(default), default=default)
    return parser.parse_args()


def session(name, conf=()):
    """A session whose first two lines on standard output say where it is."""
    builder = SparkSession.builder.appName(name)
    # Two executors with one core each, wherever there are executors at all.
    defaults = {
        "spark.executor.cores": "1",
        "spark.executor.memory": "1000m",
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
    }
    for key, value in (defaults | dict(conf)).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    context = spark.sparkContext
    print(f"app_id={context.applicationId}", flush=True)
    print(f"ui={context.uiWebUrl}", flush=True)
    return spark


def wait_for_executors(spark, count, seconds=60):
    """Wait until `count` executors have registered, so that no stage waits for them."""
    tracker = spark.sparkContext._jsc.sc().statusTracker()
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        # getExecutorInfos counts the driver.
        if len(tracker.getExecutorInfos()) - 1 >= count:
            return
        time.sleep(0.1)
    print(f"only {len(tracker.getExecutorInfos()) - 1} of {count} executors came", file=sys.stderr)


def warm_up(spark, seconds=3.0):
    """Run the code paths that follow on both executors until the JIT has compiled them."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        work(spark.range(0, 40_000, 1, 4).repartition(4, "id"), rounds=3).agg({"cost": "sum"}).collect()


def work(frame, rounds, key="id"):
    """Add a column that costs about `rounds` x 8 microseconds of CPU a row, in the JVM."""
    from pyspark.sql import functions as F

    text = F.repeat(F.concat(F.col(key).cast("string"), F.lit("-")), 500 * rounds)
    return frame.withColumn("cost", F.length(F.sha2(text, 512)))


def incompressible(key, size):
    """A string column of `size` characters (a multiple of 128) that lz4 and zstd cannot shrink much."""
    from pyspark.sql import functions as F

    return F.concat(*[F.sha2(F.concat(F.col(key).cast("string"), F.lit(f"/{part}")), 512) for part in range(size // 128)])


def java(function, *parameters):
    """A call of java/sparkexporter/Faults.java for each row. The workload needs the comment `# needs: java`."""
    from pyspark.sql import functions as F

    written = "".join(f", {parameter}" for parameter in parameters)
    return F.expr(f"java_method('sparkexporter.Faults', '{function}'{written})")


def fail_at_end(frame, plan):
    """Make tasks of this frame's stage fail when they have read all their rows.

    `plan` is a list of (partition, how many attempts fail, "record" or "memory").
    The workload needs the comment `# needs: java`.
    """
    written = ",".join(":".join(map(str, entry)) for entry in plan)
    faults = frame.sparkSession._jvm.sparkexporter.Faults
    return type(frame)(faults.failAtEnd(frame._jdf, written), frame.sparkSession)


def executor_process(application, executor):
    """Process id of an executor on this machine, or None."""
    for folder in pathlib.Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if "--app-id" in words and words[words.index("--app-id") + 1] == application:
            if words[words.index("--executor-id") + 1] == str(executor):
                return int(folder.name)
    return None


def kill_executor(spark, executor):
    """kill -9, as the kernel's OOM killer does it."""
    process = executor_process(spark.sparkContext.applicationId, executor)
    if process is None:
        sys.exit(f"no executor {executor} on this machine")
    os.kill(process, signal.SIGKILL)


def wait_for_tasks(spark, stage, count, seconds=60):
    """Wait until `count` tasks of a stage have ended. Job groups do not matter."""
    tracker = spark.sparkContext.statusTracker()
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        info = tracker.getStageInfo(stage)
        if info is not None and info.numCompletedTasks >= count:
            return
        time.sleep(0.05)


def fresh_folder(name):
    """An empty folder for the data of this run."""
    folder = DATA / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
