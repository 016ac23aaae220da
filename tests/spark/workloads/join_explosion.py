"""Orders meet a price list that holds many prices for each product.

Makes: a sort-merge join of 120,000 orders with 200,000 prices over 2,000
products. Each order meets 100 prices: 12 million rows, 60 times the larger
input, and each of them costs.

A right diagnosis says: join_explosion at the join, with several seconds to save.

The tempting wrong verdict: skew, or too few executors. Tasks are even, and twice
the cores would still compute rows that nobody asked for.

--healthy has one price for each product: the same orders, as many rows out as
in. --few has six: more than a million rows, six times the larger input, near
miss.
"""

import argparse

from session import session, wait_for_executors, warm_up, work

from pyspark.sql import functions as F

parser = argparse.ArgumentParser()
parser.add_argument("--healthy", action="store_true")
parser.add_argument("--few", action="store_true")
options = parser.parse_args()

products, prices_each = (20_000, 6) if options.few else (2_000, 1 if options.healthy else 100)
spark = session("orders-with-prices", {
    "spark.sql.shuffle.partitions": "8", "spark.sql.autoBroadcastJoinThreshold": "-1"})
wait_for_executors(spark, 2)
warm_up(spark)
orders = spark.range(0, products * 60, 1, 4).select("id", (F.col("id") % products).alias("product"))
prices = spark.range(0, products * prices_each, 1, 4).select(
    (F.col("id") % products).alias("product"), (F.col("id") * 7 % 1000).alias("price"))
priced = work(orders.join(prices, "product"), rounds=0, key="price")
print(priced.agg(F.sum("cost"), F.sum("price"), F.max("id")).collect())
if options.healthy or options.few:
    # The time of this run goes elsewhere, and evenly.
    work(spark.range(0, 300_000, 1, 8), rounds=5).agg(F.sum("cost")).collect()
spark.stop()
