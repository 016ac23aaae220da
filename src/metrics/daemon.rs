//! The daemon's own series, from its counters.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::catalogue::Id;
use super::group::Group;
use super::label::{self, Text};
use super::sample::Extra;
use crate::config::Limits;
use crate::telemetry::{
    DRIVER_STATES, ENDPOINTS, FETCH_ERROR_KINDS, HISTORY_ROUTES, KUBERNETES_FAILURES,
    KUBERNETES_KINDS, LOG_FAILURES, OTLP_DROPPED, OTLP_FAILURES, OTLP_OUTCOMES, SERIES_DROPPED,
    SKIPPED, STORAGE_FAILURES, SUBMISSION_STATES, TelemetrySnapshot, ThresholdSetting,
    WEB_FAILURES,
};

/// `dropped` is what the snapshot being made leaves out, `series` how many
/// series it has in all.
pub(super) fn group(
    telemetry: &TelemetrySnapshot,
    dropped: &BTreeMap<&'static str, u64>,
    series: usize,
    limits: &Limits,
    now: Timestamp,
) -> Group {
    let mut group = Group::new(Arc::new([]));
    let build = Arc::new([telemetry.build.version.into(), telemetry.build.revision.into()]);
    group.with(Id::BuildInfo, Extra::Many(build), true);
    group.add(Id::Started, telemetry.started);
    group.add(Id::SnapshotTime, now);
    for ThresholdSetting { rule, threshold, value } in &*telemetry.thresholds {
        let labels = [rule, threshold].map(|text| Text::clean(text, limits.label_length));
        group.with(Id::Threshold, Extra::Many(Arc::new(labels)), *value);
    }
    targets(&mut group, telemetry, limits);
    fetches(&mut group, telemetry);
    let logs = &telemetry.logs;
    group.add(Id::LogReads, logs.reads);
    by_word(&mut group, Id::LogFailures, &LOG_FAILURES, &telemetry.log_failures);
    group.add(Id::LogBytes, logs.bytes);
    group.add(Id::LogLines, logs.lines);
    group.add(Id::LogBadLines, logs.bad_lines);
    group.add(Id::LogUnknownEvents, logs.unknown_events);
    by_word(&mut group, Id::HistoryReads, &HISTORY_ROUTES, &telemetry.history_reads);
    group.add(Id::ApplicationsHeld, telemetry.applications_held);
    by_word(&mut group, Id::ApplicationsSkipped, &SKIPPED, &telemetry.skipped_by_reason());
    elsewhere(&mut group, telemetry, limits);
    group.add(Id::ApplicationsAppeared, telemetry.applications_appeared);
    group.add(Id::ApplicationsFinished, telemetry.applications_finished);
    group.add(Id::ApplicationsExpired, telemetry.applications_expired);
    group.add(Id::IdentityCollisions, telemetry.identity_collisions);
    let (shard, shards) = telemetry.shards;
    group.add(Id::ShardOrdinal, u64::from(shard));
    group.add(Id::Shards, u64::from(shards.max(1)));
    let reloads = [
        (Id::ConfigGood, Id::ConfigTime, telemetry.config),
        (Id::WebConfigGood, Id::WebConfigTime, telemetry.web_config),
    ];
    for (good, time, status) in reloads {
        group.add(good, status.map(|status| status.good));
        group.add(time, status.map(|status| status.last_success));
    }
    group.add(Id::KubernetesAmended, telemetry.pod_facts.amended);
    group.add(Id::KubernetesForgotten, telemetry.pod_facts.forgotten);
    submissions(&mut group, telemetry, limits);
    let storage = &telemetry.storage;
    group.add(Id::StorageUp, storage.up);
    by_word(&mut group, Id::StorageFailures, &STORAGE_FAILURES, &telemetry.storage_failures);
    group.add(Id::StoragePending, storage.pending);
    group.add(Id::StorageRuns, storage.runs);
    group.add(Id::StorageNames, storage.names);
    group.add(Id::StorageBytes, storage.bytes);
    group.add(Id::StorageForgotten, telemetry.runs_forgotten);
    kubernetes(&mut group, telemetry, limits);
    otlp(&mut group, telemetry);
    group.add(Id::NamesOverflowed, telemetry.names_overflowed);
    let mut all_dropped = telemetry.series_dropped.clone();
    for (reason, count) in dropped {
        *all_dropped.entry(reason).or_default() += count;
    }
    by_word(&mut group, Id::SeriesDropped, &SERIES_DROPPED, &all_dropped);
    group.add(Id::Series, series);
    for ((path, code), count) in &telemetry.web_requests {
        let labels = Arc::new([Text::Static(path), Text::Number((*code).into())]);
        group.with(Id::WebRequests, Extra::Many(labels), *count);
    }
    by_word(&mut group, Id::WebFailures, &WEB_FAILURES, &telemetry.web_failures);
    group
}

