//! Runs about scans, files, caches, Python and streaming.

use spark_exporter::diagnose::{Cause, Rule, Severity};

use super::{Expected, healthy, ill};
use Rule::{CacheEvicted, PythonUdf, SmallFilesRead, SmallFilesWritten, StreamingBehind};
use Severity::{Info, Warning};

pub(crate) const EXPECTED: &[Expected] = &[
    ill("python_udf", &[(PythonUdf, None, Warning)]),
    ill("python_udf-arrow", &[(PythonUdf, None, Warning)]),
    ill("python_udf-vectorised", &[(PythonUdf, Some(Cause::SlowVectorised), Info)]),
    healthy("python_udf-cheap"),
    healthy("python_udf-first_tasks"),
    healthy("python_udf-fed"),
    ill("cache_evicted", &[(CacheEvicted, None, Info)]),
    healthy("cache_evicted-few"),
    healthy("cache_evicted-disk"),
    ill("small_files", &[(SmallFilesRead, None, Info), (SmallFilesWritten, None, Warning)]),
    healthy("small_files-few"),
    // Far below 10 GiB: see below for what it says at other thresholds.
    healthy("full_scan"),
    ill("streaming_behind", &[(StreamingBehind, None, Warning)]),
    healthy("streaming_behind-busy"),
    healthy("streaming_behind-available"),
    healthy("healthy_short"),
    healthy("trace_context"),
];
