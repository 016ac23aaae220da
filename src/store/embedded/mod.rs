//! The embedded back end: one file, or memory alone.
