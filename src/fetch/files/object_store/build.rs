//! From a location and its cluster's settings to a store of the
//! `object_store` crate: the environment first, then what the configuration
//! says, which wins.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use object_store::{
    BackoffConfig, Certificate, ClientConfigKey, ClientOptions, ObjectStore, RetryConfig,
};

use super::STALL;
use crate::config::{ObjectStoreConfig, RemoteLocation, Service};
use crate::fetch::files::Access;

/// A secret file longer than this is a mistake.
const LONGEST_SECRET: u64 = 64 * 1024;

/// Client settings that a builder may hold: carried over where the client's
/// options are made anew.
const CLIENT: [ClientConfigKey; 14] = [
    ClientConfigKey::AllowHttp,
    ClientConfigKey::AllowInvalidCertificates,
    ClientConfigKey::NoSystemCertificates,
    ClientConfigKey::ConnectTimeout,
    ClientConfigKey::Http1Only,
    ClientConfigKey::Http2Only,
    ClientConfigKey::PoolIdleTimeout,
    ClientConfigKey::PoolMaxIdlePerHost,
    ClientConfigKey::ProxyUrl,
    ClientConfigKey::ProxyCaCertificate,
    ClientConfigKey::ProxyExcludes,
    ClientConfigKey::RandomizeAddresses,
    ClientConfigKey::ReadTimeout,
    ClientConfigKey::UserAgent,
];

/// Few and short: the daemon comes again in its next cycle.
fn retry() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(200),
            max_backoff: Duration::from_secs(5),
            ..BackoffConfig::default()
        },
        max_retries: 3,
        retry_timeout: STALL,
    }
}

pub(super) fn store(
    location: &RemoteLocation,
    access: &Access,
) -> Result<Arc<dyn ObjectStore>, String> {
    let settings = Settings {
        options: options(&access.object_store)?,
        ca_file: access.http.tls_config.ca_file.as_deref(),
        insecure: access.http.tls_config.insecure_skip_verify,
    };
    match location.scheme().service() {
        #[cfg(feature = "s3")]
        Service::S3 => s3(location, &settings),
        #[cfg(feature = "gcs")]
        Service::Gcs => gcs(location, &settings),
        #[cfg(feature = "azure")]
        Service::Azure => azure(location, &settings),
        service => Err(format!("{} is not built in", service.name())),
    }
}

struct Settings<'a> {
    /// Keys of the `object_store` crate, secrets read from their files.
    options: Vec<(String, String)>,
    ca_file: Option<&'a Path>,
    insecure: bool,
}

fn options(config: &ObjectStoreConfig) -> Result<Vec<(String, String)>, String> {
    config.validate()?;
    let mut options: Vec<(String, String)> = config
        .options
        .iter()
        .map(|(key, value)| (key.clone(), value.as_str().to_owned()))
        .collect();
    for (key, path) in &config.secret_files {
        let secret = secret(path)
            .map_err(|why| format!("object_store.secret_files.{key} {}: {why}", path.display()))?;
        options.push((key.clone(), secret));
    }
    Ok(options)
}

fn secret(path: &Path) -> Result<String, String> {
    use std::io::Read;
    let mut text = String::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(LONGEST_SECRET + 1).read_to_string(&mut text))
        .map_err(|error| error.to_string())?;
    if text.len() as u64 > LONGEST_SECRET {
        return Err("longer than any secret".to_owned());
    }
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

impl Settings<'_> {
    /// The options of one service: its own, and those of every client.
    fn of<'s, K: std::str::FromStr>(
        &'s self,
        prefix: &'s str,
    ) -> impl Iterator<Item = (K, &'s str)> {
        let others = ["aws_", "google_", "azure_"];
        self.options
            .iter()
            .filter(move |(key, _)| {
                key.starts_with(prefix) || !others.iter().any(|other| key.starts_with(other))
            })
            .filter_map(|(key, value)| Some((key.parse().ok()?, value.as_str())))
    }

    /// The client's options: what the builder holds, with the timeouts and
    /// certificates of ours.
    fn client(
        &self,
        held: impl Fn(ClientConfigKey) -> Option<String>,
        http: bool,
    ) -> Result<ClientOptions, String> {
        let mut client = ClientOptions::new().with_user_agent(HeaderValue::from_static(concat!(
            "spark-exporter/",
            env!("CARGO_PKG_VERSION")
        )));
        for key in CLIENT {
            if let Some(value) = held(key) {
                client = client.with_config(key, value);
            }
        }
        // A transfer may take long: what must not take long is the next piece
        // of it.
        client = client.with_timeout_disabled().with_read_timeout(STALL);
        if http {
            client = client.with_allow_http(true);
        }
        if self.insecure {
            client = client.with_allow_invalid_certificates(true);
        }
        if let Some(path) = self.ca_file {
            let wrong = |why: &dyn std::fmt::Display| {
                format!("tls_config.ca_file {}: {why}", path.display())
            };
            let pem = std::fs::read(path).map_err(|error| wrong(&error))?;
            let certificates = Certificate::from_pem_bundle(&pem)
                .map_err(|_| wrong(&"no PEM certificate in it (-----BEGIN CERTIFICATE-----)"))?;
            for certificate in certificates {
                client = client.with_root_certificate(certificate);
            }
        }
        Ok(client)
    }
}

