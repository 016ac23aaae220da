//! The catalogue: every metric this daemon can expose, as data.
//!
//! It is the truth that exposition, OTLP, `docs/metrics.md`, dashboards and
//! alerts are held against. `table` has the rows, this file their types and
//! the rule that makes the Prometheus name from the OpenTelemetry one.
//!
//! Two decisions that the rows follow:
//!
//! - **What a run has done so far is a gauge, not a counter.** Spark forgets
//!   stages, jobs and executors (`spark.ui.retained*`), and a run that is
//!   handed over from its driver to its event log is read anew, so such totals
//!   can shrink; a counter that shrinks makes `rate()` invent work. Counters
//!   (`_total`) are the daemon's own, and those by name of application, to
//!   which the store adds each run once.
//! - **Minimum, median and maximum are separate metrics, not a label.** The
//!   sum or average over a label should mean something, and `quantile` is a
//!   reserved label name.

mod table;

pub use table::{CATALOGUE, Id};

/// What sort of number a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows: while the daemon lives, or (by name) as long as its store.
    Counter,
    Gauge,
    /// Only grows: how many values were how large.
    Histogram,
    /// Always 1: its labels are the content.
    Info,
}

impl Kind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Info => "info",
        }
    }
}

/// Units, by their UCUM code as OpenTelemetry writes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Things that are counted (`{task}`), or no unit at all (empty): neither
    /// shows in a name.
    Things(&'static str),
    Seconds,
    Bytes,
    BytesPerSecond,
    /// Things that are counted, a second (`{row}/s`).
    ThingsPerSecond(&'static str),
    /// 0 to 1, or a multiple.
    Ratio,
}

impl Unit {
    /// The UCUM code.
    pub fn ucum(self) -> &'static str {
        match self {
            Self::Things(annotation) | Self::ThingsPerSecond(annotation) => annotation,
            Self::Seconds => "s",
            Self::Bytes => "By",
            Self::BytesPerSecond => "By/s",
            Self::Ratio => "1",
        }
    }

    /// The word that a Prometheus name ends in, before `_total`.
    pub fn word(self) -> Option<&'static str> {
        match self {
            Self::Things(_) => None,
            Self::Seconds => Some("seconds"),
            Self::Bytes => Some("bytes"),
            Self::BytesPerSecond => Some("bytes_per_second"),
            Self::ThingsPerSecond(_) => Some("per_second"),
            Self::Ratio => Some("ratio"),
        }
    }
}

/// How far a name can be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stability {
    /// May still change in a minor release.
    Experimental,
    /// Name, labels and meaning change only after two minor releases of
    /// notice.
    Stable,
}

impl Stability {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Experimental => "experimental",
            Self::Stable => "stable",
        }
    }
}

/// What a metric has one set of series for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    Run,
    Finding,
    Stage,
    SqlExecution,
    /// A streaming query.
    Query,
    Executor,
    /// A name of applications in a cluster, over all its runs.
    Name,
    Daemon,
}

impl Scope {
    pub const ALL: [Self; 8] = [
        Self::Run,
        Self::Finding,
        Self::Stage,
        Self::SqlExecution,
        Self::Query,
        Self::Executor,
        Self::Name,
        Self::Daemon,
    ];

    /// The labels that name one of these.
    pub fn labels(self) -> &'static [&'static str] {
        match self {
            Self::Run => &["spark_cluster", "app_id", "attempt_id"],
            Self::Finding => &[
                "spark_cluster",
                "app_id",
                "attempt_id",
                "app_name",
                "rule",
                "cause",
                "severity",
                "subject",
                "stage_id",
                "stage_attempt_id",
                "sql_id",
                "executor_id",
            ],
            Self::Stage => {
                &["spark_cluster", "app_id", "attempt_id", "stage_id", "stage_attempt_id"]
            }
            Self::SqlExecution => &["spark_cluster", "app_id", "attempt_id", "sql_id"],
            Self::Query => &["spark_cluster", "app_id", "attempt_id", "query_id"],
            Self::Executor => &["spark_cluster", "app_id", "attempt_id", "executor_id"],
            Self::Name => &["spark_cluster", "app_name"],
            Self::Daemon => &[],
        }
    }
}

