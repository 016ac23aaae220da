//! What is wrong with a run, and what it costs: model in, findings out. Pure.

mod finding;
mod numbers;

pub use finding::{
    Advice, Cause, Confidence, Evidence, Finding, FindingKind, Impact, Rule, Severity, Subject,
    Unit, Where,
};
pub use numbers::{Diagnosis, IoPerCore, RunNumbers, StageNumbers};
