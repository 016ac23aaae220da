//! `--shard` and `--total-shards`: which part of the runs a command covers.

use anyhow::Context;
use clap::Args;

use crate::config::{Shard, Sharding};

#[derive(Debug, Clone, Default, Args)]
pub(super) struct ShardFlags {
    /// Cover one part of the applications, where several daemons, or several
    /// pods of an indexed Job, divide them by name: the number of the part,
    /// from 0, or a name that ends in -N, as the pods of a StatefulSet have;
    /// with --total-shards
    #[arg(long = "shard", value_name = "N|POD_NAME", requires = "total_shards")]
    shard: Option<String>,
    /// How many parts there are; with --shard
    #[arg(long = "total-shards", value_name = "M", requires = "shard")]
    total_shards: Option<u32>,
}

impl ShardFlags {
    /// Flags go before the file.
    pub(super) fn add_to(&self, sharding: &mut Sharding) -> anyhow::Result<()> {
        let (Some(shard), Some(total_shards)) = (&self.shard, self.total_shards) else {
            return Ok(());
        };
        let shard: Shard = shard
            .parse()
            .map_err(anyhow::Error::msg)
            .with_context(|| format!("--shard {shard:?} is no number of a shard"))?;
        let said = Sharding { shard, total_shards };
        said.validate().map_err(anyhow::Error::msg).with_context(|| {
            format!("--shard {shard} with --total-shards {total_shards} cannot be")
        })?;
        *sharding = said;
        Ok(())
    }
}
