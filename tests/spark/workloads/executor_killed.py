"""The kernel kills an executor.

Makes: SIGKILL to executor 1 in the middle of a stage without shuffle. The Worker
reports exit status 137; another executor takes its place and its tasks.

A right diagnosis says: executor_lost, killed, cause unproven (137 alone).

The tempting wrong verdict: out of memory of the container.
"""

import threading

from session import kill_executor, session, wait_for_executors, wait_for_tasks, work

from pyspark.sql import functions as F

spark = session("images-tagging")
wait_for_executors(spark, 2)


def kill():
    wait_for_tasks(spark, 0, 5)
    kill_executor(spark, 1)


killer = threading.Thread(target=kill)
killer.start()
print(work(spark.range(0, 320_000, 1, 16), rounds=5).agg(F.sum("cost")).collect())
killer.join()
spark.stop()
