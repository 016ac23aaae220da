"""Plans as Spark explains them, and a driver's log beside them.

Makes: `EXPLAIN FORMATTED` of queries of several sorts in the folder `explained` of
the data, before they run and after (when adaptive execution has made its final
plan); a job whose stage fails, which the program catches. With --memory also a
result that does not fit into the driver's heap: run it with
spark.driver.memory=512m. It is not run for its event log.

A right diagnosis says (of the texts alone): a cartesian product without any keys,
Python row by row, a partitioned table read whole; and that there was no run to
measure any of it by.

The tempting wrong verdict: any number.
"""

import shutil

from session import DATA, arguments, session, wait_for_executors

from pyspark.sql import functions as F
from pyspark.sql.types import LongType

options = arguments(("memory", 0))
folder = DATA / "explained"
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)
spark = session("explained", {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.warehouse.dir": str(DATA / "explained" / "warehouse"),
    "spark.task.maxFailures": "1",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
})
wait_for_executors(spark, 2)
entries = str(DATA / "explained" / "entries")
(spark.range(0, 8_000, 1, 2)
 .select("id", (F.col("id") % 40).alias("account"), (F.col("id") % 4).alias("day"), F.lit("x" * 20).alias("text"))
 .write.partitionBy("day").parquet(entries))
accounts = spark.range(0, 40, 1, 2).select(F.col("id").alias("account"), (F.col("id") % 3).alias("kind"))
ledger = spark.read.schema("id long, account long, text string, day int").parquet(entries)
ledger.createOrReplaceTempView("ledger")
accounts.createOrReplaceTempView("accounts")
square = F.udf(lambda value: value * value, LongType())

QUERIES = {
    "join": lambda: ledger.where("day = 1 and id > 100").join(F.broadcast(accounts), "account").groupBy("kind").count(),
    "shuffled_join": lambda: ledger.join(accounts.hint("merge"), "account").groupBy("kind").count(),
    "cartesian": lambda: ledger.where("day = 2").crossJoin(accounts.hint("shuffle_replicate_nl")).groupBy().count(),
    "nested_loop": lambda: ledger.alias("a").join(accounts.alias("b"), F.expr("a.account > b.account * 30")).groupBy().count(),
    "python": lambda: ledger.where("day = 1").select(F.sum(square("account"))),
    "whole_table": lambda: spark.sql("select account, count(distinct text) from ledger group by account"),
    "subquery": lambda: spark.sql("select count(*) from ledger where id > (select avg(account) from accounts)"),
    "cached": lambda: ledger.groupBy("day").count().cache(),
}


def explain(frame, mode):
    execution = frame._jdf.queryExecution()
    mode = spark._jvm.org.apache.spark.sql.execution.ExplainMode.fromString(mode)
    return execution.explainString(mode)


for name, query in QUERIES.items():
    frame = query()
    (folder / f"{name}.txt").write_text(explain(frame, "formatted"))
    frame.collect()
    (folder / f"{name}.final.txt").write_text(explain(frame, "formatted"))
frame = QUERIES["join"]()
(folder / "join.simple.txt").write_text(explain(frame, "simple"))
(folder / "join.extended.txt").write_text(explain(frame, "extended"))
try:
    spark.sql("select raise_error('no such account') from ledger").collect()
except Exception as error:
    print(f"failed as it should: {type(error).__name__}")
if options.memory:
    spark.range(0, options.memory, 1, 4).select(F.repeat(F.lit("x"), 1_000).alias("text"), "id").collect()
spark.stop()
