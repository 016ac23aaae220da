//! A snapshot as OTLP metrics: the same numbers that `/metrics` shows, at
//! every interval the newest of them.
//!
//! ```text
//! Moment -> round  points in order, each with its value and its times
//!        -> wire   each encoded once
//!        -> pack   requests below the limit -> deliver
//! ```
//!
//! What the back end accepted is noted in `known`: it decides what deltas
//! begin at and which series are to be ended. A request that does not get
//! through changes nothing there, so the next interval tells all of it.
//!
//! Points carry the time of the snapshot, those of runs that have ended too:
//! at the time of its end a back end would have a run's numbers once and show
//! them as gone five minutes later, or refuse them as too old.

mod known;
mod pack;
mod push;
mod round;
mod wire;

use std::sync::Arc;

pub use self::push::{Push, push};

use self::known::{Mark, Memory};
use self::round::{Batch, Encoder, Round};
use super::Moment;
use super::deliver::Request;
use crate::config::otlp::{OtlpResource, Temporality};

/// Makes requests of moments, and remembers what a back end took. Does no
/// I/O: [`push()`] drives it.
#[derive(Debug)]
pub struct Points {
    encoder: Encoder,
    memory: Memory,
    round: Option<Round>,
    /// Of the latest request.
    marks: Vec<Mark>,
    dropped: Dropped,
}

/// Points that were left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Larger than a request may be.
    pub too_large: u64,
    /// Ends of series for which there was no room while the back end took
    /// none.
    pub backlog: u64,
}

impl Points {
    /// `instance`: what tells this exporter from others. Bodies have
    /// `request_size` bytes at most; so many `series` that left wait at most
    /// for their end to be accepted.
    pub fn new(
        temporality: Temporality,
        resource: OtlpResource,
        instance: String,
        request_size: usize,
        series: usize,
    ) -> Self {
        Self {
            encoder: Encoder::new(temporality, resource, instance, request_size, series),
            memory: Memory::default(),
            round: None,
            marks: Vec::new(),
            dropped: Dropped::default(),
        }
    }

    /// Begins with a moment; what was not asked for of the one before is left
    /// out.
    pub fn begin(&mut self, moment: Arc<Moment>) {
        self.leave();
        let round = Round::new(&self.encoder, &mut self.memory, moment);
        self.dropped.backlog += round.forgotten;
        self.round = Some(round);
    }

    /// Begins with the end of all series that are the exporter's own: it ends
    /// itself, and whoever comes next may be another instance. `moment`: the
    /// one that came last.
    pub fn end(&mut self, moment: Arc<Moment>) {
        self.leave();
        self.round = Some(Round::farewell(&self.encoder, &self.memory, moment));
    }

    /// The next request, if there is more. Whoever asks says what became of
    /// it before asking again: a request that nothing is said of was given up.
    pub fn request(&mut self) -> Option<Request> {
        self.marks.clear();
        loop {
            let round = self.round.as_mut()?;
            let Some(batch) = round.next(&self.encoder, &self.memory) else {
                self.memory.behind.clear();
                self.round = None;
                return None;
            };
            let Batch { request, marks, dropped } = batch;
            self.dropped.too_large += dropped;
            if request.is_some() {
                self.marks = marks;
                return request;
            }
        }
    }

    /// The latest request arrived.
    pub fn accepted(&mut self) {
        self.memory.accepted(std::mem::take(&mut self.marks));
    }

    /// It will never be taken.
    pub fn refused(&mut self) {
        self.memory.refused(&std::mem::take(&mut self.marks));
    }

    /// It did not arrive in time, and neither will the others of this moment.
    pub fn given_up(&mut self) {
        self.leave();
    }

    /// What was left out since this was asked last.
    pub fn take_dropped(&mut self) -> Dropped {
        std::mem::take(&mut self.dropped)
    }

    /// Ends the round, and notes what it did not get to.
    fn leave(&mut self) {
        self.marks.clear();
        if let Some(round) = self.round.take() {
            self.memory.behind = round.left().collect();
        }
    }
}
