"""A healthy run of a few seconds with three tasks in all.

Makes: one look-up over a small range.

A right diagnosis says: nothing, though executors took longer to come than the
work to do.

The tempting wrong verdict: a cold start; idle cores; one task in the longest
stage.
"""

from session import session, wait_for_executors

from pyspark.sql import functions as F

spark = session("ping", {"spark.sql.shuffle.partitions": "1"})
wait_for_executors(spark, 2)
print(spark.range(0, 20_000, 1, 2).agg(F.sum("id")).collect())
spark.stop()
