//! A run as the spans of a trace. Pure.
