"""A large event log quickly: --tasks tasks that do nothing.

Makes: one stage of 100,000 tasks by default; on local[2] this takes a few
minutes and writes about 4.5 KB of JSON a task. For benchmarks.
"""

from session import arguments, session

options = arguments(("tasks", 100_000))
spark = session("wide-scan")
print(spark.range(0, options.tasks, 1, options.tasks).selectExpr("sum(id)").collect())
spark.stop()
