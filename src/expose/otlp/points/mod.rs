//! A snapshot as OTLP metrics.
