use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::config::Config;

/// By another implementation of both: Python, with `xxhash` of PyPI 3.6 and
/// the algorithm as its paper writes it. Owners of 1, 2, 3, 5, 16 and 1,000
/// shards.
const VECTORS: [(&str, &str, u64, [u32; 6]); 8] = [
    ("default", "etl", 0x3c63_3f22_9c3e_89cc, [0, 1, 1, 1, 1, 970]),
    ("default", "_unnamed", 0xbe30_d797_ab2b_4375, [0, 0, 2, 2, 13, 104]),
    ("production", "orders", 0x5909_a705_8055_4784, [0, 0, 0, 4, 4, 506]),
    ("production", "Umsatz täglich", 0x0f12_a1f4_975f_aa3f, [0, 0, 0, 0, 11, 502]),
    ("", "", 0xe934_a84a_db05_2768, [0, 0, 0, 0, 12, 687]),
    ("a", "b/c", 0x8f29_7dc9_6d33_1ab9, [0, 1, 2, 2, 2, 224]),
    ("default", "_other", 0x7916_309b_2bdd_7b50, [0, 1, 1, 1, 1, 832]),
    (
        "eu-west-1/yarn",
        "streaming ingest with a name that is longer than one stripe",
        0x050f_1008_a092_ad69,
        [0, 0, 0, 4, 4, 637],
    ),
];

fn of(shard: u32, total_shards: u32) -> Sharding {
    Sharding { shard: Shard(shard), total_shards }
}

#[test]
fn owners_are_those_of_another_implementation() {
    for (cluster, name, expected, owners) in VECTORS {
        assert_eq!(hash(cluster, name), expected, "{cluster} {name}");
        let found = [1, 2, 3, 5, 16, 1_000].map(|total| of(0, total).owner_of(cluster, name).0);
        assert_eq!(found, owners, "{cluster} {name}");
    }
    // As jump hashes elsewhere have them.
    for (key, buckets, bucket) in
        [(1, 1, 0), (42, 57, 43), (0xDEAD_10CC, 1, 0), (0xDEAD_10CC, 666, 361), (256, 1_024, 520)]
    {
        assert_eq!(jump(key, buckets), bucket);
    }
    assert!(jump(u64::MAX, u32::MAX) < u32::MAX);
}

#[test]
fn cluster_and_name_do_not_run_into_each_other() {
    assert_ne!(hash("a", "bc"), hash("ab", "c"));
}

#[test]
fn one_more_takes_its_share_from_all_others() {
    const NAMES: usize = 20_000;
    let names: Vec<String> = (0..NAMES).map(|number| format!("job {number}")).collect();
    let owners = |total| -> Vec<u32> {
        names.iter().map(|name| of(0, total).owner_of("c", name).0).collect()
    };
    let mut before = owners(1);
    for total in 2..=24 {
        let now = owners(total);
        let mut moved = 0;
        for (old, new) in before.iter().zip(&now) {
            if old != new {
                assert_eq!(*new, total - 1, "only to the new one");
                moved += 1;
            }
        }
        let share = NAMES as f64 / f64::from(total);
        // Of a fair coin these are more than five standard deviations.
        let slack = 6.0 * share.sqrt();
        assert!((f64::from(moved) - share).abs() < slack, "{moved} moved to shard {total}");
        let mut sizes: BTreeMap<u32, u32> = BTreeMap::new();
        for owner in &now {
            *sizes.entry(*owner).or_default() += 1;
        }
        assert_eq!(sizes.len(), total as usize);
        for (shard, size) in sizes {
            assert!((f64::from(size) - share).abs() < slack, "shard {shard} has {size}");
        }
        before = now;
    }
}

proptest! {
    #[test]
    fn each_name_has_one_owner(cluster in ".{0,20}", name in ".{0,60}", total in 1_u32..40) {
        let owners = (0..total).filter(|shard| of(*shard, total).owns(&cluster, &name)).count();
        prop_assert_eq!(owners, 1);
    }

    #[test]
    fn a_resize_moves_to_the_new_shard_or_not_at_all(name in ".{0,60}", total in 1_u32..200) {
        let (before, after) = (of(0, total).owner_of("c", &name), of(0, total + 1).owner_of("c", &name));
        prop_assert!(after == before || after == Shard(total));
    }
}

#[test]
fn a_pods_name_is_a_number() {
    for (text, number) in [
        ("0", 0),
        ("12", 12),
        ("spark-exporter-0", 0),
        ("monitoring-spark-exporter-17", 17),
        ("x-4294967295", u32::MAX),
    ] {
        assert_eq!(text.parse(), Ok(Shard(number)), "{text}");
    }
    for text in
        ["", "-", "-1", "x", "x-", "x-1a", "spark-exporter-7d9f8b6c5-x2x4z", "1.5", "x-4294967296"]
    {
        let error = text.parse::<Shard>().unwrap_err();
        assert!(error.contains("ends in -N"), "{text}: {error}");
    }
}

#[test]
fn as_the_file_says_it() {
    let parsed = |yaml: &str| -> Result<Sharding, String> {
        let config = Config::parse(yaml)?;
        config.check()?;
        Ok(config.sharding)
    };
    assert_eq!(parsed(""), Ok(of(0, 1)));
    assert_eq!(parsed("sharding: {shard: 0, total_shards: 3}"), Ok(of(0, 3)));
    assert_eq!(parsed("sharding: {shard: spark-exporter-2, total_shards: 3}"), Ok(of(2, 3)));
    for (yaml, part) in [
        ("sharding: {shard: 3, total_shards: 3}", "the last one is 2"),
        ("sharding: {shard: 0, total_shards: 0}", "the least is 1"),
        ("sharding: {shard: 0}", "total_shards"),
        ("sharding: {total_shards: 2}", "shard"),
        ("sharding: {shard: here, total_shards: 2}", "ends in -N"),
        ("sharding: {shard: -1, total_shards: 2}", "shard"),
        ("sharding: {shard: 0, total_shard: 2}", "did you mean `total_shards`?"),
    ] {
        let error = parsed(yaml).unwrap_err();
        assert!(error.contains(part), "{yaml}: {error}");
    }
}
