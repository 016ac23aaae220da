//! The tests, together under one name: they mostly wait, so `make test` runs
//! them beside others that do.

mod decoder;
mod faults;
mod jaeger;
mod live;
mod metrics;
mod own;
mod page;
mod records;
mod reload;
mod traces;
