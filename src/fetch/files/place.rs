//! From a location to its files.

use tokio::runtime::Handle;

use super::webhdfs::WebHdfs;
use super::{Files, FilesError, FilesErrorKind, LocalFiles};
use crate::config::{
    Cluster, HttpConfig, Limits, Location, ObjectStoreConfig, RemoteLocation, Service,
    WebHdfsConfig,
};

/// What places need besides their location.
#[derive(Debug, Clone)]
pub struct Access {
    /// TLS, credentials and headers of WebHDFS; of object stores, the
    /// certificate authorities.
    pub http: HttpConfig,
    pub object_store: ObjectStoreConfig,
    pub webhdfs: WebHdfsConfig,
    /// Where transfers run. Files are read from other threads than its own.
    pub runtime: Handle,
    /// Bytes read of one file at most.
    pub most_bytes: u64,
}

impl Access {
    /// As a cluster of the configuration says.
    pub fn of(cluster: &Cluster, limits: &Limits, runtime: Handle) -> Self {
        Self {
            http: cluster.http_config.clone(),
            object_store: cluster.object_store.clone(),
            webhdfs: cluster.webhdfs.clone(),
            runtime,
            most_bytes: limits.log_size.bytes(),
        }
    }
}

/// The files of a location. Where it is one file, the place is its parent and
/// shows only it. Asks nothing of a server yet; a directory need not be there
/// yet either: listing it says so then.
///
/// # Errors
/// When settings contradict each other, a secret or certificate cannot be
/// read, or this program was built without what the location needs.
pub fn open_place(location: &Location, access: &Access) -> Result<Box<dyn Files>, FilesError> {
    match location {
        Location::Path(path) => {
            Ok(Box::new(LocalFiles::at(path).unwrap_or_else(|_| LocalFiles::directory(path))))
        }
        Location::Remote(remote) => match location.unsupported() {
            Some(message) => Err(FilesError {
                place: location.to_string(),
                kind: FilesErrorKind::Other,
                message,
            }),
            None => open_remote(remote, access),
        },
    }
}

fn open_remote(location: &RemoteLocation, access: &Access) -> Result<Box<dyn Files>, FilesError> {
    match location.scheme().service() {
        Service::WebHdfs => Ok(Box::new(WebHdfs::at(location, access)?)),
        #[cfg(any(feature = "s3", feature = "gcs", feature = "azure"))]
        Service::S3 | Service::Gcs | Service::Azure => {
            Ok(Box::new(super::object_store::Bucket::at(location, access)?))
        }
        #[cfg(feature = "hdfs")]
        Service::Hdfs => Ok(Box::new(super::hdfs::Hdfs::at(location, access)?)),
        #[allow(unreachable_patterns, reason = "which remain depends on the features")]
        service => Err(FilesError {
            place: location.to_string(),
            kind: FilesErrorKind::Other,
            message: format!("{} is not built in", service.name()),
        }),
    }
}
