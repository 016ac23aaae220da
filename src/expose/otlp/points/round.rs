//! One moment on its way: which points it makes, in which order, and the
//! requests that carry them, each made when its turn has come.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use jiff::Timestamp;
use twox_hash::XxHash3_128;

use super::super::Moment;
use super::super::deliver::Request;
use super::super::resource::{of_exporter, of_run, text_of};
use super::known::{Key, Known, Last, Mark, Memory, Source, difference, has_shrunk, is_counted};
use super::pack::{Added, Packer};
use super::wire::{self, Frame, Times};
use crate::config::otlp::{OtlpResource, Temporality};
use crate::metrics::catalogue::{Id, Kind, Scope};
use crate::metrics::label::Text;
use crate::metrics::{Extra, Histogram, Sample, Value};
use opentelemetry_proto::tonic::resource::v1::Resource;

/// What is the same for all rounds.
#[derive(Debug)]
pub(super) struct Encoder {
    frames: Vec<Frame>,
    scope: Vec<u8>,
    temporality: Temporality,
    said: OtlpResource,
    instance: String,
    /// Bytes of a request, at most.
    limit: usize,
    /// Series that left and are not ended yet, at most.
    most: usize,
}

impl Encoder {
    pub(super) fn new(
        temporality: Temporality,
        said: OtlpResource,
        instance: String,
        limit: usize,
        most: usize,
    ) -> Self {
        let (frames, scope) = (Frame::all(temporality), wire::scope_part());
        Self { frames, scope, temporality, said, instance, limit, most }
    }

    fn deltas(&self) -> bool {
        self.temporality == Temporality::Delta
    }
}

/// A request and what its acceptance means.
#[derive(Debug)]
pub(super) struct Batch {
    /// `None` where every point was too large.
    pub(super) request: Option<Request>,
    pub(super) marks: Vec<Mark>,
    /// Points that are larger than a request may be.
    pub(super) dropped: u64,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Round {
    moment: Arc<Moment>,
    time: u64,
    /// When the daemon's own counters began.
    started: u64,
    groups: Vec<Group>,
    /// The next item: its group and its place there.
    group: usize,
    item: usize,
    /// The group that the latest request began with.
    begun_at: usize,
    attributes: Attributes,
    /// Series that were to be ended, and for which there was no room.
    pub(super) forgotten: u64,
}

/// The points of one resource.
#[derive(Debug)]
struct Group {
    source: Arc<Source>,
    items: Vec<Item>,
}

#[derive(Debug, Clone, Copy)]
struct Item {
    key: Key,
    id: Id,
    /// Among the samples of its family; [`Item::ENDED`] of a series that left.
    place: u32,
}

impl Item {
    const ENDED: u32 = u32::MAX;
}

/// Encoded attributes of the subjects of one group, by where their labels
/// lie: a stage has forty series.
#[derive(Debug, Default)]
struct Attributes {
    bytes: Vec<u8>,
    places: HashMap<usize, Range<usize>>,
}

/// What series have in common.
#[derive(Debug, Clone, Copy)]
struct Subject {
    group: usize,
    hash: u128,
}

impl Round {
    /// Looks at all series of the moment; those that are new, and those that
    /// are gone, are noted in `memory`.
    pub(super) fn new(encoder: &Encoder, memory: &mut Memory, moment: Arc<Moment>) -> Self {
        memory.round += 1;
        let snapshot = Arc::clone(&moment.snapshot);
        let started = snapshot.family(Id::Started).first().and_then(|one| one.value.number());
        let time = nanos(moment.at);
        let started = started.map_or(0, |seconds| nanos_of_ms((seconds * 1e3).round() as i64));
        let mut round = Self {
            moment,
            time,
            started,
            groups: Vec::new(),
            group: 0,
            item: 0,
            begun_at: 0,
            attributes: Attributes::default(),
            forgotten: 0,
        };
        let by_run = round.sources(encoder);

        let mut subjects: HashMap<*const Text, Subject> = HashMap::new();
        let mut bytes = Vec::new();
        for id in Id::ALL {
            for (place, sample) in (0..).zip(snapshot.family(*id)) {
                let of_labels = || Subject {
                    group: match id.metric().scope {
                        Scope::Name | Scope::Daemon => 0,
                        _ => {
                            by_run.get(sample.labels.get(..3).unwrap_or(&[])).copied().unwrap_or(0)
                        }
                    },
                    hash: hash_of(&mut Vec::new(), &sample.labels),
                };
                // Of nothing there is no place that is its own.
                let subject = if sample.labels.is_empty() {
                    of_labels()
                } else {
                    *subjects.entry(sample.labels.as_ptr()).or_insert_with(of_labels)
                };
                let source = &round.groups[subject.group].source;
                let key = key(&mut bytes, source, *id, subject.hash, &sample.extra);
                if round.note(encoder, memory, key, *id, sample, subject.group) {
                    round.groups[subject.group].items.push(Item { key, id: *id, place });
                }
            }
        }
        drop(by_run);
        round.ends(encoder, memory);
        // The exporter itself comes first, whoever had to wait.
        if let Some(rest) = round.groups.get_mut(1..) {
            rest.sort_by_key(|group| !memory.behind.contains(&group.source.identity));
        }
        round
    }

