"""A query shuffles several times what it reads.

Makes: 400,000 readings (a Parquet file of some 60 MB) are repeated for each of
six time zones and then repartitioned by one of them, so that 350 MB go through
the exchange. Ten GiB take too long here: tests lower the threshold for bytes.

A right diagnosis says: shuffle_heavy, with the exchange that carries most, at a
threshold of 200 MiB.

The tempting wrong verdict: io_bound by input, or missed_broadcast: nothing is
joined. --healthy repartitions first and repeats afterwards.
"""

from session import arguments, fresh_folder, incompressible, session, wait_for_executors

from pyspark.sql import functions as F

options = arguments()
spark = session("readings-by-zone", {"spark.sql.shuffle.partitions": "8"})
wait_for_executors(spark, 2)
folder = str(fresh_folder("shuffle_heavy") / "readings")
spark.range(0, 400_000, 1, 4).select("id", incompressible("id", 128).alias("reading")).write.parquet(folder)
readings = spark.read.schema("id long, reading string").parquet(folder)
zones = F.explode(F.array(*[F.lit(zone) for zone in range(6)])).alias("zone")
if options.healthy:
    rows = readings.repartition(8, "id").select("id", "reading", zones)
else:
    rows = readings.select("id", "reading", zones).repartition(8, "zone", "id")
print(rows.agg(F.max("reading"), F.count("*"), F.max("zone")).collect()[0][1])
spark.stop()
