//! One diagnosis for a person, or for a person's program. Pure: model and
//! findings in, text out.

mod focus;
mod json;
mod json_sql;
mod summary;
mod text;

pub use focus::focus;
pub use json::{SCHEMA_VERSION, json};
pub use summary::Summary;
pub use text::{Colours, text};

use crate::diagnose::Diagnosis;
use crate::model::Application;

/// Whether a report shows text of SQL: descriptions, arguments of plan nodes,
/// error messages. Literals in them may be secrets, so by default it does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SqlTexts {
    Hidden,
    Shown,
}

/// A run and what was found in it.
#[derive(Debug, Clone)]
pub struct Diagnosed {
    pub application: Application,
    pub diagnosis: Diagnosis,
}
