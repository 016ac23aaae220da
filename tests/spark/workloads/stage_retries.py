"""An executor dies between a map stage and its reduce stage.

Makes: the reduce stage reads the shuffle of two executors; when a third of its
tasks have ended, executor 1 is killed with SIGKILL. Its shuffle output is gone:
fetches fail, and both stages run again in a second attempt for what is missing.

A right diagnosis says: stage_retries with the seconds repeated, and the lost
executor (killed: 137 alone proves no more).

The tempting wrong verdict: task failures of the data's making; skew in the second
attempt, which has few tasks.
"""

import threading

from session import incompressible, kill_executor, session, wait_for_executors, wait_for_tasks, work

from pyspark.sql import functions as F

# Without adaptive execution the two stages have the ids 0 and 1.
spark = session("stock-levels", {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "12",
    # Sooner than the default of three tries of 5 s.
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "1s",
})
wait_for_executors(spark, 2)


def kill():
    wait_for_tasks(spark, 1, 4)
    kill_executor(spark, 1)


killer = threading.Thread(target=kill)
killer.start()
moves = work(spark.range(0, 240_000, 1, 12), rounds=3).repartition(12, "id")
work(moves.withColumnRenamed("cost", "weight"), rounds=5).write.format("noop").mode("overwrite").save()
killer.join()
spark.stop()
