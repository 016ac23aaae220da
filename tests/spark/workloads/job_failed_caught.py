"""A job fails, the program catches that, does without, and ends well.

Makes: as job_failed, but the exception is caught and another job follows. The
program ends with status 0.

A right diagnosis says: a failed job of a succeeded application.

The tempting wrong verdict: the application failed; or nothing.

Waits for --linger seconds before it ends.
"""

# needs: java

import time

from session import arguments, fail_at_end, session, wait_for_executors, work

from pyspark.sql import functions as F

options = arguments(("linger", 0))
spark = session("payments-best-effort")
wait_for_executors(spark, 2)
payments = work(spark.range(0, 80_000, 1, 8), rounds=3)
broken = fail_at_end(payments, [(5, 99, "record")])
try:
    broken.agg(F.sum("cost")).collect()
except Exception as error:
    print(f"without the check: {type(error).__name__}")
print(payments.agg(F.sum("cost")).collect())
time.sleep(options.linger)
spark.stop()
