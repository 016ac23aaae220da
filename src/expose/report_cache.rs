//! Reports that were made, so that a page that many look at is made once, and
//! the bounds on making them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use tokio::sync::Semaphore;

use super::negotiate::Encoding;
use super::texts::LiveTexts;
use crate::metrics::RunView;
use crate::model::Application;
use crate::report::Texts;

/// Reports made at a time; whoever asks for more waits.
const AT_ONCE: usize = 2;
/// Bodies kept, and bytes of them.
const KEPT: usize = 64;
const KEPT_BYTES: usize = 16 * 1024 * 1024;

/// How a report looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Html,
    Markdown,
    Json,
}

#[derive(Debug)]
pub(super) struct Reports {
    texts: Arc<LiveTexts>,
    pub(super) making: Arc<Semaphore>,
    kept: Mutex<VecDeque<Kept>>,
}

#[derive(Debug)]
struct Kept {
    /// Tells readings of a run apart, and lets go of them: a reading never
    /// changes, and its memory is not used again while this points to it.
    application: Weak<Application>,
    form: Form,
    encoding: Encoding,
    texts: Texts,
    body: Bytes,
}

impl Default for Reports {
    fn default() -> Self {
        Self::new(Arc::default())
    }
}

impl Reports {
    pub(super) fn new(texts: Arc<LiveTexts>) -> Self {
        Self { texts, making: Arc::new(Semaphore::new(AT_ONCE)), kept: Mutex::default() }
    }

    /// Whether texts of users are shown now.
    pub(super) fn texts(&self) -> Texts {
        self.texts.get()
    }

    pub(super) fn get(&self, run: &RunView, form: Form, encoding: Encoding) -> Option<Bytes> {
        let (wanted, texts) = (Arc::as_ptr(&run.application), self.texts());
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |kept: &&Kept| {
            kept.application.as_ptr() == wanted
                && (kept.form, kept.encoding, kept.texts) == (form, encoding, texts)
        };
        kept.iter().find(is_it).map(|kept| kept.body.clone())
    }

    /// Keeps a body that was made with or without texts of users; the oldest
    /// go where there are too many.
    pub(super) fn keep(
        &self,
        run: &RunView,
        form: Form,
        encoding: Encoding,
        texts: Texts,
        body: &Bytes,
    ) {
        let application = Arc::downgrade(&run.application);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|kept| kept.application.strong_count() > 0);
        kept.push_back(Kept { application, form, encoding, texts, body: body.clone() });
        let bytes = |kept: &VecDeque<Kept>| kept.iter().map(|one| one.body.len()).sum::<usize>();
        while kept.len() > KEPT || bytes(&kept) > KEPT_BYTES {
            kept.pop_front();
        }
    }
}
