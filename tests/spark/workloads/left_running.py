"""The program is done, and the driver lives on.

Makes: two jobs, then no `stop()`: something that is not a daemon keeps the process
alive for four seconds (elsewhere: for days), until it is killed. The log stays in
progress, as it does while the driver runs.

A right diagnosis says, while it runs: application_idle: no job for so long, and
the cores held.

The tempting wrong verdict: a stuck stage; a finished or failed application.
"""

import os
import signal
import time

from session import session, wait_for_executors, work

from pyspark.sql import functions as F

spark = session("mail-digest")
wait_for_executors(spark, 2)
for _ in range(2):
    print(work(spark.range(0, 80_000, 1, 8), rounds=3).agg(F.sum("cost")).collect())
time.sleep(4)
os.kill(int(spark._jvm.java.lang.ProcessHandle.current().pid()), signal.SIGKILL)
