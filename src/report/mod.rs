//! One diagnosis for a person, or for a person's program. Pure: model and
//! findings in, text out.

pub mod compare;
mod focus;
mod html;
mod json;
mod json_kubernetes;
mod json_report;
mod json_sql;
mod markdown;
pub mod outline;
pub mod privacy;
mod summary;
mod text;

pub use focus::focus;
pub use html::{Escaped, Place, html};
pub use json::{SCHEMA_VERSION, json, json_of_one};
pub use markdown::markdown;
pub use outline::{Outline, anchor};
pub use privacy::Texts;
pub use summary::Summary;
pub use text::{Colours, text};

use crate::diagnose::Diagnosis;
use crate::model::Application;

/// A run and what was found in it.
#[derive(Debug, Clone)]
pub struct Diagnosed {
    pub application: Application,
    pub diagnosis: Diagnosis,
}

/// The same, held by somebody else.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    pub application: &'a Application,
    pub diagnosis: &'a Diagnosis,
}

impl Diagnosed {
    pub fn view(&self) -> View<'_> {
        View { application: &self.application, diagnosis: &self.diagnosis }
    }
}
