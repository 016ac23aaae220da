"""A task fails four times, its job fails, and so does the program.

Makes: eight tasks, one of which throws an exception in every attempt. The
exception is not caught: the program ends with a status that is not zero.

A right diagnosis says: job_failed and the application failed, with the reason's
class.

The tempting wrong verdict: only task failures.
"""

# needs: java

from session import fail_at_end, session, wait_for_executors, work

from pyspark.sql import functions as F

spark = session("payments-load")
wait_for_executors(spark, 2)
payments = work(spark.range(0, 80_000, 1, 8), rounds=3)
print(payments.agg(F.sum("cost")).collect())
broken = fail_at_end(payments, [(5, 99, "record")])
print(broken.agg(F.sum("cost")).collect())
