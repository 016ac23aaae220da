//! Puts points into a request until it is full.
//!
//! How long the request is, is known after each point: so none is encoded to
//! find out that it does not fit, and the body is written in one go.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::known::Source;
use super::wire::{
    DATA_POINTS, Frame, METRICS, RESOURCE_METRICS, SCOPE_METRICS, begin_field, field_len,
};
use crate::expose::otlp::deliver::Request;
use crate::metrics::catalogue::Id;

/// Whether a point is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Added {
    Yes,
    /// It belongs into the next request.
    Full,
    /// It fits into none.
    TooLarge,
}

/// A request that is being filled.
#[derive(Debug)]
pub(super) struct Packer<'a> {
    limit: usize,
    scope: &'a [u8],
    frames: &'a [Frame],
    /// Points, each with its key and length.
    points: Vec<u8>,
    groups: Vec<Group>,
    /// Bytes of all groups but the last.
    closed: usize,
    items: u64,
}

/// What becomes a `ResourceMetrics`.
#[derive(Debug)]
struct Group {
    source: Arc<Source>,
    metrics: Vec<Metric>,
    /// Bytes of all metrics but the last.
    closed: usize,
}

#[derive(Debug)]
struct Metric {
    id: Id,
    /// In [`Packer::points`].
    points: Range<usize>,
}

impl<'a> Packer<'a> {
    /// Bodies have `limit` bytes at most.
    pub(super) fn new(limit: usize, scope: &'a [u8], frames: &'a [Frame]) -> Self {
        Self { limit, scope, frames, points: Vec::new(), groups: Vec::new(), closed: 0, items: 0 }
    }

    /// Adds a point. Points of a metric of a source come one after the other,
    /// as do metrics of a source.
    pub(super) fn add(&mut self, source: &Arc<Source>, id: Id, point: &[u8]) -> Added {
        let more = field_len(point.len());
        let of_new_metric = field_len(self.metric_len(id, more));
        let last = self.groups.last().filter(|group| Arc::ptr_eq(&group.source, source));
        let metric = last.and_then(|group| group.metrics.last()).filter(|metric| metric.id == id);
        let total = match (last, metric) {
            (Some(group), Some(metric)) => {
                let grown = field_len(self.metric_len(id, metric.points.len() + more));
                self.closed + field_len(self.group_len(source, group.closed + grown))
            }
            (Some(group), None) => {
                let metrics = self.metrics_len(group) + of_new_metric;
                self.closed + field_len(self.group_len(source, metrics))
            }
            (None, _) => self.len() + field_len(self.group_len(source, of_new_metric)),
        };
        if total > self.limit {
            return if self.items == 0 { Added::TooLarge } else { Added::Full };
        }
        self.open(source, id);
        begin_field(&mut self.points, DATA_POINTS, point.len());
        self.points.extend_from_slice(point);
        if let Some(metric) = self.groups.last_mut().and_then(|group| group.metrics.last_mut()) {
            metric.points.end = self.points.len();
        }
        self.items += 1;
        Added::Yes
    }

    /// Makes the last metric of the last group the one that is meant.
    fn open(&mut self, source: &Arc<Source>, id: Id) {
        let here = self.points.len();
        let same_source = self.groups.last().is_some_and(|g| Arc::ptr_eq(&g.source, source));
        if !same_source {
            self.closed = self.len();
            let (source, metrics) = (Arc::clone(source), Vec::new());
            self.groups.push(Group { source, metrics, closed: 0 });
        }
        let closed = self.groups.last().map_or(0, |group| self.metrics_len(group));
        if let Some(group) = self.groups.last_mut()
            && group.metrics.last().is_none_or(|metric| metric.id != id)
        {
            group.closed = closed;
            group.metrics.push(Metric { id, points: here..here });
        }
    }

    /// The request, if there is anything in it.
    pub(super) fn finish(self) -> Option<Request> {
        if self.items == 0 {
            return None;
        }
        let len = self.len();
        let mut body = Vec::with_capacity(len);
        for group in &self.groups {
            let metrics = self.metrics_len(group);
            begin_field(&mut body, RESOURCE_METRICS, self.group_len(&group.source, metrics));
            body.extend_from_slice(&group.source.resource);
            begin_field(&mut body, SCOPE_METRICS, self.scope.len() + metrics);
            body.extend_from_slice(self.scope);
            for Metric { id, points } in &group.metrics {
                let frame = &self.frames[*id as usize];
                begin_field(&mut body, METRICS, self.metric_len(*id, points.len()));
                body.extend_from_slice(&frame.before);
                begin_field(&mut body, frame.data, points.len() + frame.after.len());
                body.extend_from_slice(&self.points[points.clone()]);
                body.extend_from_slice(&frame.after);
            }
        }
        debug_assert_eq!(body.len(), len, "the length was worked out wrongly");
        Some(Request { body: Bytes::from(body), items: self.items })
    }

    /// Bytes of the whole.
    fn len(&self) -> usize {
        let last = self
            .groups
            .last()
            .map_or(0, |group| field_len(self.group_len(&group.source, self.metrics_len(group))));
        self.closed + last
    }

    fn group_len(&self, source: &Source, metrics: usize) -> usize {
        source.resource.len() + field_len(self.scope.len() + metrics)
    }

    fn metrics_len(&self, group: &Group) -> usize {
        let last = group.metrics.last();
        let last = last.map_or(0, |one| field_len(self.metric_len(one.id, one.points.len())));
        group.closed + last
    }

    fn metric_len(&self, id: Id, points: usize) -> usize {
        let frame = &self.frames[id as usize];
        frame.before.len() + field_len(points + frame.after.len())
    }
}