    /// The end of all series that are the exporter's own: it ends, and whoever
    /// comes next may be another instance. Those of runs go on with the next
    /// one as if nothing had been.
    pub(super) fn farewell(encoder: &Encoder, memory: &Memory, moment: Arc<Moment>) -> Self {
        let source = exporter(encoder, 0);
        let mut items: Vec<Item> = memory
            .series
            .iter()
            .filter(|(_, known)| known.source.identity == source.identity && known.sent)
            .filter(|(_, known)| !(encoder.deltas() && is_counted(known.id)))
            .map(|(key, known)| Item { key: *key, id: known.id, place: Item::ENDED })
            .collect();
        items.sort_unstable_by_key(|item| (item.id, item.key));
        // After the last point, should the clock have gone back.
        let time = nanos(Timestamp::now()).max(nanos(moment.at) + 1_000_000);
        Self {
            moment,
            time,
            started: 0,
            groups: vec![Group { source: Arc::new(source), items }],
            group: 0,
            item: 0,
            begun_at: 0,
            attributes: Attributes::default(),
            forgotten: 0,
        }
    }

    /// Makes the groups, and tells which is a run's by its labels.
    fn sources(&mut self, encoder: &Encoder) -> HashMap<Vec<Text>, usize> {
        self.groups
            .push(Group { source: Arc::new(exporter(encoder, self.started)), items: Vec::new() });
        let mut by_run = HashMap::new();
        for shown in self.moment.snapshot.runs() {
            let Some(view) = self.moment.runs.get(shown.place) else { continue };
            by_run.insert(shown.labels.to_vec(), self.groups.len());
            let start = view.application.start.map_or(0, nanos);
            let source = source(of_run(&encoder.said, view), start);
            self.groups.push(Group { source: Arc::new(source), items: Vec::new() });
        }
        by_run
    }

    /// Whether the series has a point this time.
    fn note(
        &self,
        encoder: &Encoder,
        memory: &mut Memory,
        key: Key,
        id: Id,
        sample: &Sample,
        group: usize,
    ) -> bool {
        let mut has_point = true;
        let source = &self.groups[group].source;
        let known = memory.series.entry(key).or_insert_with(|| {
            // What a counter that is older than we stood at is nothing that
            // came while we looked: an earlier process has sent it.
            let older = encoder.deltas() && is_counted(id) && self.begun(sample) < self.started;
            has_point = !older;
            let last = older.then(|| Box::new(self.last(sample, self.begun(sample))));
            let labels = Arc::clone(&sample.labels);
            let extra = sample.extra.clone();
            Known { source: Arc::clone(source), id, labels, extra, sent: false, seen: 0, last }
        });
        known.source = Arc::clone(source);
        // So that the texts of earlier snapshots can go.
        known.labels = Arc::clone(&sample.labels);
        known.extra = sample.extra.clone();
        known.seen = memory.round;
        has_point
    }

