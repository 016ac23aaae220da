"""One query of each sort whose plan says something.

Makes: a partitioned Parquet table and another of few rows; a broadcast join and
a sort-merge join over it with partition and pushed filters; a Python function a
row; a cached table read twice; CREATE TABLE AS, which runs its query as a nested
execution; an execution that fails. Run with
spark.eventLog.logStageExecutorMetrics, so that the log has the memory of the
driver and of each stage.

A right diagnosis says: one failed job, which the program caught.

The tempting wrong verdict: rows of the cached table counted once for each
execution that read it; rows of the nested execution counted twice.
"""

import shutil

from session import DATA, session, wait_for_executors

from pyspark.sql import functions as F
from pyspark.sql.types import LongType

shutil.rmtree(DATA / "sql_plans", ignore_errors=True)
spark = session("ledger", {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.warehouse.dir": str(DATA / "sql_plans" / "warehouse"),
    # Keeps the log small: texts that nobody reads, and stack traces.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.maxPlanStringLength": "2000",
    "spark.eventLog.includeTaskMetricsAccumulators": "false",
    "spark.callstack.depth": "4",
    "spark.task.maxFailures": "1",
    "spark.executor.metrics.pollingInterval": "500",
})
wait_for_executors(spark, 2)
entries = str(DATA / "sql_plans" / "entries")
(spark.range(0, 120_000, 1, 2)
 .select("id", (F.col("id") % 40).alias("account"), (F.col("id") % 4).alias("day"), F.lit("x" * 20).alias("text"))
 .write.partitionBy("day").parquet(entries))
accounts = spark.range(0, 40, 1, 2).select(F.col("id").alias("account"), (F.col("id") % 3).alias("kind"))

ledger = spark.read.schema("id long, account long, text string, day int").parquet(entries)
monday = ledger.where("day = 1 and id > 1000")
print(monday.join(F.broadcast(accounts), "account").groupBy("kind").count().collect())
spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
print(ledger.join(accounts, "account").groupBy("kind").count().collect())
spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")

square = F.udf(lambda value: value * value, LongType())
print(monday.limit(2_000).select(F.sum(square("account"))).collect())
ledger.createOrReplaceTempView("ledger")

profiles = monday.groupBy("account").count().cache()
print(profiles.count())
print(profiles.agg(F.max("count")).collect())
spark.sql("create table totals using parquet as select day, count(*) as entries from ledger group by day")
try:
    spark.sql("select raise_error('no such account') from ledger").collect()
except Exception as error:
    print(f"failed as it should: {type(error).__name__}")
print(spark.range(0, 10, 1, 1).collect())
spark.stop()
