//! What a cluster's stores need besides their address: options of object
//! stores under the names that the `object_store` crate gives them, secrets
//! from files, and the user of WebHDFS.
//!
//! ```yaml
//! object_store:
//!   options:
//!     aws_region: eu-central-1
//!     aws_endpoint: https://minio.example.org
//!   secret_files:
//!     aws_secret_access_key: /run/secrets/s3
//! webhdfs:
//!   user: spark
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize};

/// Options of the object stores of one cluster. What is not said here comes
/// from the environment (`AWS_*`, `GOOGLE_*`, `AZURE_*`), a web identity or
/// the machine's own role.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ObjectStoreConfig {
    pub options: BTreeMap<String, OptionValue>,
    /// Options whose values are secrets: read from these files at start, a
    /// line end after them left out.
    pub secret_files: BTreeMap<String, PathBuf>,
}

/// A value as YAML may write it: text, a number, true or false.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct OptionValue(String);

impl OptionValue {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for OptionValue {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// Somebody may have put a secret under a wrong key.
impl fmt::Debug for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<value>")
    }
}

impl<'de> Deserialize<'de> for OptionValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a text, a number, true or false")]
        enum Scalar {
            Bool(bool),
            Number(u64),
            Text(String),
        }
        Ok(Self(match Scalar::deserialize(deserializer)? {
            Scalar::Bool(value) => value.to_string(),
            Scalar::Number(value) => value.to_string(),
            Scalar::Text(value) => value,
        }))
    }
}

/// Options that are no secret.
const OPTIONS: [&str; 45] = [
    "aws_access_key_id",
    "aws_container_authorization_token_file",
    "aws_container_credentials_full_uri",
    "aws_container_credentials_relative_uri",
    "aws_default_region",
    "aws_endpoint",
    "aws_endpoint_url_s3",
    "aws_endpoint_url_sts",
    "aws_imdsv1_fallback",
    "aws_metadata_endpoint",
    "aws_region",
    "aws_request_payer",
    "aws_role_arn",
    "aws_role_session_name",
    "aws_s3_express",
    "aws_skip_signature",
    "aws_virtual_hosted_style_request",
    "aws_web_identity_token_file",
    "azure_federated_token_file",
    "azure_msi_endpoint",
    "azure_msi_resource_id",
    "azure_object_id",
    "azure_skip_signature",
    "azure_storage_account_name",
    "azure_storage_authority_host",
    "azure_storage_client_id",
    "azure_storage_endpoint",
    "azure_storage_tenant_id",
    "azure_storage_use_emulator",
    "azure_use_azure_cli",
    "azure_use_fabric_endpoint",
    "google_application_credentials",
    "google_base_url",
    "google_service_account",
    "google_skip_signature",
    "allow_http",
    "connect_timeout",
    "disable_system_certificates",
    "http1_only",
    "pool_idle_timeout",
    "proxy_excludes",
    "proxy_url",
    "randomize_addresses",
    "read_timeout",
    "user_agent",
];

/// Options that are secrets.
const SECRETS: [&str; 8] = [
    "aws_secret_access_key",
    "aws_session_token",
    "azure_storage_account_key",
    "azure_storage_client_secret",
    "azure_storage_sas_key",
    "azure_storage_token",
    "google_bearer_token",
    "google_service_account_key",
];

impl ObjectStoreConfig {
    /// Keys that may stand under `options`, and under `secret_files`.
    pub fn known_keys() -> (&'static [&'static str], &'static [&'static str]) {
        (&OPTIONS, &SECRETS)
    }

    /// What no store would understand, named by its key. No value is ever
    /// repeated.
    pub fn validate(&self) -> Result<(), String> {
        for (key, value) in &self.options {
            if SECRETS.contains(&key.as_str()) {
                return Err(format!(
                    "options.{key} is a secret: write it to a file and give that as \
                     secret_files.{key}"
                ));
            }
            if !OPTIONS.contains(&key.as_str()) {
                return Err(unknown("options", key, &OPTIONS));
            }
            if key == "proxy_url" && value.as_str().contains('@') {
                return Err("options.proxy_url holds credentials, which would end up in logs; \
                            give the proxy without them"
                    .to_owned());
            }
        }
        for key in self.secret_files.keys() {
            if OPTIONS.contains(&key.as_str()) {
                return Err(format!("secret_files.{key} is no secret: give it as options.{key}"));
            }
            if !SECRETS.contains(&key.as_str()) {
                return Err(unknown("secret_files", key, &SECRETS));
            }
        }
        Ok(())
    }
}

fn unknown(place: &str, key: &str, known: &[&str]) -> String {
    let nearest = known
        .iter()
        .map(|known| (strsim::jaro_winkler(key, known), known))
        .filter(|(likeness, _)| *likeness >= 0.85)
        .max_by(|(one, _), (other, _)| one.total_cmp(other));
    let hint = match nearest {
        Some((_, nearest)) => format!("; did you mean {nearest}?"),
        None => String::new(),
    };
    format!("{place} takes no {key:?}{hint} (it takes {})", known.join(", "))
}

/// How to talk to WebHDFS, besides the cluster's `http_config`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebHdfsConfig {
    /// `user.name` of each request, where Hadoop believes what it is told
    /// (no Kerberos, no Knox).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(yaml: &str) -> Result<ObjectStoreConfig, String> {
        let config: ObjectStoreConfig =
            serde_saphyr::from_str(yaml).map_err(|error| error.to_string())?;
        config.validate().map(|()| config)
    }

    #[test]
    fn options_as_yaml_writes_them() {
        let config = parse(
            "options: {aws_region: eu-west-1, aws_virtual_hosted_style_request: true, \
             connect_timeout: 5s}\n\
             secret_files: {aws_secret_access_key: /run/secret}\n",
        )
        .expect("valid");
        assert_eq!(config.options["aws_virtual_hosted_style_request"].as_str(), "true");
        assert_eq!(config.options["aws_region"].as_str(), "eu-west-1");
        assert!(!format!("{config:?}").contains("eu-west-1"));
    }

    #[test]
    fn refusals_name_the_key_and_what_is_known_and_no_value() {
        for (yaml, words) in [
            ("options: {aws_regoin: hunter2}\n", "did you mean aws_region?"),
            ("options: {colour: hunter2}\n", "azure_storage_account_name"),
            ("options: {aws_secret_access_key: hunter2}\n", "secret_files.aws_secret_access_key"),
            ("secret_files: {aws_region: /hunter2}\n", "options.aws_region"),
            ("secret_files: {password: /hunter2}\n", "google_service_account_key"),
            ("options: {proxy_url: 'http://a:hunter2@proxy'}\n", "proxy_url"),
            ("options: {aws_region: [hunter2]}\n", "a text"),
        ] {
            let error = parse(yaml).expect_err(yaml);
            assert!(error.contains(words), "{yaml}: {error}");
            if !yaml.contains('[') {
                assert!(!error.contains("hunter2"), "{error}");
            }
        }
    }
}
