"""The costly stage of a run has one task.

Makes: coalesce(1) in front of the costly part, as people do to get one output
file. One core of two works for some 20 seconds.

A right diagnosis says: partitioning, one task in the longest stage.

The tempting wrong verdict: skew (there is nothing to compare with).

--healthy leaves eight partitions.
"""

from session import arguments, session, wait_for_executors, warm_up, work

from pyspark.sql import functions as F

options = arguments()
spark = session("report-single-file" + ("-parallel" if options.healthy else ""))
wait_for_executors(spark, 2)
warm_up(spark)
report = spark.range(0, 400_000, 1, 8)
if not options.healthy:
    report = report.coalesce(1)
work(report, rounds=5).write.format("noop").mode("overwrite").save()
spark.stop()
