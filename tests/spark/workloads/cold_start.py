"""The first executor comes late, and the application waits for it.

Needs: a Standalone master without workers, and somebody who starts the worker
45 seconds after the first line of output (`worker` on the standard input of
tests/spark/cluster).

Makes: a job submitted at once; its tasks start when the executors have come, more
than half a minute after the application.

A right diagnosis says: cold_start, and the seconds are promised once: not by
scheduling_delay as well.

The tempting wrong verdict: a slow stage; a slow driver; the same wait twice.

--busy does other work for a minute before its first job, which finds the
executors there: they came as late, and nobody waited for them.
"""

import argparse
import time

from session import session, work

from pyspark.sql import functions as F

parser = argparse.ArgumentParser()
parser.add_argument("--busy", action="store_true")
options = parser.parse_args()
spark = session("ledger-early" + ("-prepared" if options.busy else ""))
if options.busy:
    time.sleep(60)
print(work(spark.range(0, 120_000, 1, 8), rounds=5).agg(F.sum("cost")).collect())
spark.stop()
