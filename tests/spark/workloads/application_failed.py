"""The program ends with an exit code, and no job is to blame.

Makes: one job that succeeds; then the program finds something wrong and stops its
context with exit code 3 (Spark 4 and later write the code into the log).

A right diagnosis says: application_failed, exit code 3, and no job failed.

The tempting wrong verdict: success, because all jobs succeeded.
"""

import sys

from session import session, wait_for_executors, work

from pyspark.sql import functions as F

spark = session("checks-nightly")
wait_for_executors(spark, 2)
print(work(spark.range(0, 80_000, 1, 8), rounds=3).agg(F.sum("cost")).collect())
spark.sparkContext._jsc.sc().stop(3)
sys.exit(3)
