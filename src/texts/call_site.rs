//! The name of a stage: `collect at /jobs/orders.py:12`, the operation of the
//! program that made it and where that stands.
//!
//! Anything else in its place is somebody's text (a description; on Databricks
//! the statement).

/// A call site in its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallSite<'a> {
    /// `collect`, `$anonfun$main$1`.
    pub operation: &'a str,
    /// Without its folder: `orders.py`, `<unknown>`.
    pub file: &'a str,
    pub line: &'a str,
}

impl<'a> CallSite<'a> {
    /// `None`: the name is no call site.
    pub fn of(name: &'a str) -> Option<Self> {
        let (operation, place) = name.split_once(" at ")?;
        let file = place.rsplit(['/', '\\']).next()?;
        let (file, line) = file.rsplit_once(':')?;
        let word = |text: &str, marks: &[char]| {
            !text.is_empty()
                && text.len() <= 60
                && text.chars().all(|c| c.is_ascii_alphanumeric() || marks.contains(&c))
        };
        let fits = word(operation, &['_', '$'])
            && word(file, &['_', '$', '-', '.', '<', '>'])
            && file.contains(['.', '<'])
            && line.chars().all(|c| c.is_ascii_digit());
        fits.then_some(Self { operation, file, line })
    }
}
