"""Two stages of one join are submitted together and share two cores.

Makes: both sides of a join are costly to scan. Adaptive execution submits the
two map stages at the same moment; the second gets its first task when the first
has no more to start, well over ten seconds later.

A right diagnosis says: no scheduling delay: the application's own tasks hold all
the cores.

The tempting wrong verdict: scheduling delay, from first launch - submission.
"""

from session import session, wait_for_executors, warm_up, work

from pyspark.sql import functions as F

spark = session("clicks-with-orders", {
    "spark.sql.shuffle.partitions": "4", "spark.sql.autoBroadcastJoinThreshold": "-1"})
wait_for_executors(spark, 2)
warm_up(spark)
clicks = work(spark.range(0, 400_000, 1, 10), rounds=6).withColumnRenamed("cost", "clicks")
orders = work(spark.range(0, 200_000, 1, 10), rounds=6).withColumnRenamed("cost", "orders")
print(clicks.join(orders, "id").agg(F.sum("clicks"), F.sum("orders"), F.count("*")).collect())
spark.stop()
