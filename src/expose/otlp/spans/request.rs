//! Parts as requests below a size.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;

use super::{Done, Part};
use crate::expose::otlp::deliver::Request;
use crate::expose::otlp::resource;

/// Lengths of the messages around the spans can grow by so many bytes as
/// these are filled.
const ROOM: usize = 32;

/// One request, and which parts are whole once it and those before it are
/// taken.
#[derive(Debug)]
pub struct Batch {
    pub request: Request,
    pub done: Vec<Done>,
}

/// As few requests as fit in `most` bytes each, in the order of the parts. A
/// span too large for one loses its events, then its links, then its
/// attributes.
pub fn requests(parts: Vec<Part>, resource: &Resource, most: usize) -> Vec<Batch> {
    let frame = encoded(resource, Vec::new()).encoded_len() + ROOM;
    let room = most.saturating_sub(frame);
    let mut batches = Vec::new();
    let mut spans: Vec<Span> = Vec::new();
    let mut done: Vec<Done> = Vec::new();
    let mut size = 0;
    for part in parts {
        for span in part.spans {
            let span = fitting(span.into(), room);
            let length = size_of(&span);
            if size + length > room && !spans.is_empty() {
                batches.push(batch(
                    resource,
                    std::mem::take(&mut spans),
                    std::mem::take(&mut done),
                ));
                size = 0;
            }
            size += length;
            spans.push(span);
        }
        done.push(part.done);
    }
    if !spans.is_empty() || !done.is_empty() {
        batches.push(batch(resource, spans, done));
    }
    batches
}

fn batch(resource: &Resource, spans: Vec<Span>, done: Vec<Done>) -> Batch {
    let items = spans.len() as u64;
    let body = encoded(resource, spans).encode_to_vec().into();
    Batch { request: Request { body, items }, done }
}

fn encoded(resource: &Resource, spans: Vec<Span>) -> ExportTraceServiceRequest {
    let scope_spans =
        vec![ScopeSpans { scope: Some(resource::scope()), spans, ..ScopeSpans::default() }];
    ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(resource.clone()),
            scope_spans,
            ..ResourceSpans::default()
        }],
    }
}

/// With the tag and the length in front of it.
fn size_of(span: &Span) -> usize {
    let length = span.encoded_len();
    1 + prost::length_delimiter_len(length) + length
}

fn fitting(mut span: Span, room: usize) -> Span {
    while size_of(&span) > room && span.events.pop().is_some() {
        span.dropped_events_count = span.dropped_events_count.saturating_add(1);
    }
    while size_of(&span) > room && span.links.pop().is_some() {
        span.dropped_links_count = span.dropped_links_count.saturating_add(1);
    }
    while size_of(&span) > room && span.attributes.pop().is_some() {
        span.dropped_attributes_count = span.dropped_attributes_count.saturating_add(1);
    }
    span
}
