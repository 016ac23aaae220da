//! Which settings say something about a run, and which of their values may be
//! shown or kept: values of properties are text of users, and hold passwords
//! now and then.

/// They differ between any two runs and explain nothing. One that ends in a dot
/// stands for what begins so.
const NOISE: [&str; 16] = [
    "spark.app.id",
    "spark.app.name",
    "spark.app.startTime",
    "spark.app.submitTime",
    "spark.app.attempt.id",
    "spark.app.initial.",
    "spark.driver.host",
    "spark.driver.port",
    "spark.driver.appUIAddress",
    "spark.ui.",
    "spark.blockManager.port",
    "spark.executor.id",
    "spark.yarn.app.id",
    "spark.org.apache.hadoop.yarn.server.webproxy.",
    "spark.kubernetes.driver.pod.name",
    "spark.repl.class.",
];

/// Beginnings of keys whose values are numbers, sizes, times, yes or no, or
/// classes of Spark's own.
const SAFE: [&str; 26] = [
    "spark.cores.max",
    "spark.default.parallelism",
    "spark.driver.cores",
    "spark.driver.maxResultSize",
    "spark.driver.memory",
    "spark.dynamicAllocation.",
    "spark.executor.cores",
    "spark.executor.heartbeatInterval",
    "spark.executor.instances",
    "spark.executor.memory",
    "spark.executor.pyspark.memory",
    "spark.io.compression.",
    "spark.locality.wait",
    "spark.memory.",
    "spark.network.timeout",
    "spark.rdd.compress",
    "spark.scheduler.mode",
    "spark.serializer",
    "spark.shuffle.",
    "spark.speculation",
    "spark.sql.adaptive.",
    "spark.sql.autoBroadcastJoinThreshold",
    "spark.sql.files.",
    "spark.sql.shuffle.partitions",
    "spark.sql.inMemoryColumnarStorage.",
    "spark.task.",
];

/// Whether it differs between any two runs.
pub fn is_noise(key: &str) -> bool {
    let is_at =
        |noise: &&str| if noise.ends_with('.') { key.starts_with(*noise) } else { key == *noise };
    NOISE.iter().any(is_at)
}

/// Whether it is one of those whose values are plain, and this one is.
pub fn is_plain(key: &str, value: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '%');
    SAFE.iter().any(|safe| key.starts_with(safe)) && value.len() <= 80 && value.chars().all(plain)
}
