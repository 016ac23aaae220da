"""One shuffle partition has thirty times the bytes of the others, and no more rows.

Makes: a join on 16 shuffle partitions whose keys are even. Rows of one partition
carry notes of 4,096 characters, the others of 128. Each row costs the same.

A right diagnosis says: nothing. The task with many bytes takes no longer than
the others, because rows are what costs.

The tempting wrong verdict: skew, from shuffle bytes alone.
"""

from session import incompressible, session, wait_for_executors, warm_up, work

from pyspark.sql import functions as F

spark = session("tickets-by-customer", {
    "spark.sql.shuffle.partitions": "16", "spark.sql.autoBroadcastJoinThreshold": "-1"})
wait_for_executors(spark, 2)
warm_up(spark)
customer = F.expr("pmod(xxhash64(id), 40000L)")
tickets = spark.range(0, 320_000, 1, 16).withColumn("customer", customer)
# Spark's own hash of the key: these customers meet in one partition.
wide = F.expr("pmod(hash(customer), 16) = 3")
tickets = tickets.withColumn("note", F.when(wide, incompressible("id", 4096)).otherwise(incompressible("id", 128)))
customers = spark.range(0, 40_000, 1, 2).select(F.col("id").alias("customer"), (F.col("id") % 7).alias("region"))
answered = work(tickets.join(customers, "customer"), rounds=6)
print(answered.agg(F.sum("cost"), F.sum("region"), F.max("note")).collect()[0][0])
spark.stop()
