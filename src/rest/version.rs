//! `/version`: the version of the server that answers. On a History Server
//! that is its own, not the application's.

use serde::Deserialize;

use super::Api;
use super::value::Text;
use crate::fetch::FetchError;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct VersionInfo {
    pub spark: Text,
}

pub async fn get(api: &Api) -> Result<Option<String>, FetchError> {
    let version: VersionInfo = api.json("version", api.url(&["version"], &[])).await?;
    Ok(version.spark.0)
}
