//! Records as requests below a size.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;

use super::Record;
use crate::expose::otlp::deliver::Request;
use crate::expose::otlp::resource;
use crate::store::FindingNews;

/// Lengths of the messages around the records can grow by so many bytes as
/// these are filled.
const ROOM: usize = 32;

/// One request, and what is noted once it was taken.
#[derive(Debug)]
pub(in crate::expose::otlp) struct Batch {
    pub(in crate::expose::otlp) request: Request,
    pub(in crate::expose::otlp) news: Vec<FindingNews>,
}

/// As few requests as fit in `most` bytes each, in the order of the records.
/// A record too large for one loses the last of its attributes.
pub(in crate::expose::otlp) fn requests(
    records: Vec<Record>,
    resource: &Resource,
    most: usize,
) -> Vec<Batch> {
    let frame = encoded(resource, Vec::new()).encoded_len() + ROOM;
    let room = most.saturating_sub(frame);
    let mut batches = Vec::new();
    let mut logs: Vec<LogRecord> = Vec::new();
    let mut news: Vec<FindingNews> = Vec::new();
    let mut size = 0;
    for record in records {
        let log = fitting(record.log, room);
        let length = size_of(&log);
        if size + length > room && !logs.is_empty() {
            batches.push(batch(resource, std::mem::take(&mut logs), std::mem::take(&mut news)));
            size = 0;
        }
        size += length;
        logs.push(log);
        news.push(record.news);
    }
    if !logs.is_empty() {
        batches.push(batch(resource, logs, news));
    }
    batches
}

fn batch(resource: &Resource, logs: Vec<LogRecord>, news: Vec<FindingNews>) -> Batch {
    let items = logs.len() as u64;
    let body = encoded(resource, logs).encode_to_vec().into();
    Batch { request: Request { body, items }, news }
}

fn encoded(resource: &Resource, log_records: Vec<LogRecord>) -> ExportLogsServiceRequest {
    let scope_logs =
        vec![ScopeLogs { scope: Some(resource::scope()), log_records, ..ScopeLogs::default() }];
    ExportLogsServiceRequest {
        resource_logs: vec![ResourceLogs {
            resource: Some(resource.clone()),
            scope_logs,
            ..ResourceLogs::default()
        }],
    }
}

/// With the tag and the length in front of it.
fn size_of(log: &LogRecord) -> usize {
    let length = log.encoded_len();
    1 + prost::length_delimiter_len(length) + length
}

fn fitting(mut log: LogRecord, room: usize) -> LogRecord {
    while size_of(&log) > room && log.attributes.pop().is_some() {
        log.dropped_attributes_count = log.dropped_attributes_count.saturating_add(1);
    }
    log
}
