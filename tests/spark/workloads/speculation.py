"""Speculative copies of slow tasks win, and the originals are killed.

Needs: a Standalone cluster with workers on 127.0.0.1 and 127.0.0.2, because Spark
starts no copy on a host that already runs the task.

Makes: tasks on 127.0.0.2 burn eight times the CPU, and speculation is on. Copies
run on 127.0.0.1; whichever attempt is second is killed.

A right diagnosis says: no task failures (killed is not failed). Speculation's
waste is a matter of its own; the slow host makes stragglers.

The tempting wrong verdict: task_failures.
"""

# needs: java

from session import java, session, wait_for_executors, warm_up

from pyspark.sql import functions as F

spark = session("prices-refresh", {
    "spark.speculation": "true",
    "spark.speculation.multiplier": "2",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.interval": "200ms",
    "spark.speculation.efficiency.enabled": "false",
})
wait_for_executors(spark, 2)
warm_up(spark)
for _ in range(2):
    rows = spark.range(0, 12_000, 1, 12).withColumn("cost", java("workOnHost", "500000L", "'127.0.0.2'", 8))
    print(rows.agg(F.max("cost")).collect())
spark.stop()
