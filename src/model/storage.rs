//! A cached RDD or DataFrame, as `/storage/rdd` shows it. Event logs do not
//! carry it.

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedRdd {
    pub id: u64,
    pub partitions: u64,
    pub cached_partitions: u64,
    pub memory_bytes: u64,
    pub disk_bytes: u64,
}
