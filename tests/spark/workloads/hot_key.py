"""A join in which one customer has most of the orders.

Makes: a sort-merge join on 16 shuffle partitions. 85 % of 400,000 orders belong
to customer 0, and each joined row costs about 50 microseconds of CPU, so one
task runs for many seconds and the rest for a fraction of one. The values do not
compress: bytes are as skewed as records.

A right diagnosis says: data_skew, hot_key, in the join's stage, with several
seconds of wall time to save.

The tempting wrong verdict: a straggler (slow host), or too few partitions.

--healthy spreads the same orders evenly. --cheap keeps the skewed records but
does nothing with them: near miss, no time to save, nothing to report.
--partitions 64 cuts the shuffle finer, and the key stays in one task. --split
lowers the size from which adaptive execution splits a partition of a join, and it
does.
"""

import argparse

from session import incompressible, session, wait_for_executors, warm_up, work

from pyspark.sql import functions as F

parser = argparse.ArgumentParser()
parser.add_argument("--healthy", action="store_true")
parser.add_argument("--cheap", action="store_true")
parser.add_argument("--split", action="store_true")
parser.add_argument("--partitions", default="16")
parser.add_argument("--rows", type=int, default=400_000)
options = parser.parse_args()

name = "orders-by-customer" + ("-even" if options.healthy else "-light" if options.cheap else "")
spark = session(name, {
    "spark.sql.shuffle.partitions": options.partitions,
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    **({"spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "8m",
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": "4m"} if options.split else {}),
})
wait_for_executors(spark, 2)
warm_up(spark)
spread = F.expr("1 + pmod(xxhash64(id), 4000L)")
customer = spread if options.healthy else F.when(F.col("id") % 100 < 85, F.lit(0)).otherwise(spread)
orders = spark.range(0, options.rows, 1, 16).select(
    "id", customer.cast("long").alias("customer"), incompressible("id", 128).alias("note"))
customers = spark.range(0, 4001, 1, 2).select(F.col("id").alias("customer"), (F.col("id") % 7).alias("region"))
joined = orders.join(customers, "customer")
priced = work(joined, rounds=0 if options.cheap else 6)
print(priced.agg(F.sum("cost"), F.sum("region"), F.max("note")).collect()[0][0])
if options.cheap:
    # The time of this run goes elsewhere, and evenly.
    work(spark.range(0, 400_000, 1, 16), rounds=5).agg(F.sum("cost")).collect()
spark.stop()
