//! A W3C trace context that a driver carries, so that its spans are part of
//! the trace of whoever started it.

use opentelemetry::Context;
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::TraceContextExt;
use opentelemetry_sdk::propagation::TraceContextPropagator;

use super::{SpanId, TraceId};
use crate::model::Application;

/// Beginnings of properties that set variables of the driver's environment,
/// and one that sets those of executors, which is what can be said where the
/// driver runs in the process that submits.
const ENVIRONMENTS: [&str; 3] =
    ["spark.yarn.appMasterEnv.", "spark.kubernetes.driverEnv.", "spark.executorEnv."];

/// What `traceparent` and `tracestate` said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    pub trace_id: TraceId,
    /// The span that ours is a child of.
    pub span_id: SpanId,
    pub sampled: bool,
    /// `tracestate`; empty where there was none, or none that is valid.
    pub state: String,
}

struct Pair<'a> {
    parent: &'a str,
    state: Option<&'a str>,
}

impl Extractor for Pair<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        match key {
            "traceparent" => Some(self.parent),
            "tracestate" => self.state,
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        vec!["traceparent", "tracestate"]
    }
}

impl TraceContext {
    /// `None` for what W3C Trace Context does not allow.
    pub fn new(parent: &str, state: Option<&str>) -> Option<Self> {
        // As much as the recommendation wants passed on.
        const LONGEST_STATE: usize = 512;
        if !is_well_formed(parent) {
            return None;
        }
        let state = state.filter(|state| state.len() <= LONGEST_STATE);
        let context = TraceContextPropagator::new()
            .extract_with_context(&Context::new(), &Pair { parent, state });
        let span = context.span();
        let span = span.span_context();
        span.is_valid().then(|| Self {
            trace_id: TraceId(span.trace_id().to_bytes()),
            span_id: SpanId(span.span_id().to_bytes()),
            sampled: span.is_sampled(),
            state: span.trace_state().header(),
        })
    }

    /// The first that is valid of what properties set as `TRACEPARENT` of an
    /// environment.
    pub fn of_properties<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Option<Self> {
        ENVIRONMENTS.iter().find_map(|start| {
            let parent = get(&format!("{start}TRACEPARENT"))?;
            Self::new(parent, get(&format!("{start}TRACESTATE")))
        })
    }

    /// Of the driver's JVM: `-Dtraceparent=...`.
    pub fn of_system<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Option<Self> {
        [("traceparent", "tracestate"), ("TRACEPARENT", "TRACESTATE")]
            .into_iter()
            .find_map(|(parent, state)| Self::new(get(parent)?, get(state)))
    }
}

/// The propagator takes fields of any length, and a sign as a digit.
fn is_well_formed(parent: &str) -> bool {
    const LENGTH: usize = 55;
    let bytes = parent.as_bytes();
    let is_hex = |range: std::ops::Range<usize>| {
        bytes[range].iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    // Later versions may have more behind another hyphen.
    let ends_well =
        bytes.len() == LENGTH || (bytes.get(LENGTH) == Some(&b'-') && !parent.starts_with("00"));
    bytes.len() >= LENGTH
        && ends_well
        && [2, 35, 52].iter().all(|place| bytes[*place] == b'-')
        && [0..2, 3..35, 36..52, 53..55].into_iter().all(is_hex)
}

impl Application {
    /// The context it was started with: of its properties, else of its JVM.
    pub fn trace_context(&self) -> Option<TraceContext> {
        TraceContext::of_properties(|key| self.configuration.get(key))
            .or_else(|| self.configuration.trace_context.clone())
    }

    /// The same, where the application's span is its child: one that is not
    /// sampled has no span to be a child of.
    pub fn trace_parent(&self) -> Option<TraceContext> {
        self.trace_context().filter(|context| context.sampled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn what_w3c_allows() {
        let context = TraceContext::new(VALID, Some("a=1,b=2")).unwrap();
        assert_eq!(context.trace_id.to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(context.span_id.to_string(), "00f067aa0ba902b7");
        assert!(context.sampled);
        assert_eq!(context.state, "a=1,b=2");
        let later = "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00-more";
        assert!(TraceContext::new(later, None).is_some_and(|context| !context.sampled));
        // A state that is not valid costs only itself.
        assert!(TraceContext::new(VALID, Some("=,;")).is_some_and(|it| it.state.is_empty()));
        let long = format!("a={}", "b".repeat(600));
        assert!(TraceContext::new(VALID, Some(&long)).is_some_and(|it| it.state.is_empty()));
    }

    #[test]
    fn what_it_does_not() {
        for parent in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-001",
            "+0-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-\u{e9}",
            "00-4bf92f3577b34da6a3ce929d0e0e47\u{e9}-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceContext::new(parent, None), None, "{parent}");
        }
    }

    #[test]
    fn a_property_that_is_not_valid_gives_way() {
        let get = |key: &str| match key {
            "spark.yarn.appMasterEnv.TRACEPARENT" => Some("none"),
            "spark.executorEnv.TRACEPARENT" => Some(VALID),
            "spark.executorEnv.TRACESTATE" => Some("a=1"),
            _ => None,
        };
        assert!(TraceContext::of_properties(get).is_some_and(|context| context.state == "a=1"));
        let get = |key: &str| (key == "traceparent").then_some(VALID);
        assert!(TraceContext::of_system(get).is_some());
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken_or_left(parent in ".{0,80}", state in ".{0,40}") {
            let _ = TraceContext::new(&parent, Some(&state));
        }
    }
}
