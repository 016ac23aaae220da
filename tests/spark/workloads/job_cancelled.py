"""A job that is cancelled on purpose.

Makes: one job in a group of its own, cancelled after some tasks; then a small
job that succeeds. The program ends with status 0.

A right diagnosis says: one job cancelled; nothing failed.

The tempting wrong verdict: job_failed, because the event log says JobFailed; task
failures, from the killed tasks.
"""

import threading

from session import session, wait_for_executors, wait_for_tasks, work

from pyspark.sql import functions as F

spark = session("search-index")
context = spark.sparkContext
wait_for_executors(spark, 2)


def build():
    context.setJobGroup("build-index", "build the whole index", interruptOnCancel=True)
    try:
        work(spark.range(0, 2_000_000, 1, 40), rounds=5).agg(F.sum("cost")).collect()
    except Exception as error:
        print(f"cancelled: {type(error).__name__}")


# A plain thread: it sets its own job group, and with pyspark's InheritableThread
# the call site would be a line of Python's own threading module.
builder = threading.Thread(target=build)
builder.start()
wait_for_tasks(spark, 0, 4)
context.cancelJobGroup("build-index")
builder.join()
print(work(spark.range(0, 40_000, 1, 4), rounds=2).agg(F.sum("cost")).collect())
spark.stop()
