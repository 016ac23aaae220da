"""A shuffle aggregation that is as even as it gets.

Makes: two executors with one core each, warmed up; 16 map tasks and 16 reduce
tasks of about a second with nearly the same number of records each.

A right diagnosis says: nothing, at any severity above info.

The tempting wrong verdict: skew or a straggler in the short warm-up jobs, whose
first tasks are slow because the JIT has compiled nothing yet.
"""

from session import session, wait_for_executors, warm_up, work

from pyspark.sql import functions as F

spark = session("orders-daily", {"spark.sql.shuffle.partitions": "16"})
wait_for_executors(spark, 2)
warm_up(spark)
orders = work(spark.range(0, 480_000, 1, 16), rounds=3)
totals = orders.groupBy((F.col("id") % 240_000).alias("customer")).agg(F.sum("cost").alias("total"))
rows = work(totals, rounds=5, key="customer").agg(F.sum("cost"), F.sum("total"), F.count("*")).collect()
print(f"rows={rows[0][2]}")
spark.stop()
