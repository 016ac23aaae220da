//! Whether texts of users are shown (`web.show_sql`), for everything that shows
//! any: a reload changes it everywhere at once.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::report::Texts;

/// Share it in an `Arc`.
#[derive(Debug)]
pub struct LiveTexts(AtomicBool);

impl LiveTexts {
    pub fn new(texts: Texts) -> Self {
        Self(AtomicBool::new(texts.are_shown()))
    }

    pub fn get(&self) -> Texts {
        if self.0.load(Ordering::Acquire) { Texts::Shown } else { Texts::Hidden }
    }

    pub fn set(&self, texts: Texts) {
        self.0.store(texts.are_shown(), Ordering::Release);
    }
}

impl Default for LiveTexts {
    fn default() -> Self {
        Self::new(Texts::Hidden)
    }
}
