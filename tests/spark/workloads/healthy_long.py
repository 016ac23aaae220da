"""A healthy run of many queries, some of them long.

Makes: for about a minute one query after the other: scans of a well-laid-out
table, aggregations, a broadcast join, a window, and small look-ups between
them.

A right diagnosis says: nothing.

The tempting wrong verdict: driver gaps between the queries; too few partitions in
the look-ups; a shuffled join that could have been broadcast.
"""

import time

from session import fresh_folder, session, wait_for_executors, warm_up, work

from pyspark.sql import functions as F
from pyspark.sql.window import Window

spark = session("orders-nightly", {"spark.sql.shuffle.partitions": "4"})
wait_for_executors(spark, 2)
warm_up(spark)
folder = str(fresh_folder("orders-nightly") / "orders")
orders = spark.range(0, 800_000, 1, 4).select(
    "id", (F.col("id") % 5_000).alias("customer"), (F.col("id") % 37).alias("country"), F.rand(7).alias("amount"))
orders.write.parquet(folder)
orders = spark.read.schema("id long, customer long, country long, amount double").parquet(folder)
countries = spark.range(0, 37, 1, 1).select(F.col("id").alias("country"), (F.col("id") % 5).alias("region"))
deadline = time.monotonic() + 45
while time.monotonic() < deadline:
    print(orders.groupBy("customer").agg(F.sum("amount")).agg(F.max("sum(amount)")).collect())
    print(orders.join(F.broadcast(countries), "country").groupBy("region").count().collect())
    print(work(orders.where("id % 20 = 0").repartition(8, "customer"), rounds=8).agg(F.sum("cost")).collect())
    newest = Window.partitionBy("customer").orderBy(F.desc("amount"))
    print(orders.withColumn("place", F.row_number().over(newest)).where("place = 1").agg(F.sum("amount")).collect())
spark.stop()
