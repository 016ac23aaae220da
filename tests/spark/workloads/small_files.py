"""A table in very many small files, written and read.

Makes: 240,000 rows, written into 2,400 Parquet files by four tasks
(`maxRecordsPerFile`), and read three times.

- --few: the same rows in 80 files.

A right diagnosis says: small_files_written for the write, small_files_read for
the reads; nothing for --few.

The tempting wrong verdict: more executors, because the stages take long for so
few bytes; io_bound.
"""

import argparse

from session import fresh_folder, session, wait_for_executors, warm_up

from pyspark.sql import functions as F

parser = argparse.ArgumentParser()
parser.add_argument("--few", action="store_true")
options = parser.parse_args()

spark = session("readings", {"spark.sql.shuffle.partitions": "2"})
wait_for_executors(spark, 2)
warm_up(spark)
folder = str(fresh_folder("readings") / "table")
files = 80 if options.few else 2_400
(spark.range(0, 240_000, 1, 4)
 .select("id", (F.col("id") % 991).alias("meter"), F.sha2(F.col("id").cast("string"), 256).alias("reading"))
 .write.option("maxRecordsPerFile", 240_000 // files).parquet(folder))
readings = spark.read.schema("id long, meter long, reading string").parquet(folder)
for meter in range(3):
    print(readings.where(f"meter > {meter}").agg(F.count("*"), F.max("reading")).collect())
spark.stop()
