"""Streaming queries that fall behind, and others that look as if they did.

Makes: a query with a trigger every four seconds over a source that gives each
batch the same number of rows, whose rows cost more from the thirteenth batch on.

- default: then a batch takes more than five seconds, so that each follows the
  one before without a pause. All values ever seen are kept as state
  (`dropDuplicates` without a watermark), which grows with every batch.
- --busy: then a batch takes three of its four seconds: high load, on time.
- --available: `Trigger.AvailableNow` over files that are there already, one a
  batch: back to back by design, and done at the end.

Each row waits instead of working, so that batches take the same time on a busy
machine.

A right diagnosis says: streaming_behind for the first, with the growth of its
state; nothing for the others.

The tempting wrong verdict: a query behind because batches are back to back
(--available) or nearly as long as the trigger (--busy); "rates are balanced, all
is well" for the first, whose intake is capped.
"""
# needs: java

import argparse
import time

from session import fresh_folder, java, session, wait_for_executors

from pyspark.sql import functions as F

parser = argparse.ArgumentParser()
for flag in ("busy", "available"):
    parser.add_argument(f"--{flag}", action="store_true")
parser.add_argument("--seconds", type=int, default=110)
options = parser.parse_args()

spark = session("meters-live", {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    # Keeps the log small: texts that nobody reads, and stack traces.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.maxPlanStringLength": "500",
    "spark.eventLog.includeTaskMetricsAccumulators": "false",
    "spark.callstack.depth": "2",
})
wait_for_executors(spark, 2)

PER_BATCH, CHEAP_BATCHES = 200, 12
if options.available:
    folder = fresh_folder("meters")
    spark.range(0, 14 * PER_BATCH, 1, 14).write.mode("overwrite").parquet(str(folder))
    meters = (spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).parquet(str(folder))
              .select(F.col("id").alias("value")))
    costly = 25
else:
    meters = (spark.readStream.format("rate-micro-batch").option("rowsPerBatch", PER_BATCH)
              .option("numPartitions", 2).load().select("value"))
    costly = 25 if options.busy else 50
cheap = costly if options.available else 10
waited = F.when(F.col("value") < CHEAP_BATCHES * PER_BATCH, java("sleep", f"{cheap}L")).otherwise(
    java("sleep", f"{costly}L"))
readings = meters.withColumn("waited", waited).where("waited is not null")
if not options.busy and not options.available:
    readings = readings.dropDuplicates(["value"])
writer = readings.writeStream.outputMode("append").format("noop").queryName("meters")
if options.available:
    writer.trigger(availableNow=True).start().awaitTermination()
else:
    query = writer.trigger(processingTime="4 seconds").start()
    time.sleep(options.seconds)
    query.stop()
spark.stop()