    /// Adds the ends of series to the groups of their sources.
    fn ends(&mut self, encoder: &Encoder, memory: &mut Memory) {
        let (leaving, forgotten) = memory.leaving(encoder.deltas(), encoder.most);
        self.forgotten = forgotten;
        if leaving.is_empty() {
            return;
        }
        let live: HashMap<u128, usize> =
            self.groups.iter().map(|group| group.source.identity).zip(0..).collect();
        let mut gone: BTreeMap<u128, Group> = BTreeMap::new();
        for key in leaving {
            let Some(known) = memory.series.get(&key) else { continue };
            let item = Item { key, id: known.id, place: Item::ENDED };
            let group = match live.get(&known.source.identity) {
                Some(place) => &mut self.groups[*place],
                None => gone.entry(known.source.identity).or_insert_with(|| Group {
                    source: Arc::clone(&known.source),
                    items: Vec::new(),
                }),
            };
            group.items.push(item);
        }
        self.groups.extend(gone.into_values());
        for group in &mut self.groups {
            group.items.sort_by_key(|item| item.id);
        }
    }

    /// The next request; `None` after the last.
    pub(super) fn next(&mut self, encoder: &Encoder, memory: &Memory) -> Option<Batch> {
        self.begun_at = self.group;
        let mut packer = Packer::new(encoder.limit, &encoder.scope, &encoder.frames);
        let (mut marks, mut dropped) = (Vec::new(), 0);
        let mut point = Vec::new();
        while let Some(group) = self.groups.get(self.group) {
            let Some(item) = group.items.get(self.item).copied() else {
                self.group += 1;
                self.item = 0;
                self.attributes = Attributes::default();
                continue;
            };
            let source = Arc::clone(&group.source);
            point.clear();
            let mark = self.point(&mut point, encoder, memory, item, &source);
            match packer.add(&source, item.id, &point) {
                Added::Yes => marks.extend(mark),
                Added::TooLarge => dropped += 1,
                Added::Full => break,
            }
            self.item += 1;
        }
        let request = packer.finish();
        (request.is_some() || dropped > 0).then_some(Batch { request, marks, dropped })
    }

    /// Sources that the round did not get to, or whose request was not taken
    /// in time.
    pub(super) fn left(&self) -> impl Iterator<Item = u128> {
        self.groups.iter().skip(self.begun_at).map(|group| group.source.identity)
    }

    /// Writes a point.
    fn point(
        &mut self,
        out: &mut Vec<u8>,
        encoder: &Encoder,
        memory: &Memory,
        item: Item,
        source: &Source,
    ) -> Option<Mark> {
        let Item { key, id, place } = item;
        let metric = id.metric();
        let known = memory.series.get(&key);
        if place == Item::ENDED {
            let known = known?;
            wire::scope_attributes(out, metric, &known.labels);
            wire::extra_attributes(out, metric, &known.extra);
            let times = Times { start: 0, time: self.time };
            match known.last.as_deref().map(|last| &last.value) {
                Some(Value::Histogram(last)) => {
                    let nothing = Histogram {
                        counts: vec![0; last.counts.len()],
                        bounds: last.bounds,
                        sum: 0.0,
                        exemplars: Vec::new(),
                    };
                    wire::histogram(out, &nothing, true, times);
                }
                _ => wire::number(out, None, times),
            }
            return Some(Mark { key, last: None, ended: true });
        }
        let snapshot = Arc::clone(&self.moment.snapshot);
        let sample = snapshot.family(id).get(place as usize)?;
        self.attributes.append(out, id, sample);
        let mut last = None;
        match metric.kind {
            Kind::Counter | Kind::Histogram => {
                let before = known.and_then(|known| known.last.as_deref());
                let (value, start) = self.counted(encoder, sample, before);
                let times = Times { start, time: self.time };
                match &value {
                    Value::Number(number) => wire::number(out, Some(*number), times),
                    Value::Histogram(histogram) => wire::histogram(out, histogram, false, times),
                }
                last = Some(Box::new(self.last(sample, start)));
            }
            Kind::Info | Kind::Gauge => {
                // A gauge is of a moment, and has no start; an info metric is
                // a sum that has been 1 since its subject is there.
                let start = if metric.kind == Kind::Info { source.start.min(self.time) } else { 0 };
                let times = Times { start, time: self.time };
                wire::number(out, Some(sample.value.number()?), times);
            }
        }
        Some(Mark { key, last, ended: false })
    }

