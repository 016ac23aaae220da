"""Executors that spend much of their time collecting garbage.

Makes: rows pass through a cache of small objects that fills most of a 512 MB
heap. Entries die old, so the parallel collector runs full collections over and
over, evenly in all tasks.

A right diagnosis says: gc_pressure, critical share (20 % or more of run time).

The tempting wrong verdict: plain slowness; a straggler.

--healthy keeps 100 entries: the same allocation rate, about 8 % of collection.
--light keeps enough for nearly 10 %: near miss.
"""

# needs: java

import argparse

from session import session, wait_for_executors, warm_up

from pyspark.sql import functions as F

parser = argparse.ArgumentParser()
parser.add_argument("--healthy", action="store_true")
parser.add_argument("--light", action="store_true")
parser.add_argument("--entries", type=int, default=700_000)
options = parser.parse_args()

entries = 100 if options.healthy else 4_000 if options.light else options.entries
spark = session("dedup-visits" + ("-small" if options.healthy else "-light" if options.light else ""), {
    "spark.executor.memory": "512m", "spark.executor.extraJavaOptions": "-XX:+UseParallelGC"})
wait_for_executors(spark, 2)
warm_up(spark)
size = F.expr(f"java_method('sparkexporter.Faults', 'cache', id, {entries})")
print(spark.range(0, 48_000_000, 1, 12).withColumn("size", size).agg(F.max("size")).collect())
spark.stop()
