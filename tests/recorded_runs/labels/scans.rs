//! Runs about scans, files, caches, Python and streaming.

use spark_exporter::diagnose::{Cause, Rule, Severity};

use super::{Expected, healthy, ill};
use Rule::PythonUdf;
use Severity::{Info, Warning};

pub(crate) const EXPECTED: &[Expected] = &[
    ill("python_udf", &[(PythonUdf, None, Warning)]),
    ill("python_udf-arrow", &[(PythonUdf, None, Warning)]),
    ill("python_udf-vectorised", &[(PythonUdf, Some(Cause::SlowVectorised), Info)]),
    healthy("python_udf-cheap"),
    healthy("python_udf-first_tasks"),
    healthy("python_udf-fed"),
];
