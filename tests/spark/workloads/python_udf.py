"""Python functions in a query, row at a time and vectorised.

Makes: one aggregation over a function of every row, in two stages, after a
stage of JVM work.

- default: a plain Python UDF, its rows pickled (BatchEvalPython).
- --arrow: the same UDF with its rows carried by Arrow
  (`spark.sql.execution.pythonUDF.arrow.enabled`, the default where 4.3.0 finds
  pyarrow): the node is called ArrowEvalPython, and still calls the function row
  by row.
- --vectorised: a pandas UDF whose body is a slow loop over the values, on
  `range`: nothing is read, nothing is shuffled before it, and the JVM waits for
  its Python workers (SPARK-30306).
- --cheap: the plain UDF over few rows, beside a long stage of JVM work.
- --fed: a fast pandas UDF over a column that costs the JVM a lot to compute, in
  the same stage.
- --first: a fast pandas UDF in a stage whose first tasks start the Python
  workers and import pandas: they run long with the JVM idle, the others do not.

A right diagnosis says: python_udf for the first three, with cause
slow_vectorised for the third; nothing for the others.

The tempting wrong verdict: io_bound or idle cores, because the CPU of the JVM
does little; "vectorised already" for --arrow; slow Python for --first and --fed (up to 3.5 a
thread of its own feeds Python, and its CPU time is in no task's).
"""
# needs: arrow

import argparse

from session import session, wait_for_executors, warm_up, work

from pyspark.sql import functions as F
from pyspark.sql.types import LongType

parser = argparse.ArgumentParser()
for flag in ("arrow", "vectorised", "cheap", "fed", "first"):
    parser.add_argument(f"--{flag}", action="store_true")
options = parser.parse_args()

spark = session("scores", {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.execution.pythonUDF.arrow.enabled": str(options.arrow).lower(),
})
wait_for_executors(spark, 2)
warm_up(spark)


def digits(value):
    """The cross sum of the number's square: some microseconds a row."""
    total = 0
    for character in str(value * value):
        total += int(character)
    return total


def vectorised(function):
    import pandas

    def of_batch(values: pandas.Series) -> pandas.Series:
        return function(values)

    return F.pandas_udf(of_batch, "long")


if options.vectorised:
    def loop(values):
        import pandas

        return pandas.Series([sum(digits(value + more) for more in range(6)) for value in values])

    score, rows = vectorised(loop), 800_000
elif options.first or options.fed:
    score, rows = vectorised(lambda values: values % 97), 2_000_000
else:
    score, rows = F.udf(digits, LongType()), 30_000 if options.cheap else 6_000_000

if options.cheap:
    print(work(spark.range(0, 600_000, 1, 16), rounds=6).agg(F.sum("cost")).collect())
numbers = spark.range(0, rows, 1, 8 if options.cheap else 16)
if options.first:
    numbers = work(numbers.where("id % 40 = 0"), rounds=6).select(score("id").alias("score"), "cost")
    print(numbers.agg(F.sum("score"), F.sum("cost")).collect())
elif options.fed:
    numbers = work(numbers.where("id % 8 = 0"), rounds=6).where("cost > 0")
    print(numbers.select(score("cost").alias("score")).agg(F.sum("score")).collect())
else:
    print(numbers.select(score("id").alias("score")).agg(F.sum("score")).collect())
spark.stop()
