"""One of two hosts is five times slower at the same work.

Needs: a Standalone cluster with workers on 127.0.0.1 and 127.0.0.2.

Makes: three stages of 12 tasks with equal records. Tasks on 127.0.0.2 burn five
times the CPU. The slow tasks are all there, in every stage.

A right diagnosis says: straggler, slow_host, naming 127.0.0.2.

The tempting wrong verdict: data skew.

--healthy makes both hosts equally fast.
"""

# needs: java

from session import arguments, java, session, wait_for_executors, warm_up

from pyspark.sql import functions as F

options = arguments()
spark = session("features-nightly" + ("-even" if options.healthy else ""))
wait_for_executors(spark, 2)
warm_up(spark)
for _ in range(3):
    rows = spark.range(0, 12_000, 1, 12).withColumn(
        "cost", java("workOnHost", "500000L", "'127.0.0.2'", 1 if options.healthy else 5))
    print(rows.agg(F.max("cost")).collect())
spark.stop()