/// One metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metric {
    /// Its Prometheus name, `_total` and `_info` included.
    pub name: &'static str,
    /// Its OpenTelemetry name: dots, no unit, no `total`.
    pub otel: &'static str,
    pub kind: Kind,
    pub unit: Unit,
    pub scope: Scope,
    /// Labels beside those of its scope, in order.
    pub labels: &'static [&'static str],
    /// Series of one subject of its scope, at most (for the worst case in the
    /// documentation).
    pub times: u32,
    /// Constant text: the same for every target, without a full stop.
    pub help: &'static str,
    pub stability: Stability,
}

impl Metric {
    /// All label names in the order in which samples carry their values.
    pub fn label_names(&self) -> impl Iterator<Item = &'static str> {
        self.scope.labels().iter().chain(self.labels).copied()
    }

    /// Labels with names of our own that only some of its series have.
    pub fn optional_labels(&self) -> &'static [&'static str] {
        if self.name == "spark_application_info" { &super::kubernetes::OF_DRIVER } else { &[] }
    }

    /// The name without what the text formats append by themselves: unit,
    /// `_total`, `_info`.
    pub fn base_name(&self) -> &'static str {
        let suffix = match self.kind {
            Kind::Counter => "_total",
            Kind::Info => "_info",
            Kind::Gauge | Kind::Histogram => "",
        };
        let name = self.name.strip_suffix(suffix).unwrap_or(self.name);
        let Some(word) = self.unit.word() else { return name };
        name.strip_suffix(word).and_then(|name| name.strip_suffix('_')).unwrap_or(name)
    }
}

