//! Requests stay below their size, and together are the same whatever it is.

use std::sync::LazyLock;

use proptest::prelude::*;

use spark_exporter::expose::otlp::points::Dropped;

use crate::decode::all;
use crate::{LARGE, Temporality, full, points, requests};

/// As text: points have no order of their own.
fn lines(request_size: usize) -> Vec<String> {
    let mut points = points(Temporality::Cumulative, request_size);
    let requests = requests(&mut points, &full());
    for request in &requests {
        assert!(request.body.len() <= request_size, "{} > {request_size}", request.body.len());
    }
    assert_eq!(points.take_dropped(), Dropped::default());
    all(&requests).iter().map(|point| format!("{point:?}")).collect()
}

static WHOLE: LazyLock<Vec<String>> = LazyLock::new(|| lines(LARGE));

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn splitting_loses_nothing_and_doubles_nothing(size in 3_000_usize..200_000) {
        // In the same order, even.
        prop_assert_eq!(&lines(size), &*WHOLE);
    }
}

#[test]
fn requests_are_as_full_as_can_be() {
    let size = 20_000;
    let requests = requests(&mut points(Temporality::Cumulative, size), &full());
    let (last, full) = requests.split_last().unwrap();
    assert!(full.len() >= 2 && !last.body.is_empty());
    for request in full {
        // A point is never this large.
        assert!(request.body.len() > size - 3_000, "{} bytes", request.body.len());
    }
}

#[test]
fn what_is_larger_than_a_request_is_left_out_and_counted() {
    let whole = WHOLE.len() as u64;
    let mut points = points(Temporality::Cumulative, 620);
    let requests = requests(&mut points, &full());
    let sent: u64 = requests.iter().map(|request| request.items).sum();
    assert!(requests.iter().all(|request| request.body.len() <= 620));
    let Dropped { too_large: dropped, backlog: 0 } = points.take_dropped() else { panic!() };
    assert!(dropped > 0 && sent > dropped, "{dropped} of {whole} dropped");
    assert_eq!(sent + dropped, whole);
    assert_eq!(points.take_dropped(), Dropped::default());
}

#[test]
fn the_same_moment_gives_the_same_bytes() {
    let bytes = || {
        let requests = requests(&mut points(Temporality::Cumulative, 50_000), &full());
        requests.into_iter().map(|request| request.body).collect::<Vec<_>>()
    };
    assert_eq!(bytes(), bytes());
}
