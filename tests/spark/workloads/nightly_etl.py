"""A nightly job: the day's orders joined with all customers, rated, summed up.

Makes: from Parquet files, a sort-merge join on 8 shuffle partitions in which each
order is rated by a service that takes a millisecond, an aggregation by region, and
a small count, both written as Parquet. Its name carries the date
(`nightly-etl-DATE`), as names of nightly jobs do: `record --history` runs it night
after night. Tasks wait for the service instead of computing, so that nights differ
as little as nights do, whatever else the machine does.

What can be wrong with a night:

--data hot    as many orders and bytes, 95 % of them of one customer
--data mild   33 % of them: near miss, slower by less than anybody should be told
--data triple three times the orders: longer, and no slower for what it does
--revision 2  other code: orders are rated before the join by a slower service, and
              ranked
--partitions 1  a setting: one task does all of it
--hold 35     no night at all: another application that keeps all cores so long,
              so that a night submitted meanwhile waits for executors

A right diagnosis, held against the nights before: `regression` for hot (a few
tasks are longer than the others), revision 2 (the plan changed), one partition
(the setting, named) and the night that waited (of layer `resources`).

The tempting wrong verdict: regression for the night of three times the data, or
for the nights after the slow one.
"""

import argparse
import shutil
import time

from session import DATA, incompressible, java, session, wait_for_executors

from pyspark.sql import Window
from pyspark.sql import functions as F

# needs: java

parser = argparse.ArgumentParser()
parser.add_argument("--date", default="2026-11-05")
parser.add_argument("--data", default="even", choices=["even", "hot", "mild", "triple"])
parser.add_argument("--revision", type=int, default=1)
parser.add_argument("--partitions", default="8")
parser.add_argument("--prepare", action="store_true", help="write what all nights read")
parser.add_argument("--hold", type=int, default=0)
options = parser.parse_args()

FOLDER = DATA / "nightly"
ORDERS = 24_000

if options.hold:
    spark = session("ad-hoc")
    wait_for_executors(spark, 2)
    print("held=true", flush=True)
    time.sleep(options.hold)
    spark.stop()
    raise SystemExit

if options.prepare:
    shutil.rmtree(FOLDER, ignore_errors=True)
    spark = session("nightly-prepare")
    spread = F.expr("1 + pmod(xxhash64(id), 4000L)")
    for name, rows, share in (("even", 1, 0), ("hot", 1, 95), ("mild", 1, 33), ("triple", 3, 0)):
        customer = F.when(F.col("id") % 100 < share, F.lit(0)).otherwise(spread)
        spark.range(0, ORDERS * rows, 1, 4).select(
            "id", customer.cast("long").alias("customer"), (F.col("id") % 5).alias("channel"),
            incompressible("id", 128).alias("note")).write.parquet(f"{FOLDER}/{name}")
    spark.range(0, 4001, 1, 2).select(
        F.col("id").alias("customer"), (F.col("id") % 7).alias("region")).write.parquet(f"{FOLDER}/customers")
    spark.stop()
    raise SystemExit

# Where a night finds its orders depends on the date, as it does in real life.
shutil.copytree(FOLDER / options.data, FOLDER / "orders" / options.date, dirs_exist_ok=True)
spark = session(f"nightly-etl-{options.date}", {
    "spark.executor.cores": "2",
    "spark.sql.shuffle.partitions": options.partitions,
    "spark.sql.autoBroadcastJoinThreshold": "-1",
})
orders = spark.read.parquet(f"{FOLDER}/orders/{options.date}")
customers = spark.read.parquet(f"{FOLDER}/customers")
if options.revision == 2:
    orders = orders.withColumn("risk", java("sleep", "3L"))
joined = orders.join(customers, "customer")
if options.revision == 2:
    joined = joined.withColumn("rank", F.row_number().over(Window.partitionBy("customer").orderBy("risk")))
rated = joined.withColumn("rating", F.length(java("sleep", "1L")))
sums = [F.sum("rating").alias("rating"), F.max("note").alias("note")]
if options.revision == 2:
    sums.append(F.max("rank").alias("rank"))
rated.groupBy("region").agg(*sums).write.mode("overwrite").parquet(f"{FOLDER}/sums/{options.date}")
orders.groupBy("channel").count().write.mode("overwrite").parquet(f"{FOLDER}/channels/{options.date}")
spark.stop()
