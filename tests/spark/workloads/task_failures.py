"""Tasks that fail and succeed when they are tried again.

Makes: of 24 tasks three throw an exception in their first attempt, and two
cannot get memory from Spark's memory manager in their first two. All fail near
their end, so their work is done again. The job succeeds.

A right diagnosis says: task_failures, 7 of 31 attempts, in two classes; the
application succeeded.

The tempting wrong verdict: nothing, because the job succeeded; or job_failed.

--healthy fails nowhere. --few has one failure in 24 tasks: near miss, below the
floor of three.
"""

# needs: java

import argparse

from session import fail_at_end, session, wait_for_executors, warm_up, work

from pyspark.sql import functions as F

parser = argparse.ArgumentParser()
parser.add_argument("--healthy", action="store_true")
parser.add_argument("--few", action="store_true")
options = parser.parse_args()

if options.healthy:
    plan = []
elif options.few:
    plan = [(3, 1, "record")]
else:
    plan = [(3, 1, "record"), (9, 1, "record"), (15, 1, "record"), (6, 2, "memory"), (18, 2, "memory")]
spark = session("payments-import" + ("-clean" if options.healthy else "-few" if options.few else ""))
wait_for_executors(spark, 2)
warm_up(spark)
payments = work(spark.range(0, 240_000, 1, 24), rounds=5)
print(fail_at_end(payments, plan).agg(F.sum("cost")).collect())
spark.stop()