/// An endpoint without TLS is used where the operator wrote one.
fn is_http(endpoint: Option<String>) -> bool {
    endpoint.is_some_and(|endpoint| endpoint.starts_with("http://"))
}

fn built<S: ObjectStore>(store: object_store::Result<S>) -> Result<Arc<dyn ObjectStore>, String> {
    match store {
        Ok(store) => Ok(Arc::new(store)),
        Err(error) => {
            let said = super::failure::without_queries(&error.to_string());
            Err(format!(
                "{}; see object_store of the cluster, and the environment",
                crate::fetch::text::glance(said.as_bytes())
            ))
        }
    }
}

#[cfg(feature = "s3")]
fn s3(location: &RemoteLocation, settings: &Settings<'_>) -> Result<Arc<dyn ObjectStore>, String> {
    use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
    let mut builder = AmazonS3Builder::from_env();
    for (key, value) in settings.of::<AmazonS3ConfigKey>("aws_") {
        builder = builder.with_config(key, value);
    }
    let http = is_http(builder.get_config_value(&AmazonS3ConfigKey::Endpoint))
        || is_http(builder.get_config_value(&AmazonS3ConfigKey::S3Endpoint));
    let client =
        settings.client(|key| builder.get_config_value(&AmazonS3ConfigKey::Client(key)), http)?;
    built(
        builder
            .with_bucket_name(location.authority())
            .with_client_options(client)
            .with_retry(retry())
            .build(),
    )
}

#[cfg(feature = "gcs")]
fn gcs(location: &RemoteLocation, settings: &Settings<'_>) -> Result<Arc<dyn ObjectStore>, String> {
    use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
    let mut builder = GoogleCloudStorageBuilder::from_env();
    for (key, value) in settings.of::<GoogleConfigKey>("google_") {
        builder = builder.with_config(key, value);
    }
    let http = is_http(builder.get_config_value(&GoogleConfigKey::BaseUrl));
    let client =
        settings.client(|key| builder.get_config_value(&GoogleConfigKey::Client(key)), http)?;
    built(
        builder
            .with_bucket_name(location.authority())
            .with_client_options(client)
            .with_retry(retry())
            .build(),
    )
}

#[cfg(feature = "azure")]
fn azure(
    location: &RemoteLocation,
    settings: &Settings<'_>,
) -> Result<Arc<dyn ObjectStore>, String> {
    use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
    let mut builder = MicrosoftAzureBuilder::from_env();
    for (key, value) in settings.of::<AzureConfigKey>("azure_") {
        builder = builder.with_config(key, value);
    }
    let mut endpoint = builder.get_config_value(&AzureConfigKey::Endpoint);
    match location.authority().split_once('@') {
        None => builder = builder.with_container_name(location.authority()),
        Some((container, host)) => {
            let (account, domain) = host.split_once('.').unwrap_or((host, ""));
            if domain.ends_with("fabric.microsoft.com") {
                builder = builder.with_url(format!("abfss://{container}@{host}/"));
            } else {
                builder = builder.with_container_name(container).with_account(account);
                // Other clouds than the public one have other domains.
                let cloud = domain.strip_prefix("dfs.").or_else(|| domain.strip_prefix("blob."));
                if let Some(cloud) = cloud.filter(|cloud| *cloud != "core.windows.net")
                    && endpoint.is_none()
                {
                    let url = format!("https://{account}.blob.{cloud}");
                    builder = builder.with_endpoint(url.clone());
                    endpoint = Some(url);
                }
            }
        }
    }
    let client = settings
        .client(|key| builder.get_config_value(&AzureConfigKey::Client(key)), is_http(endpoint))?;
    built(builder.with_client_options(client).with_retry(retry()).build())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each key that the configuration takes is one of the crate's.
    #[test]
    #[cfg(all(feature = "s3", feature = "gcs", feature = "azure"))]
    fn keys_are_those_of_the_crate() {
        let (options, secrets) = ObjectStoreConfig::known_keys();
        for key in options.iter().chain(secrets) {
            let known = if key.starts_with("aws_") {
                key.parse::<object_store::aws::AmazonS3ConfigKey>().is_ok()
            } else if key.starts_with("google_") {
                key.parse::<object_store::gcp::GoogleConfigKey>().is_ok()
            } else if key.starts_with("azure_") {
                key.parse::<object_store::azure::AzureConfigKey>().is_ok()
            } else {
                key.parse::<ClientConfigKey>().is_ok_and(|key| CLIENT.contains(&key))
            };
            assert!(known, "{key}");
        }
    }
}
