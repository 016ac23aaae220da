"""The driver runs out of memory.

Makes: one job on the executors, then the program fills the driver's heap of 512 MB
until the JVM exits (-XX:+ExitOnOutOfMemoryError), as if its container had been killed:
the log stays in progress. The driver's heap is logged
(spark.eventLog.logStageExecutorMetrics). Without that option a Python program dies of
the exception, and Spark ends the log as of any other run, with exit code 0.

A right diagnosis says: memory, heap_oom: the driver's heap was full when the log
ended.

The tempting wrong verdict: a failed executor; an application that still runs.
"""

from session import session, wait_for_executors, work

from pyspark.sql import functions as F

spark = session("rollup-collect")
wait_for_executors(spark, 2)
print(work(spark.range(0, 40_000, 1, 4), rounds=3).agg(F.sum("cost")).collect())
held = spark._jvm.java.util.ArrayList()
while True:
    held.add(spark._jvm.java.lang.StringBuilder(28 << 20))
    # Small jobs, with which Spark writes what the heap holds.
    spark.range(0, 2, 1, 2).count()
