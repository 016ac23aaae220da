"""Input files of very different size, one of which cannot be split.

Makes: a folder with one large .csv.gz and 48 tiny ones, read and aggregated
without a shuffle before the costly part. One task reads the large file alone.

A right diagnosis says: data_skew, input_files: the layout of the input; write
it in a splittable form or in more files.

The tempting wrong verdict: a hot key; salting or AQE's skew join as advice.

--healthy has the same rows in 24 files of the same size.
"""

import gzip
import hashlib

from session import arguments, fresh_folder, session, wait_for_executors, warm_up, work

from pyspark.sql import functions as F

options = arguments(("rows", 400_000))


def write(path, first, count):
    with gzip.open(path, "wt", compresslevel=1) as file:
        for number in range(first, first + count):
            file.write(f"{number},{number % 977},{hashlib.sha256(str(number).encode()).hexdigest()}\n")


folder = fresh_folder("events-even" if options.healthy else "events")
if options.healthy:
    for part in range(24):
        write(folder / f"part-{part:05}.csv.gz", part * options.rows // 24, options.rows // 24)
else:
    tiny = options.rows // 1000
    write(folder / "part-00000.csv.gz", 0, options.rows - 48 * tiny)
    for part in range(1, 49):
        write(folder / f"part-{part:05}.csv.gz", options.rows - part * tiny, tiny)

# 8 MiB: two small files a task. With the default of 128 MiB two tasks read them all.
spark = session("events-import" + ("-even" if options.healthy else ""), {
    "spark.sql.files.maxPartitionBytes": "4m" if options.healthy else "8m"})
wait_for_executors(spark, 2)
warm_up(spark)
events = spark.read.schema("id LONG, customer LONG, body STRING").csv(f"file:{folder}")
print(work(events, rounds=5).agg(F.sum("cost"), F.max("body")).collect()[0][0])
spark.stop()
