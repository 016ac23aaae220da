//! Which part of the runs this daemon covers, where several divide them.
//!
//! A name of applications belongs to one shard, and with it all its runs:
//! so what is by name has one place, and nobody has to agree on anything at
//! run time. The shard is the jump consistent hash (Lamping and Veach, 2014)
//! of XXH64 of the name, so that one shard more takes its share from all
//! others and moves nothing between them. What is hashed is written down in
//! docs/scaling.md and held by test vectors: another answer in a later
//! version would move every name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use twox_hash::XxHash64;

/// ```yaml
/// sharding: {shard: 0, total_shards: 3}
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sharding {
    /// Which shard this is, from 0; or a name that ends in `-N`, as the pods
    /// of a StatefulSet have.
    pub shard: Shard,
    /// How many there are.
    pub total_shards: u32,
}

/// All of it.
impl Default for Sharding {
    fn default() -> Self {
        Self { shard: Shard(0), total_shards: 1 }
    }
}

/// The number of a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shard(pub u32);

impl Sharding {
    /// # Errors
    /// Where there is no such shard.
    pub fn validate(&self) -> Result<(), String> {
        let Self { shard, total_shards } = self;
        if *total_shards == 0 {
            return Err("total_shards is 0: the least is 1, which covers everything".to_owned());
        }
        if shard.0 >= *total_shards {
            return Err(format!(
                "shard {shard} of {total_shards} does not exist: shards are counted from 0, so \
                 the last one is {}",
                total_shards - 1
            ));
        }
        Ok(())
    }

    /// Whether there are others.
    pub fn is_divided(&self) -> bool {
        self.total_shards > 1
    }

    /// The shard that all runs of this name belong to. `app_name` is the label
    /// that metrics have, after `names.rules`.
    pub fn owner_of(&self, spark_cluster: &str, app_name: &str) -> Shard {
        if !self.is_divided() {
            return Shard(0);
        }
        Shard(jump(hash(spark_cluster, app_name), self.total_shards))
    }

    /// Whether runs of this name belong here.
    pub fn owns(&self, spark_cluster: &str, app_name: &str) -> bool {
        !self.is_divided() || self.owner_of(spark_cluster, app_name) == self.shard
    }
}

/// As a person says it: `shard 0 of 3`.
impl fmt::Display for Sharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shard {} of {}", self.shard, self.total_shards)
    }
}

/// Number and total.
impl From<Sharding> for (u32, u32) {
    fn from(sharding: Sharding) -> Self {
        (sharding.shard.0, sharding.total_shards)
    }
}

/// Both in UTF-8, with a zero byte between them: no label has one.
fn hash(spark_cluster: &str, app_name: &str) -> u64 {
    let mut bytes = Vec::with_capacity(spark_cluster.len() + app_name.len() + 1);
    bytes.extend_from_slice(spark_cluster.as_bytes());
    bytes.push(0);
    bytes.extend_from_slice(app_name.as_bytes());
    XxHash64::oneshot(0, &bytes)
}

/// The bucket of a key, of at least one: grows bucket by bucket, and at each
/// step the key jumps ahead to the next one that it would move to.
fn jump(mut key: u64, buckets: u32) -> u32 {
    let (mut bucket, mut next) = (0, 0.0);
    while next < f64::from(buckets) {
        bucket = next as u32;
        key = key.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(1);
        let step = f64::from(1_u32 << 31) / ((key >> 33) + 1) as f64;
        next = ((f64::from(bucket) + 1.0) * step).floor();
    }
    bucket
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Shard {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.rsplit_once('-').map_or(text, |(_, digits)| digits);
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.parse().ok().filter(|_| is_number && !text.starts_with('-'));
        number.map(Self).ok_or_else(|| {
            "give a number from 0, or a name that ends in -N, as the pods of a StatefulSet have: \
             spark-exporter-0"
                .to_owned()
        })
    }
}

impl Serialize for Shard {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(self.0)
    }
}

impl<'de> Deserialize<'de> for Shard {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "shard: a number from 0, or a name that ends in -N")]
        enum Written {
            Number(u32),
            Name(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Number(number) => Ok(Self(number)),
            Written::Name(name) => {
                name.parse().map_err(|why| serde::de::Error::custom(format!("shard: {why}")))
            }
        }
    }
}

#[cfg(test)]
mod tests;
