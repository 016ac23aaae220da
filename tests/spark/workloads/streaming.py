"""A short structured streaming query.

Makes: the rate source, a windowed count with a watermark, a trigger every two
seconds, stopped after --seconds seconds (20 by default). The program stops the
query itself and ends with status 0.

A right diagnosis says: kind streaming; the driver's idle time is trigger wait;
the jobs of a stopped query are cancelled and not failed.

The tempting wrong verdict: gaps in the driver; idle cores; job_failed.
"""

import time

from session import arguments, session, wait_for_executors

from pyspark.sql import functions as F

options = arguments(("seconds", 20))
spark = session("visits-live", {"spark.sql.shuffle.partitions": "2"})
wait_for_executors(spark, 2)
visits = spark.readStream.format("rate").option("rowsPerSecond", 200).option("numPartitions", 2).load()
counts = visits.withWatermark("timestamp", "10 seconds").groupBy(F.window("timestamp", "5 seconds")).count()
query = (counts.writeStream.outputMode("update").format("noop").queryName("visits")
         .trigger(processingTime="2 seconds").start())
time.sleep(options.seconds)
query.stop()
spark.stop()
