//! Where the report of a run stands: `/applications/CLUSTER/APP_ID`, and
//! `/ATTEMPT` after it where there is one. The same as long as the run is
//! held, made of what every series of the run has as labels, so that alerts
//! and dashboards can point to it.

use std::fmt::Write;

use crate::model::RunId;

/// What every address begins with.
pub(super) const PREFIX: &str = "/applications/";

/// The address of a run's report, percent-encoded: nothing that is markup
/// anywhere is left in it.
pub(super) fn of(id: &RunId) -> String {
    let mut address = format!("{PREFIX}{}/{}", encoded(&id.cluster), encoded(&id.app_id));
    if let Some(attempt) = &id.attempt_id {
        address.push('/');
        address.push_str(&encoded(attempt));
    }
    address
}

/// Who is meant by the segments of a path after [`PREFIX`]. An empty attempt,
/// as the label `attempt_id` has it, is none. `None`: it is no such path.
pub(super) fn parse(rest: &str) -> Option<RunId> {
    let mut segments = rest.split('/').map(decoded);
    let cluster = segments.next()??;
    let app_id = segments.next()??;
    let attempt_id = match segments.next() {
        None => None,
        Some(attempt) => Some(attempt?).filter(|attempt| !attempt.is_empty()),
    };
    let whole = segments.next().is_none() && !cluster.is_empty() && !app_id.is_empty();
    whole.then_some(RunId { cluster, app_id, attempt_id })
}

/// All but unreserved characters (RFC 3986, 2.3) escaped.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// `None` where an escape is none, or what comes out is no text.
fn decoded(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let mut digit = || char::from(rest.next()?).to_digit(16);
            let (high, low) = (digit()?, digit()?);
            bytes.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(cluster: &str, app_id: &str, attempt: Option<&str>) -> RunId {
        RunId {
            cluster: cluster.to_owned(),
            app_id: app_id.to_owned(),
            attempt_id: attempt.map(str::to_owned),
        }
    }

    #[test]
    fn addresses_lead_back_to_their_run() {
        for (run, address) in [
            (id("default", "app-1-0", None), "/applications/default/app-1-0"),
            (id("a/b", "\"<x>", Some("1")), "/applications/a%2Fb/%22%3Cx%3E/1"),
            (id("prod eu", "äöü%", None), "/applications/prod%20eu/%C3%A4%C3%B6%C3%BC%25"),
        ] {
            assert_eq!(of(&run), address);
            assert_eq!(parse(address.strip_prefix(PREFIX).expect("the prefix")), Some(run));
        }
        assert_eq!(parse("c/app/"), Some(id("c", "app", None)));
        for wrong in ["", "c", "c/", "/app", "c/app/1/2", "c/%", "c/%zz", "c/%ff", "c/%2"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
