//! Which format and encoding a client wants: `Accept` and `Accept-Encoding`
//! with their weights (RFC 9110, 12.4.2).

use http::HeaderMap;
use http::header::{ACCEPT, ACCEPT_ENCODING, AsHeaderName};

use crate::metrics::prometheus::Format;

/// How a body is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Identity,
    Gzip,
}

/// A format, and whether to say that names need no escapes: Prometheus 3 may
/// ask for `escaping=underscores`, which is true of all our names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Negotiated {
    pub(super) format: Format,
    pub(super) underscores: bool,
}

impl Negotiated {
    pub(super) fn content_type(self) -> String {
        let escaping = if self.underscores { "; escaping=underscores" } else { "" };
        format!("{}{escaping}", self.format.content_type())
    }
}

/// One element of a weighted list.
struct Item<'a> {
    name: String,
    parameters: Vec<(&'a str, &'a str)>,
    weight: f64,
}

impl Item<'_> {
    fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, v)| *v)
    }
}

/// OpenMetrics where it is asked for by name and not less than plain text;
/// plain text for everybody else, whatever they accept: Prometheus refuses an
/// answer without a known type, and a browser shows it.
pub(super) fn format(headers: &HeaderMap) -> Negotiated {
    let mut open_metrics: Option<(f64, bool)> = None;
    let mut plain: Option<(f64, bool)> = None;
    let mut any = 0.0_f64;
    each(headers, ACCEPT, |item| {
        let version = item.parameter("version");
        let underscores = item.parameter("escaping") == Some("underscores");
        let found = Some((item.weight, underscores));
        let better = |old: Option<(f64, bool)>| old.is_none_or(|(weight, _)| item.weight > weight);
        match item.name.as_str() {
            "application/openmetrics-text"
                if matches!(version, None | Some("1.0.0")) && better(open_metrics) =>
            {
                open_metrics = found;
            }
            "text/plain" if matches!(version, None | Some("0.0.4")) && better(plain) => {
                plain = found;
            }
            "text/*" | "*/*" => any = any.max(item.weight),
            _ => {}
        }
    });
    let (plain_weight, plain_underscores) = plain.unwrap_or((any, false));
    match open_metrics {
        Some((weight, underscores)) if weight > 0.0 && weight >= plain_weight => {
            Negotiated { format: Format::OpenMetrics, underscores }
        }
        _ => Negotiated { format: Format::Prometheus, underscores: plain_underscores },
    }
}

/// Gzip where the client takes it and does not like the plain body better.
pub(super) fn encoding(headers: &HeaderMap) -> Encoding {
    let (mut gzip, mut identity, mut any) = (None, None, None);
    each(headers, ACCEPT_ENCODING, |item| match item.name.as_str() {
        "gzip" | "x-gzip" => gzip = Some(item.weight),
        "identity" => identity = Some(item.weight),
        "*" => any = Some(item.weight),
        _ => {}
    });
    let gzip = gzip.or(any).unwrap_or(0.0);
    if gzip > 0.0 && gzip >= identity.unwrap_or(0.0) { Encoding::Gzip } else { Encoding::Identity }
}

/// Calls `with` for each well-formed element of all headers of this name.
fn each(headers: &HeaderMap, name: impl AsHeaderName, mut with: impl FnMut(Item<'_>)) {
    let texts = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    for element in texts.flat_map(|text| text.split(',')) {
        let mut parts = element.split(';').map(str::trim);
        let Some(name) = parts.next().filter(|name| !name.is_empty()) else { continue };
        let mut item =
            Item { name: name.to_ascii_lowercase(), parameters: Vec::new(), weight: 1.0 };
        let mut well_formed = true;
        for parameter in parts {
            let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let (key, value) = (key.trim(), value.trim().trim_matches('"'));
            if key.eq_ignore_ascii_case("q") {
                match value.parse::<f64>() {
                    Ok(weight) if (0.0..=1.0).contains(&weight) => item.weight = weight,
                    _ => well_formed = false,
                }
            } else {
                item.parameters.push((key, value));
            }
        }
        if well_formed {
            with(item);
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(name: http::HeaderName, value: Option<&'static str>) -> HeaderMap {
        value.map(|value| (name, HeaderValue::from_static(value))).into_iter().collect()
    }

    #[test]
    fn formats() {
        use Format::{OpenMetrics, Prometheus};
        // What Prometheus 2.42 and 3.x send by default, then corner cases.
        let prometheus_2 = "application/openmetrics-text;version=1.0.0,\
                            application/openmetrics-text;version=0.0.1;q=0.75,\
                            text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        let prometheus_3 = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                            application/openmetrics-text;version=0.0.1;q=0.5,\
                            text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,\
                            text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        for (accept, format, underscores) in [
            (None, Prometheus, false),
            (Some(prometheus_2), OpenMetrics, false),
            (Some(prometheus_3), OpenMetrics, false),
            (
                Some("application/openmetrics-text;version=1.0.0;escaping=underscores"),
                OpenMetrics,
                true,
            ),
            (Some("text/plain;version=0.0.4;escaping=underscores"), Prometheus, true),
            (Some("Application/OpenMetrics-Text; Version=\"1.0.0\""), OpenMetrics, false),
            (Some("application/openmetrics-text;version=0.0.1"), Prometheus, false),
            (Some("application/openmetrics-text;q=0"), Prometheus, false),
            (Some("application/openmetrics-text;q=0.1, */*"), Prometheus, false),
            (
                Some("application/openmetrics-text;q=0.1, text/plain;version=1.0.0"),
                OpenMetrics,
                false,
            ),
            (Some("application/openmetrics-text;q=0.2, text/plain;q=0.3"), Prometheus, false),
            (Some("text/plain, application/openmetrics-text"), OpenMetrics, false),
            (
                Some("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
                Prometheus,
                false,
            ),
            (Some("application/json"), Prometheus, false),
            (Some("application/openmetrics-text;q=high"), Prometheus, false),
            (Some(",;,q=1;;"), Prometheus, false),
            (Some(""), Prometheus, false),
        ] {
            let negotiated = super::format(&headers(ACCEPT, accept));
            assert_eq!(negotiated, Negotiated { format, underscores }, "{accept:?}");
        }
    }

    #[test]
    fn encodings() {
        use Encoding::{Gzip, Identity};
        for (accept, expected) in [
            (None, Identity),
            (Some("gzip"), Gzip),
            (Some("GZIP;q=0.5"), Gzip),
            (Some("deflate, gzip, br"), Gzip),
            (Some("gzip;q=0"), Identity),
            (Some("*"), Gzip),
            (Some("*;q=0"), Identity),
            (Some("gzip;q=0, *"), Identity),
            (Some("gzip;q=0.1, identity;q=0.9"), Identity),
            (Some("br"), Identity),
            (Some("identity"), Identity),
        ] {
            assert_eq!(encoding(&headers(ACCEPT_ENCODING, accept)), expected, "{accept:?}");
        }
    }

    #[test]
    fn several_headers_are_one_list() {
        let mut map = HeaderMap::new();
        map.append(ACCEPT, HeaderValue::from_static("text/plain;q=0.1"));
        map.append(ACCEPT, HeaderValue::from_static("application/openmetrics-text"));
        assert_eq!(format(&map).format, Format::OpenMetrics);
    }
}
