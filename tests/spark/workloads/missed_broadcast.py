"""A large table is shuffled and sorted to meet a small one.

Makes: a sort-merge join of 5 million sales with 400,000 shops of some 12 MiB,
above the 10 MiB up to which Spark broadcasts by itself, and far below a
twentieth of the sales.

A right diagnosis says: missed_broadcast at the join: broadcast the shops, and
the sales need no exchange and no sort.

The tempting wrong verdict: more shuffle partitions, or shuffle_heavy. The
shuffle is not large; it need not be there.

--off has few shops whose size Spark does not know, and adaptive execution
switched off: below the threshold, and shuffled all the same. --healthy is --off
with adaptive execution, which turns it into a broadcast by itself. --small has a
sixth of the sales, near miss: the shops are more than a twentieth of them.
--outer keeps shops without sales: an outer join cannot broadcast the side that
it keeps.
"""

import argparse

from session import session, wait_for_executors, warm_up, work

from pyspark.sql import functions as F

parser = argparse.ArgumentParser()
for name in ("healthy", "off", "small", "outer"):
    parser.add_argument(f"--{name}", action="store_true")
options = parser.parse_args()

unknown = options.off or options.healthy
spark = session("sales-by-shop", {
    "spark.sql.shuffle.partitions": "8", "spark.sql.adaptive.enabled": str(not options.off).lower()})
wait_for_executors(spark, 2)
warm_up(spark)
shops_count = 15_000 if unknown else 400_000
sales = spark.range(0, 800_000 if options.small else 5_000_000, 1, 8).select(
    "id", (F.col("id") * 31 % shops_count).alias("shop"), F.lpad(F.col("id").cast("string"), 64, "receipt ").alias("receipt"))
shops = spark.range(0, shops_count, 1, 2).select(
    F.col("id").alias("shop"), F.lpad(F.col("id").cast("string"), 8, "shop ").alias("address"))
if unknown:
    # Of rows that come from an RDD, Spark knows no size.
    shops = spark.createDataFrame(shops.rdd, shops.schema)
joined = shops.join(sales, "shop", "left") if options.outer else sales.join(shops, "shop")
print(joined.agg(F.max("receipt"), F.max("address"), F.count("id")).collect()[0][2])
if options.healthy or options.small:
    # The time of this run goes elsewhere, and evenly.
    work(spark.range(0, 300_000, 1, 8), rounds=5).agg(F.sum("cost")).collect()
spark.stop()
