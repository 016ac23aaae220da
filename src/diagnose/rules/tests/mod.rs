//! Each rule: it fires, a near miss does not, and the tempting wrong verdict
//! is not given.

mod derived_numbers;
mod failures;
mod joins;
mod outcome;
mod pods;
mod scans;
mod slow_stages;
mod streams;
mod uneven_tasks;
mod waiting_tasks;
mod whole_run;
