"""One task drags a heap full of live objects along; its records are as many as the others'.

Makes: 12 tasks with equal records. The rows of partition 5 go through a cache
whose entries live just long enough to grow old, so that task spends most of its
time in full collections of the parallel collector.

A right diagnosis says: straggler, gc.

The tempting wrong verdict: data skew; a slow host.

--healthy uses the small cache everywhere.
"""

# needs: java

from session import arguments, java, session, wait_for_executors, warm_up, work

from pyspark.sql import functions as F

options = arguments(("entries", 1_200_000))
spark = session("lookup-enrichment" + ("-even" if options.healthy else ""), {
    "spark.executor.memory": "512m", "spark.executor.extraJavaOptions": "-XX:+UseParallelGC"})
wait_for_executors(spark, 2)
warm_up(spark)
entries = 1000 if options.healthy else options.entries
size = F.expr(f"java_method('sparkexporter.Faults', 'cache', id, IF(spark_partition_id() = 5, {entries}, 1000))")
rows = spark.range(0, 36_000_000, 1, 12).withColumn("size", size)
print(rows.agg(F.max("size")).collect())
spark.stop()
