"""One customer has most of the orders, and they are grouped by customer.

Makes (--do):
  sum       totals for each customer. Each task adds up its own orders first, so
            that the shuffle carries a few rows of each customer.
  list      all order notes of each customer in one list: the lists of the hot
            customer come together in one task, which then reads them all. They
            are few records: each task sends one list for each customer.
  distinct  how many different products each customer ordered. Spark shuffles by
            customer and product first, which is even, and counts afterwards.
  unique    the same written as distinct() and a count.
  window    orders numbered for each customer: a window, whose rows of the hot
            customer are all in one task.

A right diagnosis says: sum: partial_aggregation, no skew. distinct:
count_distinct, no skew. list and window: data_skew, hot_key, with the aggregate
and the window named, and without the advice of adaptive skew join, which splits
joins only.

The tempting wrong verdict: GROUP BY over a hot key is skewed: salt it.
"""

import argparse

from session import session, wait_for_executors, warm_up, work

from pyspark.sql import Window
from pyspark.sql import functions as F

parser = argparse.ArgumentParser()
parser.add_argument("--do", default="sum")
do = parser.parse_args().do

spark = session(f"orders-grouped-{do}", {"spark.sql.shuffle.partitions": "16"})
wait_for_executors(spark, 2)
warm_up(spark)
rows = {"sum": 6_000_000, "distinct": 3_000_000, "unique": 3_000_000}.get(do, 400_000)
spread = F.expr("1 + pmod(xxhash64(id), 4000L)")
orders = spark.range(0, rows, 1, 8).select(
    "id", F.when(F.col("id") % 100 < 85, F.lit(0)).otherwise(spread).cast("long").alias("customer"),
    (F.col("id") * 7 % 100_000_007).alias("product"))
if do == "sum":
    totals = work(orders, rounds=0).groupBy("customer").agg(F.sum("cost").alias("total"))
    print(totals.agg(F.sum("total"), F.count("*")).collect())
elif do == "list":
    notes = orders.groupBy("customer").agg(F.collect_list(F.concat(F.lit("order "), F.col("id"))).alias("notes"))
    read = F.expr("aggregate(notes, 0L, (sum, note) -> sum + length(sha2(repeat(note, 900), 512)))")
    print(notes.select(read.alias("cost")).agg(F.sum("cost")).collect())
elif do == "distinct":
    products = orders.groupBy("customer").agg(F.countDistinct("product").alias("products"))
    print(products.agg(F.sum("products"), F.count("*")).collect())
elif do == "unique":
    products = orders.select("customer", "product").distinct().groupBy("customer").count()
    print(products.agg(F.sum("count"), F.count("*")).collect())
elif do == "window":
    numbered = orders.withColumn("number", F.row_number().over(Window.partitionBy("customer").orderBy("id")))
    print(work(numbered, rounds=5).agg(F.sum("cost"), F.sum("number")).collect())
spark.stop()
