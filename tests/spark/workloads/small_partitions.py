"""Adaptive execution is off, and every shuffle has 200 partitions of next to nothing.

Makes: three aggregations of a few thousand rows on the default 200 shuffle
partitions, without adaptive execution: nearly all tasks get a few hundred bytes.

A right diagnosis says: configuration, spark.sql.adaptive.enabled: what launching
tasks without work cost.

The tempting wrong verdict: slow tasks; more executors.

--healthy leaves adaptive execution on: the partitions are put together.
"""

from session import arguments, session, wait_for_executors, work

from pyspark.sql import functions as F

options = arguments()
on = "true" if options.healthy else "false"
spark = session("counts-hourly" + ("-adaptive" if options.healthy else ""), {
    "spark.sql.adaptive.enabled": on, "spark.sql.adaptive.coalescePartitions.enabled": on})
wait_for_executors(spark, 2)
events = work(spark.range(0, 4_000, 1, 2), rounds=1).withColumn("place", F.col("id") % 1_000)
for _ in range(3):
    events.groupBy("place").agg(F.sum("cost")).write.format("noop").mode("overwrite").save()
spark.stop()
