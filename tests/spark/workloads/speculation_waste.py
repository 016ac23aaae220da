"""Speculative copies that can only lose.

Needs: a Standalone cluster with workers on 127.0.0.1 and 127.0.0.2, because Spark
starts no copy on a host that already runs the task.

Makes: a stage of sixteen tasks on sixteen slots, of which eight take twelve seconds
because of what they were given to do (sleeping). Speculation starts a copy of each
of these a little later; the copies have the same to do, and none wins.

A right diagnosis says: speculation_waste, with the copies' time.

The tempting wrong verdict: task failures (killed is not failed); slow hosts.
"""

# needs: java

from session import java, session, wait_for_executors

from pyspark.sql import functions as F

spark = session("prices-model", {
    "spark.speculation": "true",
    "spark.speculation.multiplier": "1.5",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.interval": "200ms",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.speculation.efficiency.enabled": "false",
    "spark.executor.cores": "8",
})
wait_for_executors(spark, 2)
rows = spark.range(0, 16, 1, 16).withColumn(
    "waited", F.when(F.col("id") % 2 == 0, java("sleep", "500L").cast("long")).otherwise(java("sleep", "12000L").cast("long")))
print(rows.agg(F.max("waited")).collect())
spark.stop()
