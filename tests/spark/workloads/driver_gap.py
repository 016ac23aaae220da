"""Cores stand idle between jobs while the driver is busy.

Makes: three jobs; between the first two the program does something of its own for
eight seconds, before the third for six (sleeping, where others call a service or
pandas).

A right diagnosis says: driver_gap, with the longest gaps and the jobs on both
sides; the program itself, as far as the log tells.

The tempting wrong verdict: slow stages; idle cores to be taken away.

--listing reads a table of thousands of partitions, whose folders the driver lists
before each query: file listing. --planning builds frames column by column, which
Spark analyses and plans for seconds: mostly before it tells of the query, so that
the log shows no query open.
"""

import argparse
import pathlib
import time

from session import fresh_folder, session, wait_for_executors, work

from pyspark.sql import functions as F

parser = argparse.ArgumentParser()
parser.add_argument("--listing", action="store_true")
parser.add_argument("--planning", action="store_true")
parser.add_argument("--partitions", type=int, default=8_000)
parser.add_argument("--queries", type=int, default=9)
options = parser.parse_args()


def pause(seconds):
    time.sleep(seconds)


def job():
    work(spark.range(0, 40_000, 1, 4), rounds=5).write.format("noop").mode("overwrite").save()


if options.listing:
    folder = fresh_folder("readings")
    for day in range(options.partitions):
        place = pathlib.Path(folder, f"day={day}")
        place.mkdir()
        for part in range(5):
            (place / f"part-{part}.txt").write_text(f"{day}\n")
    spark = session("readings-latest", {
        # The driver lists by itself, anew for each query.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
        "spark.sql.hive.filesourcePartitionFileCacheSize": "0",
        "spark.sql.catalogImplementation": "in-memory",
    })
    wait_for_executors(spark, 2)
    job()
    spark.sql(f"CREATE TABLE readings (value STRING, day INT) USING text PARTITIONED BY (day) LOCATION '{folder}'")
    spark.sql("MSCK REPAIR TABLE readings")
    for _ in range(options.queries):
        print(spark.sql("SELECT * FROM readings LIMIT 1").collect())
elif options.planning:
    spark = session("features-wide")
    wait_for_executors(spark, 2)
    job()
    for _ in range(4):
        frame = spark.range(0, 1_000, 1, 2)
        for column in range(200):
            frame = frame.withColumn(f"c{column}", F.col("id") * column + 1)
        frame.write.format("noop").mode("overwrite").save()
else:
    spark = session("export-steps")
    wait_for_executors(spark, 2)
    job()
    pause(8)
    job()
    pause(6)
    job()
spark.stop()
