"""A free executor gets no task, because the data is cached on the other one.

Makes: one executor caches twelve partitions; dynamic allocation then adds a
second one, which stays idle for spark.locality.wait, 15 s, while tasks take
about two seconds each.

A right diagnosis says: scheduling_delay, locality: shorten spark.locality.wait.

The tempting wrong verdict: skew, a straggler, or "add executors" when one of two
is idle.

--healthy sets spark.locality.wait=0s.
"""

from session import arguments, session, wait_for_executors, warm_up, work

from pyspark.sql import functions as F

options = arguments()
spark = session("basket-model" + ("-nowait" if options.healthy else ""), {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "1",
    "spark.dynamicAllocation.initialExecutors": "1",
    "spark.dynamicAllocation.maxExecutors": "2",
    "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
    "spark.locality.wait": "0s" if options.healthy else "15s",
})
wait_for_executors(spark, 1)
baskets = spark.range(0, 480_000, 1, 12).cache()
# Filled a partition at a time and within the backlog timeout, so only the first
# executor holds it.
baskets.count()
print(work(baskets, rounds=6).agg(F.sum("cost")).collect())
spark.stop()
