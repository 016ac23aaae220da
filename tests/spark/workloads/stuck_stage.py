"""Tasks that never end.

Makes: a stage of eight tasks; four end, the last four hang (sleeping, where others
wait for a lock or a service). Twelve seconds later a small job of another pool is
submitted, which finds no core; then the driver is killed. The log stays in
progress, as it does while the driver runs.

A right diagnosis says, while it runs: stuck_stage, once no task has ended for
long enough.

The tempting wrong verdict: an idle application; skew, before anything of the data
is known.
"""

# needs: java

import os
import signal
import threading
import time

from session import java, session, wait_for_executors, wait_for_tasks

from pyspark.sql import functions as F

spark = session("geocode-calls")
wait_for_executors(spark, 2)


def submit(frame):
    try:
        frame.collect()
    except Exception as error:
        print(type(error).__name__)


calls = spark.range(0, 8, 1, 8).withColumn(
    "waited", F.when(F.col("id") < 4, java("sleep", "500L").cast("long")).otherwise(java("sleep", "600000L").cast("long")))
threading.Thread(target=submit, args=(calls.agg(F.max("waited")),), daemon=True).start()
wait_for_tasks(spark, 0, 4)
time.sleep(12)
# Its submission makes Spark write what it has.
threading.Thread(target=submit, args=(spark.range(0, 2, 1, 2),), daemon=True).start()
time.sleep(3)
os.kill(int(spark._jvm.java.lang.ProcessHandle.current().pid()), signal.SIGKILL)
