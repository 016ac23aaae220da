//! How far reading has come, on a terminal; and every line for standard error
//! or output, so that they do not run into each other.
//!
//! Standard error only, and only where that is a terminal: nothing of it ever
//! lands in a file or a pipe.

use std::io::{self, IsTerminal, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::fetch::files::{Files, FilesError, Listing};

const BAR: &str = "{bar:24} {bytes}/{total_bytes} {wide_msg}";
const SPINNER: &str = "{spinner} {bytes} {wide_msg}";

/// Cheap to clone: all are one bar.
#[derive(Debug, Clone)]
pub(super) struct Progress {
    bar: ProgressBar,
    applications: usize,
    begun: Arc<AtomicUsize>,
}

impl Progress {
    pub(super) fn hidden() -> Self {
        Self { bar: ProgressBar::hidden(), applications: 0, begun: Arc::default() }
    }

    /// For logs of so many bytes in all, as far as is known beforehand.
    pub(super) fn new(bytes: u64, applications: usize) -> Self {
        if !io::stderr().is_terminal() {
            return Self { applications, ..Self::hidden() };
        }
        let target = ProgressDrawTarget::stderr_with_hz(5);
        let (bar, template) = if bytes > 0 {
            (ProgressBar::with_draw_target(Some(bytes), target), BAR)
        } else {
            (ProgressBar::with_draw_target(None, target), SPINNER)
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, applications, begun: Arc::default() }
    }

    /// What is in this place is found out.
    pub(super) fn looking_at(&self, source: &str) {
        // Secrets in what was typed are refused only when it is looked at.
        let shown = source.split(['?', '@']).next_back().filter(|_| !source.contains('?'));
        self.bar.set_message(format!("looking at {}", clean(shown.unwrap_or("a URL"))));
    }

    /// This one is begun.
    pub(super) fn reading(&self, what: &str) {
        let begun = self.begun.fetch_add(1, Ordering::Relaxed) + 1;
        let what = clean(what);
        self.bar.set_message(match self.applications {
            0 | 1 => what,
            all => format!("{begun} of {all}: {what}"),
        });
    }

    /// One line on standard error.
    pub(super) fn complain(&self, message: &str) {
        self.bar.suspend(|| {
            // Nobody may be there to read it.
            let _ = writeln!(io::stderr(), "spark-exporter: {message}");
        });
    }

    /// Runs what writes to standard output, which may be the same terminal.
    pub(super) fn aside<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }

    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }

    /// The same place, whose bytes count as they are read.
    pub(super) fn counting(&self, files: Arc<dyn Files>) -> Counting {
        Counting { files, bar: self.bar.clone() }
    }
}

fn clean(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

#[derive(Debug)]
pub(super) struct Counting {
    files: Arc<dyn Files>,
    bar: ProgressBar,
}

impl Files for Counting {
    fn list(&self) -> Result<Listing, FilesError> {
        self.files.list()
    }

    fn open(&self, path: &str, from: u64) -> Result<Box<dyn Read + Send>, FilesError> {
        let reader = self.files.open(path, from)?;
        Ok(Box::new(self.bar.wrap_read(reader)))
    }

    fn tells_growth(&self) -> bool {
        self.files.tells_growth()
    }

    fn display(&self, path: &str) -> String {
        self.files.display(path)
    }
}
