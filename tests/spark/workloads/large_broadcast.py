"""A broadcast that fills a good part of every heap.

Makes: 1.6 million accounts of 200 bytes are broadcast to two executors because
of a hint. Driver and executors have 1,500 MB of heap; the driver collects,
builds and sends them before the join may begin.

A right diagnosis says: large_broadcast at the exchange, with its size, the share
of the heap, and the seconds of collecting, building and sending.

The tempting wrong verdict: a gap of the driver, or slow scheduling: nothing runs
meanwhile. --healthy shuffles instead. --small broadcasts less than 256 MiB, near
miss. --roomy broadcasts more than that with 4 GB of heap everywhere: less than a
tenth of it.
"""

import argparse

from session import session, wait_for_executors, warm_up

from pyspark.sql import functions as F

parser = argparse.ArgumentParser()
for name in ("healthy", "small", "roomy"):
    parser.add_argument(f"--{name}", action="store_true")
options = parser.parse_args()

spark = session("payments-by-account", {
    "spark.sql.shuffle.partitions": "8",
    "spark.executor.memory": "4000m" if options.roomy else "1500m",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
})
wait_for_executors(spark, 2)
warm_up(spark)
count = 600_000 if options.small else 900_000 if options.roomy else 1_600_000
accounts = spark.range(0, count, 1, 4).select(
    F.col("id").alias("account"), F.lpad(F.col("id").cast("string"), 160, "holder ").alias("holder"))
payments = spark.range(0, 2_000_000, 1, 8).select((F.col("id") * 31 % count).alias("account"), "id")
side = accounts if options.healthy else F.broadcast(accounts)
print(payments.join(side, "account").agg(F.max("holder"), F.count("*")).collect()[0][1])
spark.stop()
