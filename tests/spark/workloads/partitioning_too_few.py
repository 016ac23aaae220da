"""Fewer tasks than cores.

Needs: two executors with two cores each, e.g. local-cluster[2,2,1024].

Makes: a stage of three tasks on four cores, some 20 seconds long.

A right diagnosis says: partitioning, fewer tasks than cores.

The tempting wrong verdict: idle executors that should be given back.

--healthy uses 12 tasks.
"""

from session import arguments, session, wait_for_executors, warm_up, work

options = arguments()
spark = session("scores-weekly" + ("-split" if options.healthy else ""), {"spark.executor.cores": "2"})
wait_for_executors(spark, 2)
warm_up(spark)
scores = spark.range(0, 360_000, 1, 12 if options.healthy else 3)
work(scores, rounds=6).write.format("noop").mode("overwrite").save()
spark.stop()