    /// What a counter's point tells, and from when on.
    fn counted(&self, encoder: &Encoder, sample: &Sample, before: Option<&Last>) -> (Value, u64) {
        let begun = self.begun(sample);
        let value = &sample.value;
        let Some(Last { value: was, times }) = before else { return (value.clone(), begun) };
        // Its series began later than what we know of it: it is another one.
        let anew = begun > times.time || has_shrunk(value, was);
        let (value, start) = match (encoder.temporality, anew) {
            (_, true) => (value.clone(), begun.max(times.time)),
            (Temporality::Cumulative, false) => (value.clone(), begun.max(times.start)),
            (Temporality::Delta, false) => (difference(value, was), times.time),
        };
        (value, start.min(self.time))
    }

    /// Since when the sample counts.
    fn begun(&self, sample: &Sample) -> u64 {
        let begun = sample.since_ms.map_or(self.started, |ms| nanos_of_ms(ms.get()));
        begun.min(self.time)
    }

    fn last(&self, sample: &Sample, start: u64) -> Last {
        Last { value: sample.value.clone(), times: Times { start, time: self.time } }
    }
}

impl Attributes {
    fn append(&mut self, out: &mut Vec<u8>, id: Id, sample: &Sample) {
        let metric = id.metric();
        if metric.kind == Kind::Histogram || sample.labels.is_empty() {
            wire::scope_attributes(out, metric, &sample.labels);
        } else {
            let place = sample.labels.as_ptr() as usize;
            let range = self.places.entry(place).or_insert_with(|| {
                let begun = self.bytes.len();
                wire::scope_attributes(&mut self.bytes, metric, &sample.labels);
                begun..self.bytes.len()
            });
            out.extend_from_slice(&self.bytes[range.clone()]);
        }
        wire::extra_attributes(out, metric, &sample.extra);
    }
}

fn exporter(encoder: &Encoder, started: u64) -> Source {
    source(of_exporter(&encoder.said, &encoder.instance), started)
}

fn source(resource: Resource, start: u64) -> Source {
    let mut names = Vec::new();
    for key in ["service.name", "service.instance.id"] {
        names.extend_from_slice(text_of(&resource, key).unwrap_or_default().as_bytes());
        names.push(0);
    }
    let identity = XxHash3_128::oneshot(&names);
    Source { identity, resource: wire::resource_part(resource), start }
}

fn key(bytes: &mut Vec<u8>, source: &Source, id: Id, subject: u128, extra: &Extra) -> Key {
    bytes.clear();
    bytes.extend_from_slice(&source.identity.to_le_bytes());
    bytes.extend_from_slice(&(id as u16).to_le_bytes());
    bytes.extend_from_slice(&subject.to_le_bytes());
    match extra {
        Extra::None => XxHash3_128::oneshot(bytes),
        Extra::One(word) => hash_of(bytes, &[Text::Static(word)]),
        Extra::Many(texts) => hash_of(bytes, texts),
        Extra::Named(texts, named) => {
            let names = named
                .iter()
                .flat_map(|(name, value)| [Text::Shared(Arc::clone(name)), value.clone()]);
            let all: Vec<Text> = texts.iter().cloned().chain(names).collect();
            hash_of(bytes, &all)
        }
    }
}

/// Of what is in `bytes` already and these texts: equal texts are equal,
/// whatever they are made of.
fn hash_of(bytes: &mut Vec<u8>, texts: &[Text]) -> u128 {
    for text in texts {
        match text {
            Text::Static(text) => bytes.extend_from_slice(text.as_bytes()),
            Text::Shared(text) => bytes.extend_from_slice(text.as_bytes()),
            Text::Number(number) => {
                let mut digits = String::with_capacity(20);
                let _ = write!(digits, "{number}");
                bytes.extend_from_slice(digits.as_bytes());
            }
        }
        // No label has one: control characters are taken out.
        bytes.push(0);
    }
    XxHash3_128::oneshot(bytes)
}

fn nanos(at: Timestamp) -> u64 {
    u64::try_from(at.as_nanosecond()).unwrap_or(0)
}

fn nanos_of_ms(ms: i64) -> u64 {
    u64::try_from(ms).unwrap_or(0).saturating_mul(1_000_000)
}
