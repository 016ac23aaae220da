//! What is sent of a run, by signal: its spans, the records of its findings.

use std::sync::Arc;
use std::time::Duration;

use crate::config::otlp::{LogsSettings, OtlpResource, TracesSettings};
use crate::diagnose::Subject;
use crate::expose::LiveTexts;
use crate::expose::otlp::deliver::Request;
use crate::expose::otlp::records::{self, Memo, Now};
use crate::expose::otlp::resource;
use crate::expose::otlp::spans::{self, Places};
use crate::metrics::RunView;
use crate::store::{Delivered, News, SentSpans};

/// A request, and what is noted of its run once it was taken or refused.
#[derive(Debug)]
pub(super) struct Parcel {
    pub(super) request: Request,
    pub(super) news: News,
    /// Items that it says are left out for good.
    pub(super) left_out: u64,
}

/// What of a run is to be sent now, in this order.
#[derive(Debug, Default)]
pub(super) struct Parcels {
    pub(super) parcels: Vec<Parcel>,
    /// What is noted without anything being sent.
    pub(super) silent: News,
    /// Whether there may be more of the same reading later.
    pub(super) again: bool,
}

/// One signal.
pub(super) trait Work: Send + Sync + 'static {
    /// What it remembers of a run between two looks.
    type Memo: Default + Send + 'static;

    /// Whether it is sent also where the store cannot tell what was sent of
    /// the run.
    const THOUGH_UNCERTAIN: bool;

    /// Runs that ended longer ago are not sent.
    fn max_age(&self) -> Duration;

    /// Takes as long as the run is large.
    fn due(&self, view: &RunView, sent: &Delivered, memo: &mut Self::Memo, now: Now) -> Parcels;
}

/// Spans. Where the store is in trouble they are sent all the same: a span
/// that comes twice has the same ids and is the same span, one that does not
/// come is lost.
#[derive(Debug)]
pub(super) struct Traces {
    pub(super) settings: TracesSettings,
    pub(super) resource: OtlpResource,
    pub(super) texts: Arc<LiveTexts>,
    pub(super) request_size: usize,
}

impl Work for Traces {
    type Memo = ();

    const THOUGH_UNCERTAIN: bool = true;

    fn max_age(&self) -> Duration {
        self.settings.max_age
    }

    fn due(&self, view: &RunView, sent: &Delivered, (): &mut (), now: Now) -> Parcels {
        let due = spans::due(view, &sent.spans, &self.settings, self.texts.get(), now.at);
        let resource = resource::of_run(&self.resource, view);
        let batches = spans::requests(due.parts, &resource, self.request_size);
        let mut parcels = Parcels { again: due.again, ..Parcels::default() };
        for spans::Batch { request, done } in batches {
            let mut spans = SentSpans::default();
            for done in &done {
                done.put(&mut spans);
            }
            let news = News { spans, ..News::default() };
            let left_out = done.iter().map(|done| done.dropped).sum();
            if request.items == 0 {
                parcels.silent.append(news);
            } else {
                parcels.parcels.push(Parcel { request, news, left_out });
            }
        }
        parcels
    }
}

/// Records of findings. Where the store is in trouble they wait: a record
/// that comes twice looks like a second finding.
#[derive(Debug)]
pub(super) struct Logs {
    pub(super) settings: LogsSettings,
    pub(super) resource: OtlpResource,
    pub(super) request_size: usize,
    /// Where traces are sent too: records name the span they are about.
    pub(super) traces: Option<TracesSettings>,
}

impl Work for Logs {
    type Memo = Memo;

    const THOUGH_UNCERTAIN: bool = false;

    fn max_age(&self) -> Duration {
        self.settings.max_age
    }

    fn due(&self, view: &RunView, sent: &Delivered, memo: &mut Memo, now: Now) -> Parcels {
        let traces = self.traces.as_ref();
        let places = traces.map(|traces| Places::of(&view.application, traces.sampling));
        let span_of = |subject: &Subject| places.as_ref()?.of_subject(subject);
        let due = records::due(view, &sent.findings, memo, now, &span_of);
        let resource = resource::of_run(&self.resource, view);
        let batches = records::requests(due.records, &resource, self.request_size);
        let parcel = |records::Batch { request, news }| {
            let news = News { findings: news, ..News::default() };
            Parcel { request, news, left_out: 0 }
        };
        Parcels {
            parcels: batches.into_iter().map(parcel).collect(),
            silent: News { findings: due.silent, ..News::default() },
            again: due.again,
        }
    }
}