/// Operators whose resources are counted, at most: two in each of ten
/// clusters.
const MOST_OPERATORS: usize = 20;
/// Resources with series of their own, at most.
const MOST_SUBMISSIONS: usize = 100;

/// Custom resources by state, and one by one those that somebody may have to
/// look at: the rest shows as runs.
fn submissions(group: &mut Group, telemetry: &TelemetrySnapshot, limits: &Limits) {
    let mut counts: BTreeMap<(&str, &'static str), BTreeMap<&'static str, u64>> = BTreeMap::new();
    let mut looked_at = Vec::new();
    for (id, status) in &telemetry.pod_facts.submissions {
        let of_operator = counts.entry((&id.cluster, id.operator)).or_default();
        *of_operator.entry(status.state).or_default() += 1;
        if !matches!(status.state, "running" | "succeeded") || status.attempts > 1 {
            looked_at.push((id, status));
        }
    }
    for ((cluster, operator), counts) in counts.into_iter().take(MOST_OPERATORS) {
        let cluster = Text::clean(cluster, limits.label_length);
        for state in SUBMISSION_STATES {
            let labels = [cluster.clone(), Text::Static(operator), Text::Static(state)];
            let count = counts.get(state).copied().unwrap_or_default();
            group.with(Id::KubernetesSubmissions, Extra::Many(Arc::new(labels)), count);
        }
    }
    looked_at.sort_by_key(|(_, status)| std::cmp::Reverse(status.submitted));
    let mut seen = std::collections::HashSet::new();
    for (id, status) in looked_at.into_iter().take(MOST_SUBMISSIONS) {
        let labels: Arc<[Text]> = Arc::new([
            Text::clean(&id.cluster, limits.label_length),
            Text::Static(id.operator),
            Text::clean(&id.namespace, limits.label_length.max(253)),
            Text::clean(&id.name, limits.label_length.max(253)),
            Text::Static(status.state),
        ]);
        if seen.insert(Arc::clone(&labels)) {
            let extra = Extra::Many(labels);
            group.with(Id::KubernetesSubmissionAttempts, extra.clone(), status.attempts);
            group.with(Id::KubernetesSubmissionTime, extra, status.submitted);
        }
    }
}

fn targets(group: &mut Group, telemetry: &TelemetrySnapshot, limits: &Limits) {
    // Names that are equal once cut cannot both be shown.
    let mut seen = std::collections::HashSet::new();
    for (id, status) in &telemetry.targets {
        // A URL is worth more room than other labels: cut short, two History
        // Servers behind one long host name would look the same.
        let length = limits.label_length.saturating_mul(4);
        let labels: Arc<[Text]> = Arc::new([
            Text::clean(&id.cluster, limits.label_length),
            Text::clean(&id.target, length),
        ]);
        if !seen.insert(Arc::clone(&labels)) {
            continue;
        }
        let extra = Extra::Many(labels);
        group.with(Id::TargetUp, extra.clone(), status.up);
        group.with(Id::TargetDuration, extra.clone(), status.cycle_duration);
        group.with(Id::TargetSuccessTime, extra.clone(), status.last_success);
        if let Some(logs) = status.logs {
            group.with(Id::TargetLogs, extra.clone(), logs.listed);
            group.with(Id::TargetLogsFollowed, extra.clone(), logs.followed);
            group.with(Id::TargetLogBytes, extra, logs.bytes);
        }
    }
}

fn elsewhere(group: &mut Group, telemetry: &TelemetrySnapshot, limits: &Limits) {
    // Names may be equal once cut.
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for (cluster, count) in telemetry.elsewhere_by_cluster() {
        *sums.entry(label::clean(cluster, limits.label_length)).or_default() += count;
    }
    for (cluster, count) in sums {
        let cluster = Arc::new([Text::clean(&cluster, limits.label_length)]);
        group.with(Id::ApplicationsElsewhere, Extra::Many(cluster), count);
    }
}

fn fetches(group: &mut Group, telemetry: &TelemetrySnapshot) {
    let mut fetches = telemetry.fetches.clone();
    let mut errors = telemetry.fetch_errors.clone();
    for endpoint in ENDPOINTS {
        fetches.entry(endpoint).or_default();
        for kind in FETCH_ERROR_KINDS {
            errors.entry((endpoint, kind)).or_default();
        }
    }
    for (endpoint, counts) in fetches {
        group.add_for(Id::FetchRequests, endpoint, counts.requests);
        group.add_for(Id::FetchBytes, endpoint, counts.bytes);
    }
    for ((endpoint, kind), count) in errors {
        let labels = Arc::new([Text::Static(endpoint), Text::Static(kind)]);
        group.with(Id::FetchErrors, Extra::Many(labels), count);
    }
}

/// Of clusters that are watched; nothing where there is none.
fn kubernetes(group: &mut Group, telemetry: &TelemetrySnapshot, limits: &Limits) {
    for (cluster, counts) in &telemetry.kubernetes {
        let cluster = Text::clean(cluster, limits.label_length);
        let labels = |word| Extra::Many(Arc::new([cluster.clone(), Text::Static(word)]));
        for (kind, up) in &counts.up {
            group.with(Id::KubernetesWatchUp, labels(kind), *up);
        }
        for (kind, objects) in &counts.objects {
            group.with(Id::KubernetesObjects, labels(kind), *objects);
        }
        for (state, pods) in all_words(&DRIVER_STATES, &counts.drivers) {
            group.with(Id::KubernetesDrivers, labels(state), pods);
        }
    }
    for (cluster, totals) in &telemetry.kubernetes_totals {
        let cluster = Text::clean(cluster, limits.label_length);
        let alone = || Extra::Many(Arc::new([cluster.clone()]));
        group.with(Id::KubernetesDriversFound, alone(), totals.drivers_found);
        group.with(Id::KubernetesDriversSilenced, alone(), totals.drivers_silenced);
        for (kind, lists) in all_words(&KUBERNETES_KINDS, &totals.lists) {
            let labels = Arc::new([cluster.clone(), Text::Static(kind)]);
            group.with(Id::KubernetesLists, Extra::Many(labels), lists);
        }
        let mut failures = totals.failures.clone();
        for kind in KUBERNETES_KINDS {
            for reason in KUBERNETES_FAILURES {
                failures.entry((kind, reason)).or_default();
            }
        }
        for ((kind, reason), count) in failures {
            let labels = Arc::new([cluster.clone(), Text::Static(kind), Text::Static(reason)]);
            group.with(Id::KubernetesFailures, Extra::Many(labels), count);
        }
    }
}

/// Of signals that are sent.
fn otlp(group: &mut Group, telemetry: &TelemetrySnapshot) {
    for (signal, counts) in &telemetry.otlp {
        for (id, words, counts) in [
            (Id::OtlpRequests, &OTLP_OUTCOMES[..], &counts.requests),
            (Id::OtlpAttemptFailures, &OTLP_FAILURES, &counts.failures),
            (Id::OtlpFailed, &OTLP_FAILURES, &counts.failed),
            (Id::OtlpDropped, &OTLP_DROPPED, &counts.dropped),
        ] {
            for (word, count) in all_words(words, counts) {
                let labels = Arc::new([Text::Static(signal), Text::Static(word)]);
                group.with(id, Extra::Many(labels), count);
            }
        }
        group.add_for(Id::OtlpSent, signal, counts.sent);
        group.add_for(Id::OtlpRejected, signal, counts.rejected);
        group.add_for(Id::OtlpBytes, signal, counts.bytes);
        group.add_for(Id::OtlpSuccessTime, signal, counts.last_success);
    }
}

/// One series a word, those of the closed list also where nothing happened
/// yet.
fn by_word(
    group: &mut Group,
    id: Id,
    words: &[&'static str],
    counts: &BTreeMap<&'static str, u64>,
) {
    for (word, count) in all_words(words, counts) {
        group.add_for(id, word, count);
    }
}

/// The counts of all words of a closed list, and of others that were counted.
fn all_words(
    words: &[&'static str],
    counts: &BTreeMap<&'static str, u64>,
) -> BTreeMap<&'static str, u64> {
    let mut counts = counts.clone();
    for word in words {
        counts.entry(word).or_default();
    }
    counts
}
