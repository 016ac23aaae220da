//! Connections: a pool of them, the password, TLS.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use deadpool::managed::{self, Metrics, Pool, RecycleError};
use rustls::ClientConfig;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Row, Socket, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::fault::Fault;
use crate::config::{Secret, Storage, StoreUrl, TlsConfig};

/// Beyond a statement's own limit, so that it is the server that ends it.
const GRACE: Duration = Duration::from_secs(5);

/// Makes connections for the pool.
pub(super) struct Connector {
    config: tokio_postgres::Config,
    password_file: Option<PathBuf>,
    tls: Option<Tls>,
    connect_timeout: Duration,
    statement_timeout: Duration,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}

impl Connector {
    pub(super) fn new(url: &StoreUrl, storage: &Storage) -> Result<Self, Fault> {
        let tls = if url.tls() { Some(Tls::read(&storage.tls_config)?) } else { None };
        let mut config = tokio_postgres::Config::new();
        config
            .user(url.user())
            .dbname(url.database())
            .port(url.port())
            .application_name("spark-exporter")
            .connect_timeout(storage.connect_timeout.get())
            .keepalives(true)
            .keepalives_idle(Duration::from_secs(30))
            .keepalives_interval(Duration::from_secs(10))
            .keepalives_retries(3)
            .tcp_user_timeout(storage.statement_timeout.get() + GRACE)
            .ssl_mode(if tls.is_some() { SslMode::Require } else { SslMode::Disable });
        if url.is_socket() {
            config.host_path(url.host());
        } else {
            config.host(url.host());
        }
        Ok(Self {
            config,
            password_file: storage.password_file.clone(),
            tls,
            connect_timeout: storage.connect_timeout.get(),
            statement_timeout: storage.statement_timeout.get(),
        })
    }

    pub(super) fn pool(self, size: usize) -> Result<Pool<Self>, Fault> {
        // Connections end after work that is bounded itself.
        let wait = self.connect_timeout + self.statement_timeout;
        Pool::builder(self)
            .max_size(size)
            .wait_timeout(Some(wait))
            .runtime(deadpool::Runtime::Tokio1)
            .build()
            .map_err(|error| Fault::Refused(error.to_string()))
    }

    /// From the file, as it is now, or from the environment.
    fn password(&self) -> Result<Option<Secret>, Fault> {
        let Some(path) = &self.password_file else {
            return Ok(std::env::var("PGPASSWORD").ok().map(Secret::new));
        };
        let text = std::fs::read_to_string(path)
            .map_err(|error| Fault::Password(format!("{}: {error}", path.display())))?;
        let text = text.strip_suffix('\n').unwrap_or(&text);
        Ok(Some(Secret::new(text.strip_suffix('\r').unwrap_or(text))))
    }

    async fn connect(&self) -> Result<Connection, Fault> {
        let mut config = self.config.clone();
        if let Some(password) = self.password()? {
            config.password(password.expose());
        }
        // `connect_timeout` ends at the socket; the greeting counts as well.
        let within = self.connect_timeout + GRACE;
        let connecting = async {
            // Whoever waits for an answer is told how a connection ended.
            Ok::<_, tokio_postgres::Error>(if let Some(tls) = &self.tls {
                let (client, connection) = config.connect(tls.clone()).await?;
                (client, tokio::spawn(async { drop(connection.await) }))
            } else {
                let (client, connection) = config.connect(NoTls).await?;
                (client, tokio::spawn(async { drop(connection.await) }))
            })
        };
        let (client, task) = tokio::time::timeout(within, connecting)
            .await
            .map_err(|_| Fault::TimedOut("a connection", within))??;
        let mut connection = Connection {
            client,
            task,
            statements: HashMap::new(),
            within: self.statement_timeout + GRACE,
        };
        let milliseconds = self.statement_timeout.as_millis();
        connection
            .batch(&format!(
                "SET statement_timeout = {milliseconds};
                 SET idle_in_transaction_session_timeout = {};
                 SET search_path = pg_catalog",
                (self.statement_timeout + GRACE).as_millis() * 2
            ))
            .await?;
        Ok(connection)
    }
}

impl managed::Manager for Connector {
    type Type = Connection;
    type Error = Fault;

    async fn create(&self) -> Result<Connection, Fault> {
        self.connect().await
    }

    async fn recycle(
        &self,
        connection: &mut Connection,
        _: &Metrics,
    ) -> managed::RecycleResult<Fault> {
        if connection.client.is_closed() {
            return Err(RecycleError::message("closed"));
        }
        Ok(())
    }
}

/// A connection, with the statements it has prepared.
pub(super) struct Connection {
    client: Client,
    task: tokio::task::JoinHandle<()>,
    statements: HashMap<&'static str, Statement>,
    within: Duration,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Connection {
    pub(super) async fn query(
        &mut self,
        sql: &'static str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Fault> {
        let within = self.within;
        let work = async {
            let statement = if let Some(statement) = self.statements.get(sql) {
                statement.clone()
            } else {
                let statement = self.client.prepare(sql).await?;
                self.statements.insert(sql, statement.clone());
                statement
            };
            self.client.query(&statement, parameters).await
        };
        let rows = tokio::time::timeout(within, work).await;
        Ok(rows.map_err(|_| Fault::TimedOut("an answer", within))??)
    }

    /// Statements without parameters and answers.
    pub(super) async fn batch(&mut self, sql: &str) -> Result<(), Fault> {
        let work = tokio::time::timeout(self.within, self.client.batch_execute(sql));
        Ok(work.await.map_err(|_| Fault::TimedOut("an answer", self.within))??)
    }
}

/// TLS as `storage.tls_config` says.
#[derive(Clone)]
struct Tls {
    connect: MakeRustlsConnect,
    server_name: Option<String>,
}

impl Tls {
    fn read(config: &TlsConfig) -> Result<Self, Fault> {
        let mut roots = RootCertStore::empty();
        match &config.ca_file {
            Some(path) => {
                for authority in certificates("ca_file", path)? {
                    roots.add(authority).map_err(|error| refused("ca_file", path, error))?;
                }
            }
            None => {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| Fault::Refused(error.to_string()))?
            .with_root_certificates(roots);
        let client = match (&config.cert_file, &config.key_file) {
            (Some(certificate), Some(key_file)) => {
                let key = PrivateKeyDer::from_pem_file(key_file)
                    .map_err(|error| refused("key_file", key_file, error))?;
                builder
                    .with_client_auth_cert(certificates("cert_file", certificate)?, key)
                    .map_err(|error| refused("cert_file", certificate, error))?
            }
            _ => builder.with_no_client_auth(),
        };
        Ok(Self {
            connect: MakeRustlsConnect::new(client),
            server_name: config.server_name.clone(),
        })
    }
}

fn certificates(key: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, Fault> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let all = all.map_err(|error| refused(key, path, error))?;
    if all.is_empty() {
        return Err(refused(key, path, "no PEM certificate in it (-----BEGIN CERTIFICATE-----)"));
    }
    Ok(all)
}

fn refused(key: &str, path: &Path, why: impl fmt::Display) -> Fault {
    Fault::Refused(format!("storage.tls_config.{key} {}: {why}", path.display()))
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;
    type TlsConnect = <MakeRustlsConnect as MakeTlsConnect<Socket>>::TlsConnect;
    type Error = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Error;

    fn make_tls_connect(&mut self, host: &str) -> Result<Self::TlsConnect, Self::Error> {
        let name = self.server_name.as_deref().unwrap_or(host);
        MakeTlsConnect::<Socket>::make_tls_connect(&mut self.connect, name)
    }
}
