"""A stage that waits because the cluster has no worker yet.

Needs: a Standalone master without workers, and somebody who starts the worker
20 seconds after the first line of output (`worker` on the standard input of
tests/spark/cluster).

Makes: a stage submitted at once, whose first task starts when the executors have
come.

A right diagnosis says: scheduling_delay, no_executors; the wait is the
resources', not the data's.

The tempting wrong verdict: a slow stage; a slow driver.
"""

from session import session, work

from pyspark.sql import functions as F

spark = session("invoices-early")
print(work(spark.range(0, 120_000, 1, 8), rounds=5).agg(F.sum("cost")).collect())
spark.stop()
