//! Series by name of application, across its runs.

use std::sync::Arc;
use std::time::Duration;

use super::label;
use crate::config::{Limits, Names};
use crate::diagnose::Baseline;
use crate::report::privacy::redacted;
use crate::store::{NameKey, Totals};

/// A name with what is known of its runs.
#[derive(Debug, Clone, PartialEq)]
pub struct NameView {
    pub name: NameKey,
    /// As they are to be shown ([`Totals::shown`]).
    pub totals: Totals,
    /// What the newest run that ended well was held against.
    pub baseline: Option<Baseline>,
    /// Its duration / the baseline's median.
    pub regression_ratio: Option<f64>,
    /// Median time between the ends of runs that ended well, of 5 and more.
    pub success_interval: Option<Duration>,
}

/// The `app_name` label of an application of this name: rewritten by the
/// operator's rules, without secrets, cleaned and cut.
pub fn app_name(name: &str, names: &Names, limits: &Limits) -> Arc<str> {
    label::clean(&redacted(&names.rewrite(name)), limits.label_length).into()
}
