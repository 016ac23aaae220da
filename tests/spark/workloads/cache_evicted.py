"""A cached table that does not fit into memory.

Makes: 500,000 rows of which no two are alike, persisted in memory only and read
four times. About half of the partitions find no room, and each read computes
those again.

- --few: nearly all of it fits: two partitions are computed again by each reading.
- --disk: the same with `MEMORY_AND_DISK`: what finds no room is read from disk.

A right diagnosis says: cache_evicted for the first, nothing for the others.

The tempting wrong verdict: a cache that holds less than the table is taken for
one whose rows are computed again (--disk); rows that the plans of all four reads
show below their scans are added up, though the numbers are shared.
"""

import argparse

from session import incompressible, session, wait_for_executors, warm_up

from pyspark import StorageLevel
from pyspark.sql import functions as F

parser = argparse.ArgumentParser()
for flag in ("few", "disk"):
    parser.add_argument(f"--{flag}", action="store_true")
options = parser.parse_args()

spark = session("catalogue", {
    # Of the 700 MB above Spark's own 300: two caches of 56 MB for a table of 204
    # MB, or of 112 MB.
    "spark.memory.fraction": "0.16" if options.few else "0.08",
    "spark.sql.shuffle.partitions": "2",
})
wait_for_executors(spark, 2)
warm_up(spark)
items = spark.range(0, 500_000, 1, 16).withColumn("body", incompressible("id", 512))
items.persist(StorageLevel.MEMORY_AND_DISK if options.disk else StorageLevel.MEMORY_ONLY)
for reading in range(4):
    print(items.agg(F.max(F.length("body")), F.sum(F.col("id") % (reading + 2))).collect())
spark.stop()
