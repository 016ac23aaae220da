//! The PostgreSQL back end: to come.
