//! Names of Prometheus from names of OpenTelemetry, by the words of the
//! specification ("Prometheus and OpenMetrics Compatibility": OTLP metric
//! points to Prometheus) and nothing else: what receivers do, independent of
//! the rule by which the catalogue is held together.

use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use spark_exporter::metrics::catalogue::CATALOGUE;

use crate::{Temporality, decode, full, points, requests};

/// "Converting from abbreviations to full words", as far as the catalogue has
/// units.
const WORDS: [(&str, &str); 2] = [("s", "seconds"), ("By", "bytes")];
/// In "foo_per_bar", bar is one of them.
const PER: [(&str, &str); 1] = [("s", "second")];

pub(crate) fn prometheus_name(metric: &Metric) -> String {
    let data = metric.data.as_ref().unwrap();
    let is_gauge = matches!(data, Data::Gauge(_));
    let is_counter = matches!(data, Data::Sum(sum) if sum.is_monotonic);
    name(&metric.name, &metric.unit, is_gauge, is_counter)
}

fn name(otel: &str, unit: &str, is_gauge: bool, is_counter: bool) -> String {
    // "Invalid characters MUST be replaced with _", several of them by one.
    let valid = |c: char| c.is_ascii_alphanumeric() || c == ':';
    let mut words: Vec<String> =
        otel.split(|c| !valid(c)).filter(|word| !word.is_empty()).map(str::to_owned).collect();
    // "Dropping the portions of the unit within brackets".
    let mut bare = unit.to_owned();
    while let (Some(open), Some(close)) = (bare.find('{'), bare.find('}')) {
        bare.replace_range(open..=close, "");
    }
    let word = |table: &[(&str, &str)], unit: &str| {
        let known = table.iter().find(|(short, _)| *short == unit);
        known.unwrap_or_else(|| panic!("{otel}: what is {unit}?")).1.to_owned()
    };
    let mut suffixes = Vec::new();
    if let Some((of, per)) = bare.split_once('/') {
        if !of.is_empty() {
            suffixes.push(word(&WORDS, of));
        }
        suffixes.push(format!("per_{}", word(&PER, per)));
    } else if bare == "1" {
        // Of gauges, as receivers have it: a count is no ratio.
        if is_gauge {
            suffixes.push("ratio".to_owned());
        }
    } else if !bare.is_empty() {
        suffixes.push(word(&WORDS, &bare));
    }
    // "unless the metric name already contains the unit", which receivers look
    // for word by word: none is `per_second`.
    suffixes.retain(|suffix| !words.contains(suffix));
    words.extend(suffixes);
    // "a suffix of _total MUST be added".
    if is_counter && words.last().is_none_or(|last| last != "total") {
        words.push("total".to_owned());
    }
    words.join("_")
}

#[test]
fn the_rule_is_that_of_the_specification() {
    for (otel, unit, is_gauge, is_counter, prometheus) in [
        ("system.filesystem.usage", "By", true, false, "system_filesystem_usage_bytes"),
        ("system.network.dropped", "{packet}", false, true, "system_network_dropped_total"),
        ("astro.speed", "By/s", true, false, "astro_speed_bytes_per_second"),
        ("input.rows", "{row}/s", true, false, "input_rows_per_second"),
        ("rows_per_second", "{row}/s", true, false, "rows_per_second_per_second"),
        ("memory.utilization", "1", true, false, "memory_utilization_ratio"),
        ("tries", "1", false, true, "tries_total"),
        ("a..b--c", "", true, false, "a_b_c"),
        ("time.seconds", "s", false, true, "time_seconds_total"),
    ] {
        assert_eq!(name(otel, unit, is_gauge, is_counter), prometheus);
    }
}

#[test]
fn receivers_make_the_names_of_the_catalogue() {
    let requests = requests(&mut points(Temporality::Cumulative, crate::LARGE), &full());
    let mut names: Vec<String> = Vec::new();
    for request in &requests {
        for group in decode::decode(request).resource_metrics {
            for scope in group.scope_metrics {
                names.extend(scope.metrics.iter().map(prometheus_name));
            }
        }
    }
    names.sort();
    names.dedup();
    let mut catalogue: Vec<&str> = CATALOGUE.iter().map(|metric| metric.name).collect();
    catalogue.sort_unstable();
    assert_eq!(names, catalogue);
}
