"""Calls are matched with rate periods by a comparison instead of a key.

Makes: a join without an equality: Spark compares each of 300,000 calls with each
of 6,000 periods (BroadcastNestedLoopJoin), 1.8 billion pairs.

A right diagnosis says: cartesian at the join, with the number of pairs and
several seconds to save.

The tempting wrong verdict: an exploding join (it puts out one row for each call),
or a broadcast that is too large.

--healthy finds the period by its hour first, which is an equality, and compares
within it. --product does it to 100,000 calls without a broadcast (CartesianProduct). --small
has 9 million pairs: near miss. --one-row meets 20 million rows with a single row
of totals: the same operator and no fault.
"""

import argparse

from session import session, wait_for_executors, warm_up, work

from pyspark.sql import functions as F

parser = argparse.ArgumentParser()
parser.add_argument("--healthy", action="store_true")
parser.add_argument("--small", action="store_true")
parser.add_argument("--product", action="store_true")
parser.add_argument("--one-row", action="store_true")
options = parser.parse_args()

spark = session("calls-by-period", {
    "spark.sql.shuffle.partitions": "4",
    **({"spark.sql.autoBroadcastJoinThreshold": "-1"} if options.product else {}),
})
wait_for_executors(spark, 2)
warm_up(spark)
count, periods = (3_000, 3_000) if options.small else (100_000 if options.product else 300_000, 6_000)
width = 1_000
calls = spark.range(0, 20_000_000 if options.one_row else count, 1, 4).select(
    "id", (F.col("id") * 7_919 % (periods * width)).alias("at"))
rates = spark.range(0, periods, 1, 2).select(
    (F.col("id") * width).alias("begins"), ((F.col("id") + 1) * width).alias("ends"), (F.col("id") % 9).alias("rate"))
if options.one_row:
    total = rates.agg(F.sum("rate").alias("rate"))
    rated = calls.crossJoin(total)
elif options.healthy:
    hour = F.floor(F.col("at") / width)
    rated = calls.withColumn("hour", hour).join(
        rates.withColumn("hour", F.floor(F.col("begins") / width)), "hour").where("at >= begins and at < ends")
else:
    rated = calls.join(rates, (F.col("at") >= F.col("begins")) & (F.col("at") < F.col("ends")))
print(rated.agg(F.count("*"), F.sum("rate"), F.max("at")).collect())
if options.healthy or options.small or options.one_row:
    # The time of this run goes elsewhere, and evenly.
    work(spark.range(0, 300_000, 1, 8), rounds=5).agg(F.sum("cost")).collect()
spark.stop()
