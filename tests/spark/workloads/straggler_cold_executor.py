"""An executor that joins in the middle of a stage and is slow at first.

Makes: dynamic allocation starts with one warmed-up executor and adds another
when tasks have waited three seconds. The newcomer's first task loads classes and
runs interpreted: several times the median with the same number of records.

A right diagnosis says: at most an info (straggler, cold_executor).

The tempting wrong verdict: a slow host; skew.
"""

from session import session, wait_for_executors, warm_up, work

from pyspark.sql import functions as F

spark = session("sessions-build", {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "1",
    "spark.dynamicAllocation.initialExecutors": "1",
    "spark.dynamicAllocation.maxExecutors": "2",
    "spark.dynamicAllocation.schedulerBacklogTimeout": "3s",
})
wait_for_executors(spark, 1)
warm_up(spark)
print(work(spark.range(0, 360_000, 1, 96), rounds=5).agg(F.sum("cost")).collect())
spark.stop()
