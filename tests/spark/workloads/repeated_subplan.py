"""One query computes the same costly rows twice.

Makes: scored orders are grouped by customer and by day, and both results are put
together. Nothing of the scoring is shared: each branch computes it anew, because
their exchanges differ.

A right diagnosis says: repeated_subplan, with the seconds of one copy to save,
and to cache or write the scored orders first.

The tempting wrong verdict: too few cores. --cached caches the scored orders and
reads them twice: both branches show the same plan below the cache, computed once.
--reused joins one grouping with itself, whose exchange Spark reuses by itself.
--cheap repeats what costs nothing: near miss.
"""

import argparse

from session import session, wait_for_executors, warm_up, work

from pyspark.sql import functions as F

parser = argparse.ArgumentParser()
for name in ("cached", "reused", "cheap"):
    parser.add_argument(f"--{name}", action="store_true")
options = parser.parse_args()

spark = session("scores", {"spark.sql.shuffle.partitions": "4", "spark.sql.autoBroadcastJoinThreshold": "-1"})
wait_for_executors(spark, 2)
warm_up(spark)
orders = spark.range(0, 300_000, 1, 4).select(
    "id", (F.col("id") % 500).alias("customer"), (F.col("id") % 30).alias("day")).where("id % 10 <> 3")
scored = work(orders, rounds=0 if options.cheap else 6).select("customer", "day", "cost")
if options.cached:
    scored = scored.cache()
    scored.count()
by_customer = scored.groupBy("customer").agg(F.sum("cost").alias("total"), F.max("day").alias("other"))
by_day = scored.groupBy("day").agg(F.sum("cost").alias("total"), F.max("customer").alias("other"))
if options.reused:
    both = by_customer.alias("a").join(by_customer.alias("b"), F.expr("a.customer = b.customer")).select("a.total", "b.other")
else:
    both = by_customer.select("total", "other").union(by_day.select("total", "other"))
print(both.agg(F.sum("total"), F.count("*")).collect())
if options.cheap:
    # The time of this run goes elsewhere, and evenly.
    work(spark.range(0, 300_000, 1, 8), rounds=5).agg(F.sum("cost")).collect()
spark.stop()
