"""Dynamic allocation gives idle executors back.

Makes: a busy job on two executors, twelve seconds in which the driver does
something else, and a small job. Executors are removed after three idle seconds.

A right diagnosis says: no executor was lost.

The tempting wrong verdict: executor_lost, because there are ExecutorRemoved
events.
"""

import time

from session import session, wait_for_executors, work

from pyspark.sql import functions as F

spark = session("catalog-sync", {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.timeout": "3s",
    "spark.dynamicAllocation.minExecutors": "0",
    "spark.dynamicAllocation.initialExecutors": "2",
    "spark.dynamicAllocation.maxExecutors": "2",
    "spark.dynamicAllocation.executorIdleTimeout": "3s",
})
wait_for_executors(spark, 2)
work(spark.range(0, 160_000, 1, 8), rounds=5).write.format("noop").mode("overwrite").save()
time.sleep(12)
work(spark.range(0, 20_000, 1, 2), rounds=5).write.format("noop").mode("overwrite").save()
spark.stop()
