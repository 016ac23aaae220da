"""Tasks that fail and succeed when they are tried again.

Makes: of 24 tasks three throw an exception in their first attempt, and two
cannot get memory from Spark's memory manager in their first two. All fail near
their end, so their work is done again. The job succeeds.

A right diagnosis says: task_failures, 7 of 31 attempts, in two classes; the
application succeeded.

The tempting wrong verdict: nothing, because the job succeeded; or job_failed.

--healthy fails nowhere. --few has one failure in 24 tasks: near miss, below the
floor of three.
"""

# needs: java

import argparse

from session import java, session, wait_for_executors, warm_up, work

from pyspark.sql import functions as F

parser = argparse.ArgumentParser()
parser.add_argument("--healthy", action="store_true")
parser.add_argument("--few", action="store_true")
options = parser.parse_args()

rejected = [] if options.healthy else [3] if options.few else [3, 9, 15]
starved = [] if options.healthy or options.few else [6, 18]
spark = session("payments-import" + ("-clean" if options.healthy else "-few" if options.few else ""))
wait_for_executors(spark, 2)
warm_up(spark)
payments = work(spark.range(0, 240_000, 1, 24), rounds=5).withColumn("part", F.spark_partition_id())
last = F.col("id") % 10_000 == 9_990
checked = payments.withColumn(
    "check",
    F.when(last & F.col("part").isin(*rejected, -1), java("failFirst", 1, "'record'"))
    .when(last & F.col("part").isin(*starved, -1), java("failFirst", 2, "'memory'"))
    .otherwise("0"))
print(checked.agg(F.sum("cost"), F.max("check")).collect())
spark.stop()
