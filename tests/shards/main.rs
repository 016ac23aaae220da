//! Daemons that divide the runs among them: together they show what one would,
//! each run and each name once, and none reads what another covers.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::float_cmp, reason = "what is compared are counts")]

#[path = "../common/mod.rs"]
mod common;
mod divided;
mod one_off;
mod servers;
mod union;
