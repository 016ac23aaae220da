"""A task fails four times, its job fails, and so does the program.

Makes: eight tasks, one of which throws an exception in every attempt. The
exception is not caught: the program ends with a status that is not zero.

A right diagnosis says: job_failed and the application failed, with the reason's
class.

The tempting wrong verdict: only task failures.
"""

# needs: java

from session import java, session, wait_for_executors, work

from pyspark.sql import functions as F

spark = session("payments-load")
wait_for_executors(spark, 2)
payments = work(spark.range(0, 80_000, 1, 8), rounds=3).withColumn("part", F.spark_partition_id())
print(payments.agg(F.sum("cost")).collect())
broken = F.when((F.col("part") == 5) & (F.col("id") % 10_000 == 9_990), java("failFirst", 99, "'record'")).otherwise("0")
print(payments.withColumn("check", broken).agg(F.sum("cost"), F.max("check")).collect())
