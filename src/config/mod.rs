//! What the operator may say, with its meaning, its default and its checks.

mod file;
mod http;
mod kubernetes;
mod label_selector;
mod limits;
mod location;
mod names;
pub mod otlp;
mod places;
mod prices;
mod secret;
mod server_url;
mod storage;
mod store_url;
pub mod thresholds;
mod units;
mod web;

pub use file::{Cluster, Config, ConfigError, DEFAULT_CLUSTER, Intervals, Read, Retention};
pub use http::{Authorization, BasicAuth, HeaderValues, HttpConfig, TlsConfig};
pub use kubernetes::{ClientMode, Kubernetes, Namespaces, Watched};
pub use limits::Limits;
pub use location::{Location, RemoteLocation, Scheme, Service};
pub use names::{Decided, ExpectedSuccess, NAME_LENGTH, NameRule, Names, UNNAMED, Within};
pub use otlp::Otlp;
pub use places::{ObjectStoreConfig, OptionValue, WebHdfsConfig};
pub use prices::Prices;
pub use secret::Secret;
pub(crate) use server_url::host_and_port;
pub use server_url::{Page, ServerUrl, Shown};
pub use storage::{Storage, StorageRetention};
pub use store_url::StoreUrl;
pub use thresholds::{Cost, NamePattern, ThresholdOverride, Thresholds};
pub use units::{Size, Span};
pub use web::Web;
