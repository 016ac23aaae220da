"""A free executor gets no task, because the data is cached on the other one.

Makes: one executor caches twelve partitions; dynamic allocation then adds a
second one, which stays idle for spark.locality.wait, 15 s, while tasks take
about two seconds each.

A right diagnosis says: scheduling_delay, locality: shorten spark.locality.wait.

The tempting wrong verdict: skew, a straggler, or "add executors" when one of two
is idle.

--healthy sets spark.locality.wait=0s. --idle waits 10 s and would give executors
back that were idle for four; since SPARK-21656 Spark keeps those that it has tasks
for, though it does not use them.
"""

import argparse

from session import session, wait_for_executors, warm_up, work

from pyspark.sql import functions as F

parser = argparse.ArgumentParser()
parser.add_argument("--healthy", action="store_true")
parser.add_argument("--idle", action="store_true")
options = parser.parse_args()
spark = session("basket-model" + ("-nowait" if options.healthy else "-idle" if options.idle else ""), {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "1",
    "spark.dynamicAllocation.initialExecutors": "1",
    "spark.dynamicAllocation.maxExecutors": "2",
    "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
    "spark.locality.wait": "0s" if options.healthy else "10s" if options.idle else "15s",
    "spark.dynamicAllocation.executorIdleTimeout": "4s" if options.idle else "60s",
})
wait_for_executors(spark, 1)
baskets = spark.range(0, 480_000, 1, 12).cache()
# Filled a partition at a time and within the backlog timeout, so only the first
# executor holds it.
baskets.count()
print(work(baskets, rounds=6).agg(F.sum("cost")).collect())
spark.stop()
