"""Equal tasks of which the first are slow, because their executors are new.

Makes: two fresh executors and 40 tasks with the same number of records. The
first task of each executor loads classes, compiles the query's code and runs it
interpreted: 5 to 16 times the median.

A right diagnosis says: no skew. At most an info about cold executors.

The tempting wrong verdict: data skew from max/median of run time alone.
"""

from session import session, wait_for_executors, work

spark = session("orders-hourly")
wait_for_executors(spark, 2)
frame = work(spark.range(0, 400_000, 1, 40), rounds=2)
print(frame.agg({"cost": "sum"}).collect())
spark.stop()
