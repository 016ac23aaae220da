"""The driver runs out of memory.

Makes: one job on the executors, then the program fills the driver's heap of 512 MB
until the JVM exits (-XX:+ExitOnOutOfMemoryError), as if its container had been killed:
the log stays in progress. The driver's heap is logged
(spark.eventLog.logStageExecutorMetrics). Without that option a Python program dies of
the exception, and Spark ends the log as of any other run, with exit code 0.

A right diagnosis says: nothing certain. The log stops, and the driver's heap was 78 %
full when it last told; Spark writes that with the next event only.

The tempting wrong verdict: a driver out of memory wherever its heap once was full of
garbage; a failed executor.
"""

import time

from session import session, wait_for_executors, work

from pyspark.sql import functions as F

spark = session("rollup-collect")
wait_for_executors(spark, 2)
print(work(spark.range(0, 40_000, 1, 4), rounds=3).agg(F.sum("cost")).collect())
java = spark._jvm.java
runtime = java.lang.Runtime.getRuntime()
held = java.util.ArrayList()
while True:
    used = (runtime.totalMemory() - runtime.freeMemory()) / runtime.maxMemory()
    close = used > 0.85
    for _ in range(5 if close else 80):
        held.add(java.lang.StringBuilder(400_000))
    # A heartbeat tells of the heap, and a small job makes Spark write it.
    time.sleep(0.6)
    spark.sparkContext.parallelize([1], 1).count()
