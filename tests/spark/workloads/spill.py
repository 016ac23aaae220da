"""A sort of more data than the executors' memory holds.

Makes: a global sort of --rows rows (3,600,000 by default) of 600 incompressible
bytes on 8 partitions, with executors of 600 MB: every partition spills.

A right diagnosis says: spill, a warning, of most partitions (volume, not skew);
advice: more partitions or more memory.

The tempting wrong verdict: skew; I/O bound.

--healthy sorts a twentieth of that, which fits. --small sorts 11 MiB and spills
half of it, a large share but below the floor of bytes: near miss.
"""

import argparse

from session import incompressible, session, wait_for_executors, warm_up

from pyspark.sql import functions as F

parser = argparse.ArgumentParser()
parser.add_argument("--healthy", action="store_true")
parser.add_argument("--small", action="store_true")
parser.add_argument("--rows", type=int, default=3_600_000)
options = parser.parse_args()

rows = options.rows // (20 if options.healthy else 200 if options.small else 1)
conf = {
    "spark.sql.shuffle.partitions": "8",
    "spark.executor.memory": "600m",
    "spark.memory.fraction": "0.4",
}
if options.small:
    # Rows that a sorter holds before it spills whatever the memory: the mean of a
    # partition, so about half of them spill, 11 MiB at most in all.
    conf["spark.shuffle.spill.numElementsForceSpillThreshold"] = str(rows // 8)
spark = session("ledger-sort" + ("-fits" if options.healthy else "-tight" if options.small else ""), conf)
wait_for_executors(spark, 2)
warm_up(spark)
ledger = spark.range(0, rows, 1, 8).select(F.xxhash64("id").alias("key"), incompressible("id", 640).alias("entry"))
ledger.sort("key").write.format("noop").mode("overwrite").save()
spark.stop()
