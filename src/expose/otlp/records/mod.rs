//! New and cleared findings as log records. Pure.
