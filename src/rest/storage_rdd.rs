//! `/storage/rdd`: what is cached now.

use serde::Deserialize;

use super::value::Count;
use super::{Api, ApplicationPath};
use crate::fetch::FetchError;
use crate::model::CachedRdd;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RddStorageInfo {
    pub id: Count,
    pub num_partitions: Count,
    pub num_cached_partitions: Count,
    pub memory_used: Count,
    pub disk_used: Count,
}

impl RddStorageInfo {
    pub(super) fn cached(&self) -> Option<CachedRdd> {
        Some(CachedRdd {
            id: self.id.get()?,
            partitions: self.num_partitions.or_zero(),
            cached_partitions: self.num_cached_partitions.or_zero(),
            memory_bytes: self.memory_used.or_zero(),
            disk_bytes: self.disk_used.or_zero(),
        })
    }
}

pub async fn get(api: &Api, application: &ApplicationPath) -> Result<Vec<CachedRdd>, FetchError> {
    let url = api.application_url(application, &["storage", "rdd"], &[]);
    let rdds: Vec<RddStorageInfo> = api.list("storage_rdd", url).await?;
    Ok(rdds.iter().filter_map(RddStorageInfo::cached).collect())
}
