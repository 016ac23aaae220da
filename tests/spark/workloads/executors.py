"""The same job on another number of executors, whose tasks sleep.

Makes: 24 tasks of 0.4 to 1 s, then 8 of which some have more groups than others,
two seconds of the driver's own, then two jobs of 6 tasks each from two threads.
Sleeping takes no core, so that one, two and four executors are honest on a
machine with two cores.

A right diagnosis says: nothing. What it would take with another number of
executors is predicted from each of the runs, and checked against the others.

The tempting wrong verdict: twice the executors, half the time. The driver's gap
and the longest tasks stay.

--executors N waits for so many (1 by default).
"""

# needs: java

import time
from concurrent.futures import ThreadPoolExecutor

from session import arguments, java, session, wait_for_executors

from pyspark.sql import functions as F

options = arguments(("executors", 1))
spark = session("sleep-by-executors", {"spark.sql.shuffle.partitions": "8"})
wait_for_executors(spark, options.executors)


def slow(rows, millis, more=0):
    return spark.range(0, rows, 1, rows).withColumn("waited", java("sleep", f"{millis}L + (id % 5) * {more}L"))


groups = slow(24, 400, 150).groupBy((F.col("id") % 8).alias("part")).agg(F.count("waited").alias("waited"))
print(len(groups.withColumn("again", java("sleep", "700L")).collect()))
time.sleep(2)
with ThreadPoolExecutor(2) as threads:
    print(list(threads.map(lambda millis: len(slow(6, millis).collect()), (900, 600))))
spark.stop()
