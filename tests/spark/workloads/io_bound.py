"""A scan of a distant store: the cores wait for bytes.

Makes: reads 256 MiB of text through a file system that hands out 8 MiB a second
to each reader and sleeps meanwhile.

A right diagnosis says: io_bound, input: bytes per core and second are high and
the CPU is idle for more than half of the run time.

The tempting wrong verdict: too few cores; nothing at all.

--healthy reads the same bytes from the disk and works on them: the rate per core
may be as high, but the CPU is busy.
"""

# needs: java

import hashlib

from session import arguments, fresh_folder, session, wait_for_executors, warm_up

from pyspark.sql import functions as F

options = arguments(("mebibytes", 256))
folder = fresh_folder("readings")
line = b"".join(hashlib.sha256(str(number).encode()).hexdigest().encode() + b"\n" for number in range(16132))
for part in range(8):
    with open(folder / f"part-{part:05}.txt", "wb") as file:
        for _ in range(options.mebibytes // 8):
            file.write(line)

spark = session("readings-scan" + ("-local" if options.healthy else ""), {
    "spark.hadoop.fs.slow.impl": "sparkexporter.SlowFileSystem",
    "spark.sql.files.maxPartitionBytes": "16m",
})
wait_for_executors(spark, 2)
warm_up(spark)
lines = spark.read.text(f"{'file' if options.healthy else 'slow'}://{folder}")
hashed = F.sha2(F.repeat("value", 120), 512) if options.healthy else F.col("value")
print(lines.agg(F.max(hashed)).collect())
spark.stop()
