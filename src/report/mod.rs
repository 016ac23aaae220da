//! One diagnosis for a person, or for a person's program. Pure: model and
//! findings in, text out.

mod json;
mod text;

pub use json::{SCHEMA_VERSION, json};
pub use text::{Colours, text};

use crate::diagnose::Diagnosis;
use crate::model::Application;

/// A run and what was found in it.
#[derive(Debug, Clone)]
pub struct Diagnosed {
    pub application: Application,
    pub diagnosis: Diagnosis,
}
