//! Exemplars of the durations by name: of each bucket the latest run whose
//! trace is sent. A back end shows them as points beside the histogram that
//! lead to the trace of a run that took so long.
//!
//! They are made of the runs held, which leave after `retention`: a back end
//! keeps an exemplar once it has seen it.

use std::collections::HashMap;

use super::sample::{Exemplar, Histogram};
use super::snapshot::RunView;
use crate::model::{SpanId, SpanOf, TraceId};
use crate::store::{DURATION_BOUNDS, ended_well};

/// Exemplars by cluster and name, each list ascending by value.
#[derive(Debug, Default)]
pub(super) struct Exemplars<'a>(HashMap<(&'a str, &'a str), Vec<Exemplar>>);

impl<'a> Exemplars<'a> {
    /// Of runs that ended well, as the histogram counts no others. Where no
    /// traces are sent no run has a trace, and nothing is made.
    pub(super) fn of(runs: &'a [RunView]) -> Self {
        let mut latest: HashMap<(&str, &str), HashMap<usize, Exemplar>> = HashMap::new();
        for view in runs {
            let application = &view.application;
            let (Some(trace_id), Some(at)) = (view.trace_id, application.end) else { continue };
            let Some(duration) = application.duration() else { continue };
            if !ended_well(application) {
                continue;
            }
            // To the millisecond, as it is counted.
            let value = duration.as_millis() as f64 / 1_000.0;
            let run = TraceId::of_run(&application.id, application.start);
            let span_id = SpanId::of(run, SpanOf::Application);
            let exemplar = Exemplar { value, at, trace_id, span_id };
            let bucket = Histogram::bucket_of(&DURATION_BOUNDS, value);
            let of_name = latest.entry((&application.id.cluster, &view.name)).or_default();
            let newest = of_name.entry(bucket).or_insert(exemplar);
            if (newest.at, newest.trace_id) < (at, trace_id) {
                *newest = exemplar;
            }
        }
        let ascending = |of_name: HashMap<usize, Exemplar>| {
            let mut list: Vec<_> = of_name.into_values().collect();
            list.sort_by(|a, b| a.value.total_cmp(&b.value));
            list
        };
        Self(latest.into_iter().map(|(name, list)| (name, ascending(list))).collect())
    }

    /// Those of a name whose bucket has counted something: a run is held
    /// before it is counted, and some that are held never are.
    pub(super) fn of_name(&self, cluster: &str, app_name: &str, counts: &[u64]) -> Vec<Exemplar> {
        let list = self.0.get(&(cluster, app_name)).map_or(&[][..], Vec::as_slice);
        let counted = |exemplar: &&Exemplar| {
            let bucket = Histogram::bucket_of(&DURATION_BOUNDS, exemplar.value);
            counts.get(bucket).is_some_and(|count| *count > 0)
        };
        list.iter().filter(counted).copied().collect()
    }
}
