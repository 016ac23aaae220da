"""One application after the other in one JVM, each with a log of its own.

    many_applications [COUNT]

Makes: COUNT (20) applications of a second or less, named as nightly jobs are
(`nightly-orders-2026-11-01`, ...); every fourth ends with exit code 1. The last
line says `applications=COUNT`.

A right diagnosis says: nothing. They are there to be counted.
"""

import sys

from pyspark.sql import SparkSession

count = int(sys.argv[1]) if len(sys.argv) > 1 else 20
jobs = ["orders", "ledger", "stock"]
for number in range(count):
    name = f"nightly-{jobs[number % len(jobs)]}-2026-11-{number // len(jobs) % 28 + 1:02}"
    spark = SparkSession.builder.appName(name).getOrCreate()
    context = spark.sparkContext
    if number == 0:
        print(f"app_id={context.applicationId}", flush=True)
        print(f"ui={context.uiWebUrl}", flush=True)
    spark.range(1_000).selectExpr("sum(id)").collect()
    print(f"run={context.applicationId} {name}", flush=True)
    # As a driver does that ends with this exit code (Spark 4).
    context._jsc.sc().stop(1 if number % 4 == 3 else 0)
    spark.stop()
print(f"applications={count}", flush=True)
