"""A driver that was started within a trace, one of whose jobs belongs to another.

Makes: three jobs. Before the second the program sets the local property
`traceparent`, as code does that is called within somebody's request; Spark hands
local properties to its listeners. The context of the whole application is told
by `spark.executorEnv.TRACEPARENT` (see `record`).

A right diagnosis says: nothing at any severity above info; but its spans belong
below those that started it.

The tempting wrong verdict: a trace of its own.
"""

from session import session, wait_for_executors

from pyspark.sql import functions as F

# A trace that somebody else began.
REQUEST = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

spark = session("orders-export", {"spark.sql.shuffle.partitions": "1"})
context = spark.sparkContext
wait_for_executors(spark, 2)
orders = spark.range(0, 20_000, 1, 2)
print(orders.agg(F.sum("id")).collect())
context.setLocalProperty("traceparent", REQUEST)
context.setLocalProperty("tracestate", "orders=1")
print(context.parallelize(range(1_000), 2).map(lambda number: number * 2).sum())
context.setLocalProperty("traceparent", None)
context.setLocalProperty("tracestate", None)
print(context.parallelize(range(1_000), 2).sum())
spark.stop()
