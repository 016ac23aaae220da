//! The client of one cluster's API server: by the pod's own service account,
//! or by a kubeconfig file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kube::config::{Kubeconfig, KubeconfigError};
use kube::{Client, Config};

use crate::config::Kubernetes;

/// To reach the server at all.
const CONNECT: Duration = Duration::from_secs(10);
/// Without a byte: longer than a watch without news, which the server ends
/// (`watch::WATCH`).
const SILENCE: Duration = Duration::from_mins(5);

/// Why there is no client. Nothing of the files is repeated: tokens are in
/// them.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error(
        "not in a pod of the cluster, or without its service account ({0}): give kubeconfig_file \
         to watch it from outside"
    )]
    NotInCluster(String),
    #[error("kubeconfig_file {path}: {why}")]
    File { path: PathBuf, why: String },
    #[error("cannot make a client for the API server: {0}")]
    Client(&'static str),
}

/// A client, and the namespace it calls its own.
#[derive(Clone)]
pub struct Connection {
    client: Client,
    own_namespace: Arc<str>,
}

impl Connection {
    /// Reads what is needed to talk to the server; asks nothing yet. Call it
    /// within the runtime.
    ///
    /// # Errors
    /// Outside of a cluster without a file, and where the file cannot be read
    /// or names no such context, server or certificate.
    pub fn new(settings: &Kubernetes) -> Result<Self, ConnectError> {
        // Two libraries bring two of them, and rustls picks none by itself.
        // Fails only where one was chosen already.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let mut config = match &settings.kubeconfig_file {
            Some(path) => from_file(path, settings.context.as_deref())?,
            None => {
                Config::incluster().map_err(|why| ConnectError::NotInCluster(why.to_string()))?
            }
        };
        config.connect_timeout = Some(CONNECT);
        config.read_timeout = Some(SILENCE);
        config.reset_reader_on_write = true;
        // The watches wait between tries themselves, and count each.
        config.default_retry = false;
        let own_namespace = config.default_namespace.as_str().into();
        let client = Client::try_from(config).map_err(|error| ConnectError::Client(why(&error)))?;
        Ok(Self { client, own_namespace })
    }

    pub(super) fn client(&self) -> Client {
        self.client.clone()
    }

    /// Those to watch; `[None]`: all at once.
    pub(super) fn namespaces(&self, settings: &Kubernetes) -> Vec<Option<Arc<str>>> {
        let mut names: Vec<Arc<str>> =
            settings.namespaces.names.iter().map(|name| name.as_str().into()).collect();
        if settings.namespaces.own_namespace && !names.contains(&self.own_namespace) {
            names.push(Arc::clone(&self.own_namespace));
        }
        if names.is_empty() {
            return vec![None];
        }
        names.into_iter().map(Some).collect()
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("own_namespace", &self.own_namespace)
            .finish_non_exhaustive()
    }
}

fn from_file(path: &Path, context: Option<&str>) -> Result<Config, ConnectError> {
    let read = || {
        let mut kubeconfig = Kubeconfig::read_from(path)?;
        if let Some(context) = context {
            kubeconfig.current_context = Some(context.to_owned());
        }
        Config::try_from(kubeconfig)
    };
    read().map_err(|error| ConnectError::File { path: path.to_owned(), why: in_words(&error) })
}

/// Without what the parsers quote of the file.
fn in_words(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::ReadConfig(error, _) => error.to_string(),
        KubeconfigError::CurrentContextNotSet => {
            "it has no current context: give context".to_owned()
        }
        KubeconfigError::LoadContext(name) => format!("it has no context {name:?}"),
        KubeconfigError::LoadClusterOfContext(name) => format!("it has no cluster {name:?}"),
        KubeconfigError::MissingClusterUrl => "its cluster has no server".to_owned(),
        KubeconfigError::LoadCertificateAuthority(_) | KubeconfigError::ParseCertificates(_) => {
            "its certificate-authority cannot be read".to_owned()
        }
        KubeconfigError::LoadClientCertificate(_) => {
            "its client-certificate cannot be read".to_owned()
        }
        KubeconfigError::LoadClientKey(_) => "its client-key cannot be read".to_owned(),
        _ => "is not a kubeconfig file that is understood".to_owned(),
    }
}

/// What of the settings is wrong; the library's own words may quote tokens.
fn why(error: &kube::Error) -> &'static str {
    match error {
        kube::Error::Auth(_) => {
            "the credentials of its user cannot be had (a token file that cannot be read, or a \
             command that fails)"
        }
        kube::Error::RustlsTls(_) | kube::Error::InferKubeconfig(_) => {
            "its certificates or the key cannot be used"
        }
        kube::Error::ProxyProtocolUnsupported { .. }
        | kube::Error::ProxyProtocolDisabled { .. } => "its proxy-url is not supported",
        _ => "its settings cannot be used",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(text: &str, context: Option<&str>) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        std::fs::write(&path, text).unwrap();
        let settings = Kubernetes {
            kubeconfig_file: Some(path),
            context: context.map(str::to_owned),
            ..Kubernetes::default()
        };
        Connection::new(&settings).unwrap_err().to_string()
    }

    const GOOD: &str = "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
        clusters: [{name: k, cluster: {server: 'https://127.0.0.1:1', insecure-skip-tls-verify: true}}]\n\
        users: [{name: u, user: {token: hunter2}}]\n\
        contexts: [{name: c, context: {cluster: k, user: u, namespace: etl}}]\n";

    #[tokio::test]
    async fn a_file_that_cannot_be_used_is_refused_without_its_secrets() {
        for (text, context, part) in [
            ("users: [{name: u, user: {token: [hunter2]}}]", None, "not a kubeconfig"),
            ("apiVersion: v1", None, "give context"),
            (GOOD, Some("other"), "no context \"other\""),
        ] {
            let error = error_of(text, context);
            assert!(error.contains(part) && !error.contains("hunter2"), "{error}");
        }
        let settings =
            Kubernetes { kubeconfig_file: Some("/nowhere/config".into()), ..Kubernetes::default() };
        let error = Connection::new(&settings).unwrap_err().to_string();
        assert!(error.contains("/nowhere/config") && error.contains("No such file"), "{error}");
    }

    #[tokio::test]
    async fn the_namespaces_are_those_named_the_own_one_or_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        std::fs::write(&path, GOOD).unwrap();
        let mut settings = Kubernetes { kubeconfig_file: Some(path), ..Kubernetes::default() };
        let connection = Connection::new(&settings).unwrap();
        assert_eq!(connection.namespaces(&settings), [None]);
        settings.namespaces.own_namespace = true;
        assert_eq!(connection.namespaces(&settings), [Some("etl".into())]);
        settings.namespaces.names = vec!["ml".to_owned(), "etl".to_owned()];
        assert_eq!(connection.namespaces(&settings), [Some("ml".into()), Some("etl".into())]);
        assert!(!format!("{connection:?}").contains("hunter2"));
    }
}
