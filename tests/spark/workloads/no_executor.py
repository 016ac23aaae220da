"""No executor ever comes.

Needs: a Standalone master without workers.

Makes: a job that waits for --seconds seconds (40 by default), is cancelled, and leaves
nothing behind.

A right diagnosis says: cold_start, no_executor: the whole run waited.

The tempting wrong verdict: job_failed; a stuck stage; "nothing wrong", because no
task failed.
"""

import threading

from session import arguments, session

options = arguments(("seconds", 40))
spark = session("ledger-nobody")
threading.Timer(options.seconds, spark.sparkContext.cancelAllJobs).start()
try:
    print(spark.range(0, 1_000, 1, 4).selectExpr("sum(id)").collect())
except Exception as error:
    print(f"cancelled: {type(error).__name__}")
spark.stop()