/// The Prometheus name of an OpenTelemetry metric, by the rule of
/// OpenTelemetry's specification ("Prometheus and OpenMetrics
/// Compatibility"): dots become `_`, the unit's word is appended unless it is
/// there (annotations in braces are dropped), `_total` follows for monotonic
/// sums.
pub fn prometheus_name(otel: &str, unit: Unit, kind: Kind) -> String {
    let mut name = otel.replace('.', "_");
    if let Some(word) = unit.word()
        && !name.ends_with(word)
    {
        name.push('_');
        name.push_str(word);
    }
    if kind == Kind::Counter && !name.ends_with("_total") {
        name.push_str("_total");
    }
    name
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Reserved by the formats, or names that people use for target labels
    /// and that a scrape would therefore rename to `exported_*`.
    const FORBIDDEN_LABELS: [&str; 22] = [
        "le",
        "quantile",
        "type",
        "job",
        "instance",
        "cluster",
        "namespace",
        "pod",
        "container",
        "node",
        "service",
        "endpoint_name",
        "region",
        "zone",
        "env",
        "environment",
        "stage",
        "owner",
        "team",
        "customer",
        "total",
        "__name__",
    ];

    #[test]
    fn the_prometheus_name_follows_from_the_opentelemetry_name() {
        for metric in CATALOGUE {
            assert_eq!(
                prometheus_name(metric.otel, metric.unit, metric.kind),
                metric.name,
                "{}",
                metric.otel
            );
        }
    }

    #[test]
    fn names_are_unique_and_no_name_is_a_namespace() {
        let names: HashSet<_> = CATALOGUE.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), CATALOGUE.len());
        let otel: HashSet<_> = CATALOGUE.iter().map(|metric| metric.otel).collect();
        assert_eq!(otel.len(), CATALOGUE.len());
        for metric in CATALOGUE {
            let mut namespace = metric.otel;
            while let Some((above, _)) = namespace.rsplit_once('.') {
                assert!(!otel.contains(above), "{} is a name and holds {}", above, metric.otel);
                namespace = above;
            }
        }
        // What a text format makes of one metric must not meet another.
        let bases: HashSet<_> = CATALOGUE
            .iter()
            .map(|metric| metric.name.strip_suffix("_total").unwrap_or(metric.name))
            .collect();
        assert_eq!(bases.len(), CATALOGUE.len());
    }

    #[test]
    fn names_are_of_the_field() {
        for metric in CATALOGUE {
            let name = metric.name;
            assert!(name.starts_with("spark_"), "{name}");
            assert!(
                name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'),
                "{name}"
            );
            assert!(!name.contains("__"), "{name}");
            assert_eq!(
                metric.scope == Scope::Daemon,
                name.starts_with("spark_exporter_"),
                "{name}"
            );
            assert_eq!(metric.kind == Kind::Counter, name.ends_with("_total"), "{name}");
            assert_eq!(metric.kind == Kind::Info, name.ends_with("_info"), "{name}");
            for suffix in ["_sum", "_count", "_bucket", "_created", "_percent", "_ms", "_millis"] {
                assert!(!name.ends_with(suffix), "{name}");
            }
            for part in ["timestamp", "duration", "_time_"] {
                if name.contains(part) && metric.unit != Unit::Ratio {
                    assert_eq!(metric.unit, Unit::Seconds, "{name}");
                }
            }
            if name.contains("timestamp") {
                assert!(name.ends_with("timestamp_seconds"), "{name}");
            }
        }
    }

    #[test]
    fn counters_are_the_daemon_s_own_or_by_name() {
        for metric in CATALOGUE {
            if matches!(metric.kind, Kind::Counter | Kind::Histogram) {
                assert!(matches!(metric.scope, Scope::Daemon | Scope::Name), "{}", metric.name);
            }
        }
    }

    /// Nobody takes what all runs of a name did for what one run did.
    #[test]
    fn names_say_when_they_are_of_many_runs() {
        for metric in CATALOGUE {
            let says = metric.name.starts_with("spark_application_runs_")
                || metric.name == "spark_application_regression_ratio";
            assert_eq!(metric.scope == Scope::Name, says, "{}", metric.name);
        }
    }

    #[test]
    fn the_worst_case_of_a_name_is_counted_right() {
        use crate::diagnose::Rule;
        use crate::store::{DURATION_BOUNDS, OUTCOMES};
        assert_eq!(Id::NameRuns.metric().times as usize, OUTCOMES.len());
        assert_eq!(Id::NameDuration.metric().times as usize, DURATION_BOUNDS.len() + 3);
        assert_eq!(Id::NameFindings.metric().times as usize, Rule::ALL.len());
    }

    #[test]
    fn labels_do_not_meet_target_labels() {
        for metric in CATALOGUE {
            let labels: Vec<_> = metric.label_names().collect();
            let unique: HashSet<_> = labels.iter().collect();
            assert_eq!(unique.len(), labels.len(), "{}", metric.name);
            for label in labels {
                assert!(!FORBIDDEN_LABELS.contains(&label), "{} has {label}", metric.name);
                assert!(
                    label
                        .bytes()
                        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'),
                    "{} has {label}",
                    metric.name
                );
                assert!(!metric.name.contains(&format!("by_{label}")), "{}", metric.name);
            }
            // A currency is one, since the operator gives one; so is the basis of a
            // due date.
            let one_value = metric.labels.is_empty()
                || metric.labels == ["currency"]
                || metric.labels == ["basis"];
            let once = one_value && metric.kind != Kind::Histogram;
            assert_eq!(once || metric.kind == Kind::Info, metric.times == 1, "{}", metric.name);
        }
    }

    #[test]
    fn help_is_plain_constant_text() {
        for metric in CATALOGUE {
            let help = metric.help;
            assert!(help.len() >= 20, "{}: {help}", metric.name);
            assert!(!help.ends_with(['.', ' ']) && !help.starts_with(' '), "{}", metric.name);
            assert!(!help.contains(['\n', '\\', '"', '|']), "{}: would need escapes", metric.name);
            let derived = help.starts_with("Derived: ");
            let ratio = matches!(metric.unit, Unit::Ratio | Unit::BytesPerSecond);
            assert!(derived || !ratio, "{}: say that it is derived, and from what", metric.name);
        }
    }

    #[test]
    fn a_base_name_and_its_suffixes_make_the_name() {
        for (id, base) in [
            (Id::FetchRequests, "spark_exporter_fetch_requests"),
            (Id::FetchBytes, "spark_exporter_fetched"),
            (Id::ApplicationInfo, "spark_application"),
            (Id::StageGcRatio, "spark_stage_gc"),
            (Id::StageIoPerCore, "spark_stage_io_per_core"),
            (Id::ApplicationStart, "spark_application_start_timestamp"),
            (Id::NameDuration, "spark_application_runs_duration"),
            (Id::NameBoughtCore, "spark_application_runs_bought_core"),
        ] {
            assert_eq!(id.metric().base_name(), base);
        }
        for (id, metric) in Id::ALL.iter().zip(CATALOGUE) {
            assert_eq!(id.metric(), metric);
        }
    }
}
