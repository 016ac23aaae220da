"""A hot key whose rows compress well, so that bytes hide the skew.

Makes: as hot_key, but the orders of customer 0 all carry the same note. Its
partition has some 80 times the median's records and far fewer times its bytes.

A right diagnosis says: data_skew, compressible_hot_key: below the size at which
adaptive execution splits a partition, so neither AQE nor more shuffle
partitions help.

The tempting wrong verdict: a straggler, by whoever judges skew by bytes.

--healthy spreads the orders evenly. --split 1 lowers the size from which adaptive
execution splits a partition, as hot_key --split does: it looks at compressed
bytes, and does not.
"""

from session import arguments, incompressible, session, wait_for_executors, warm_up, work

from pyspark.sql import functions as F

options = arguments(("rows", 400_000), ("split", 0))
spark = session("orders-by-customer-notes" + ("-even" if options.healthy else ""), {
    "spark.sql.shuffle.partitions": "16",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    **({"spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "8m",
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": "4m"} if options.split else {}),
})
wait_for_executors(spark, 2)
warm_up(spark)
spread = F.expr("1 + pmod(xxhash64(id), 4000L)")
hot = F.lit(False) if options.healthy else F.col("id") % 100 < 85
orders = spark.range(0, options.rows, 1, 16).select(
    "id",
    F.when(hot, F.lit(0)).otherwise(spread).cast("long").alias("customer"),
    F.when(hot, F.repeat(F.lit("guest "), 21)).otherwise(incompressible("id", 128)).alias("note"))
customers = spark.range(0, 4001, 1, 2).select(F.col("id").alias("customer"), (F.col("id") % 7).alias("region"))
priced = work(orders.join(customers, "customer"), rounds=6)
print(priced.agg(F.sum("cost"), F.sum("region"), F.max("note")).collect()[0][0])
spark.stop()
