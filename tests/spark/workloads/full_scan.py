"""A partitioned table, read with and without a filter on its partitions.

Makes: a Parquet table partitioned by day, another without partitions, and four
queries: a filter on a column that is no partition (all ten days are read), a
filter on the day, a join that prunes days while it runs (dynamic partition
pruning), and a scan of the table without partitions.

A right diagnosis says: full_scan for the first query alone. The table is far
smaller than the rule's 10 GiB: tests lower the threshold, or write larger sizes
into the log.

The tempting wrong verdict: the third, whose filter stands in no query; the
fourth, which has no partitions to filter on.
"""

from session import fresh_folder, session, wait_for_executors, warm_up

from pyspark.sql import functions as F

spark = session("visits-report", {"spark.sql.shuffle.partitions": "2"})
wait_for_executors(spark, 2)
warm_up(spark)
folder = fresh_folder("visits")
visits = spark.range(0, 400_000, 1, 2).select(
    "id", (F.col("id") % 977).alias("page"), F.sha2(F.col("id").cast("string"), 256).alias("agent"),
    (F.col("id") % 10).cast("int").alias("day"))
visits.write.partitionBy("day").parquet(f"{folder}/by-day")
visits.coalesce(2).write.parquet(f"{folder}/flat")
spark.range(0, 10, 1, 1).select(F.col("id").cast("int").alias("day"), (F.col("id") % 5).alias("weekday")).write.parquet(
    f"{folder}/days")
columns = "id long, page long, agent string, day int"
by_day = spark.read.schema(columns).parquet(f"{folder}/by-day")
flat = spark.read.schema(columns).parquet(f"{folder}/flat")
days = spark.read.schema("day int, weekday long").parquet(f"{folder}/days")
for query in (
    by_day.where("page = 3"),
    by_day.where("day = 7 and page > 3"),
    by_day.join(days.where("weekday = 4"), "day"),
    flat.where("page = 3"),
):
    print(query.agg(F.count("*"), F.max("agent")).collect())
spark.stop()
