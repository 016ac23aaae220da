//! All tests, under a name by which they are run beside others: they mostly
//! wait.

mod faults;
mod operators;
mod pods;
mod real_driver;
