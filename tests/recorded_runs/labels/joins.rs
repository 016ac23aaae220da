//! Runs about joins, aggregates and exchanges.

use spark_exporter::diagnose::{Cause, Rule, Severity};

use super::{Expected, healthy, ill};
use Rule::{
    Cartesian, CountDistinct, DataSkew, DriverGap, IoBound, JoinExplosion, LargeBroadcast,
    MissedBroadcast, PartialAggregation, RepeatedSubplan, Straggler,
};
use Severity::{Info, Warning};

pub(crate) const EXPECTED: &[Expected] = &[
    ill("join_explosion", &[(JoinExplosion, None, Warning)]),
    healthy("join_explosion-healthy"),
    healthy("join_explosion-few"),
    // 4.1 s to save in one recording, below what is a warning.
    ill("cartesian", &[(Cartesian, None, Info)]),
    ill("cartesian-product", &[(Cartesian, None, Warning)]),
    healthy("cartesian-healthy"),
    healthy("cartesian-small"),
    healthy("cartesian-one_row"),
    // Reading the needless shuffle is what its cores wait for.
    Expected {
        run: "missed_broadcast",
        must: &[(MissedBroadcast, None, Info)],
        may: &[(IoBound, Info)],
    },
    Expected {
        run: "missed_broadcast-below_threshold",
        must: &[(MissedBroadcast, None, Info)],
        may: &[(IoBound, Info)],
    },
    healthy("missed_broadcast-healthy"),
    healthy("missed_broadcast-small"),
    Expected { run: "missed_broadcast-outer", must: &[], may: &[(IoBound, Info)] },
    healthy("missed_broadcast-sent"),
    // The first task of each executor waits for the broadcast to come.
    Expected {
        run: "large_broadcast",
        must: &[(LargeBroadcast, None, Info)],
        // From REST nobody sees why the driver was busy.
        may: &[(Straggler, Info), (DriverGap, Warning)],
    },
    healthy("large_broadcast-healthy"),
    healthy("large_broadcast-small"),
    healthy("large_broadcast-roomy"),
    // At a scale that its threshold for bytes does not reach: see the test of
    // lowered thresholds. Its input is written first, by cores that wait.
    Expected { run: "shuffle_heavy", must: &[], may: &[(IoBound, Info)] },
    Expected { run: "shuffle_heavy-healthy", must: &[], may: &[(IoBound, Info)] },
    ill("repeated_subplan", &[(RepeatedSubplan, None, Warning)]),
    healthy("repeated_subplan-cached"),
    healthy("repeated_subplan-reused"),
    healthy("repeated_subplan-cheap"),
    ill("partial_aggregation", &[(PartialAggregation, None, Info)]),
    ill("count_distinct", &[(CountDistinct, None, Info)]),
    // Its second step is a GROUP BY, whose rows are added up before the shuffle.
    ill("count_distinct-unique", &[(PartialAggregation, None, Info)]),
    // One record a key and task in the shuffle: bytes tell.
    ill("hot_key_aggregate", &[(DataSkew, Some(Cause::HotKey), Info)]),
    ill("hot_key_window", &[(DataSkew, Some(Cause::HotKey), Warning)]),
    ill("hot_key-64_partitions", &[(DataSkew, Some(Cause::HotKey), Warning)]),
    // Adaptive execution splits the hot partition.
    healthy("hot_key-split"),
    // The same settings, and the partition compresses below them.
    ill("compressible_hot_key-split", &[(DataSkew, Some(Cause::CompressibleHotKey), Warning)]),
    // Bytes are uneven, rows and times are not.
    healthy("wide_rows"),
];
