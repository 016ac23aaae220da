"""An executor runs out of heap and ends itself.

Makes: one task asks for a string of 900 MB in a heap of 512 MB in its first
attempt. The JVM throws OutOfMemoryError, the executor exits with 52, and the
task succeeds on another executor with a short string.

A right diagnosis says: executor_lost, heap_oom.

The tempting wrong verdict: a plain task failure; a container limit.
"""

# needs: java

from session import java, session, wait_for_executors, work

from pyspark.sql import functions as F

spark = session("documents-parse", {"spark.executor.memory": "512m"})
wait_for_executors(spark, 2)
documents = work(spark.range(0, 80_000, 1, 8), rounds=5).withColumn("part", F.spark_partition_id())
huge = (F.col("part") == 3) & (F.col("id") % 10_000 == 5_000)
length = F.when(huge, 1 + 900_000_000 * java("firstAttempt").cast("int")).otherwise(F.lit(1))
text = documents.withColumn("length", length).selectExpr("cost", "repeat('x', length) AS text")
print(text.agg(F.sum("cost"), F.max(F.length("text"))).collect())
spark.stop()
