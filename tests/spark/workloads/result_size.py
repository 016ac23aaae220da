"""More is collected than the driver takes.

Makes: a collect of some 24 MB of rows with spark.driver.maxResultSize=8m. The job
is aborted and with it the program.

A right diagnosis says: memory, about the key spark.driver.maxResultSize, with how
much was collected; and the failed job.

The tempting wrong verdict: executors out of memory; a fault of a row.

--few collects 4 MB: well below the limit.
"""

import argparse

from session import incompressible, session, wait_for_executors

parser = argparse.ArgumentParser()
parser.add_argument("--few", action="store_true")
options = parser.parse_args()
spark = session("download-all" + ("-few" if options.few else ""), {"spark.driver.maxResultSize": "8m"})
wait_for_executors(spark, 2)
rows = spark.range(0, 30_000 if options.few else 180_000, 1, 12).select(incompressible("id", 128).alias("text"))
print(len(rows.collect()))
spark.stop()
