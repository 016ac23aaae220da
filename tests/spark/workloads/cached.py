"""An in-memory scan counts batches and not rows.

Makes: a DataFrame of 8 partitions with 10,000 rows each is cached, filled, and
read again. The second read's stage shows one input record a task where 10,000
rows were read.

A right diagnosis says: nothing about records of the in-memory scan.

The tempting wrong verdict: a join or generator explosion (1 record in, 10,000
out).
"""

from session import session, wait_for_executors, warm_up, work

from pyspark.sql import functions as F

spark = session("profiles-cached", {"spark.sql.shuffle.partitions": "4"})
wait_for_executors(spark, 2)
warm_up(spark)
profiles = spark.range(0, 80_000, 1, 8).withColumn("group", F.col("id") % 100).cache()
print(profiles.count())
print(work(profiles.repartition(4, "group"), rounds=3).agg(F.sum("cost")).collect())
profiles.unpersist(True)
spark.stop()
