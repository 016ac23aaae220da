"""A thousand short stages, for those who list them.

Makes: --stages jobs of one stage with two tasks each, then keeps the driver up
for --linger seconds. Used live: retention starts to evict beyond 1,000.

A right diagnosis says: nothing about any single stage.
"""

import time

from session import arguments, session, wait_for_executors

options = arguments(("stages", 1000), ("linger", 0))
spark = session("micro-batches")
if not spark.sparkContext.master.startswith("local["):
    wait_for_executors(spark, 2)
for _ in range(options.stages):
    spark.range(0, 2, 1, 2).write.format("noop").mode("overwrite").save()
print("stages_done=true", flush=True)
time.sleep(options.linger)
spark.stop()
