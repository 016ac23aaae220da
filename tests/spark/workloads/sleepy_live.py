"""A skewed stage that takes its time, for watching a live application.

Makes: the skewed join of hot_key, whose rows sleep a millisecond instead of
burning CPU. The small tasks end in about a second; the hot one runs for about
--seconds seconds (90 by default), so a finding can be seen before the job ends.

A right diagnosis says, while it runs: data_skew in the active stage.

--healthy spreads the rows evenly.
"""

# needs: java

from session import arguments, incompressible, java, session, wait_for_executors

from pyspark.sql import functions as F

options = arguments(("seconds", 90))
spark = session("orders-by-customer-live", {
    "spark.sql.shuffle.partitions": "16", "spark.sql.autoBroadcastJoinThreshold": "-1"})
wait_for_executors(spark, 2)
# Sleeping a millisecond takes about 1.1.
rows = int(options.seconds * 900 / 0.85)
spread = F.expr("1 + pmod(xxhash64(id), 4000L)")
customer = spread if options.healthy else F.when(F.col("id") % 100 < 85, F.lit(0)).otherwise(spread)
orders = spark.range(0, rows, 1, 4).select(
    "id", customer.cast("long").alias("customer"), incompressible("id", 128).alias("note"))
customers = spark.range(0, 4001, 1, 2).select(F.col("id").alias("customer"), (F.col("id") % 7).alias("region"))
waited = orders.join(customers, "customer").withColumn("waited", java("sleep", "1L"))
print(waited.agg(F.max("waited"), F.sum("region"), F.max("note")).collect()[0][0])
spark.stop()
