"""Thousands of tasks of two milliseconds.

Makes: one stage with --tasks tasks of one row each (4,000 by default). The
slowest took some hundred times the median: the first ones, and whichever met a
garbage collection.

A right diagnosis says: nothing about skew or stragglers; the stage's cost is
scheduling, and below 5,000 tasks that is no finding either.

The tempting wrong verdict: extreme skew, from a ratio of 100 or more.
"""

from session import arguments, session, wait_for_executors

options = arguments(("tasks", 4000))
spark = session("counter-refresh")
wait_for_executors(spark, 2)
print(spark.range(0, options.tasks, 1, options.tasks).selectExpr("sum(id)").collect())
spark.stop()
