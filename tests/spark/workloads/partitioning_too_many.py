"""More than 5,000 tasks of a few milliseconds: launching them is the cost.

Makes: an aggregation over --tasks partitions (6,000 by default) of 50 rows.

A right diagnosis says: partitioning, too many small tasks.

The tempting wrong verdict: skew, from the ratio of the first tasks.

--healthy does the same on 64 partitions.
"""

from session import arguments, session, wait_for_executors, warm_up, work

from pyspark.sql import functions as F

options = arguments(("tasks", 6000))
spark = session("sensors-rollup" + ("-64" if options.healthy else ""))
wait_for_executors(spark, 2)
warm_up(spark)
rows = spark.range(0, options.tasks * 50, 1, 64 if options.healthy else options.tasks)
print(work(rows, rounds=1).agg(F.sum("cost")).collect())
spark.stop()
