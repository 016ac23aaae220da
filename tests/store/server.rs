//! A real PostgreSQL server, and databases in it.

#![allow(dead_code, reason = "not all who have this module use all of it")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use spark_exporter::config::Storage;
use spark_exporter::store::postgres::Postgres;
use spark_exporter::store::{Backend, StoreError};
use tokio::runtime::Runtime;

use super::store_suite::Place;

pub(crate) fn runtime() -> &'static Runtime {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
    });
    &RUNTIME
}

/// Ends with the test program, whose end its script sees.
pub(crate) struct Server {
    child: Child,
    words: Mutex<ChildStdin>,
    lines: Mutex<Receiver<String>>,
    port: u16,
    socket: String,
    databases: AtomicUsize,
}

impl Server {
    /// One that whoever only wants a database shares.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: LazyLock<Server> = LazyLock::new(|| Server::start(None, &[]));
        &SHARED
    }

    /// With TLS alone where `tls` holds `server.pem` and `server.key`.
    pub(crate) fn start(tls: Option<&Path>, settings: &[&str]) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parts/postgresql-server");
        let port = {
            let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            free.local_addr().unwrap().port()
        };
        let mut child = Command::new(&script)
            .arg(port.to_string())
            .arg(tls.unwrap_or(Path::new("")))
            .args(settings)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", script.display()));
        let (sender, lines) = sync_channel(16);
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let words = child.stdin.take().unwrap();
        let mut server = Self {
            child,
            words: Mutex::new(words),
            lines: Mutex::new(lines),
            port,
            socket: String::new(),
            databases: AtomicUsize::new(0),
        };
        let socket = server.line();
        socket.strip_prefix("socket=").expect("its socket").clone_into(&mut server.socket);
        assert_eq!(server.line(), "ready");
        server
    }

    fn line(&self) -> String {
        let lines = self.lines.lock().unwrap();
        lines.recv_timeout(Duration::from_mins(2)).expect("the script says above what is wrong")
    }

    /// `stop`, `kill` or `start`.
    pub(crate) fn say(&mut self, word: &str) {
        writeln!(self.words.lock().unwrap(), "{word}").unwrap();
        assert_eq!(self.line(), "done");
    }

    /// A new one, empty.
    pub(crate) fn database(&self) -> Database {
        let number = self.databases.fetch_add(1, Ordering::Relaxed);
        let database = Database {
            port: self.port,
            socket: self.socket.clone(),
            name: format!("test_{number}"),
        };
        database.execute_in("postgres", &format!("CREATE DATABASE {}", database.name));
        database
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Standard input ends by its own drop only after this.
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
}

pub(crate) struct Database {
    port: u16,
    socket: String,
    name: String,
}

impl Database {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn storage(&self) -> Storage {
        let url = format!("postgres://postgres@127.0.0.1:{}/{}", self.port, self.name);
        let folder = PathBuf::from(&self.socket);
        Storage {
            url: Some(url.parse().unwrap()),
            password_file: Some(folder.join("password")),
            ..Storage::default()
        }
    }

    /// As the superuser, by the socket.
    pub(crate) fn execute(&self, sql: &str) {
        self.execute_in(&self.name, sql);
    }

    fn execute_in(&self, database: &str, sql: &str) {
        let mut config = tokio_postgres::Config::new();
        config.host_path(&self.socket).port(self.port).user("postgres").password("secret");
        config.dbname(database);
        runtime().block_on(async {
            let (client, connection) = config.connect(tokio_postgres::NoTls).await.unwrap();
            let task = tokio::spawn(connection);
            client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
            drop(client);
            task.await.unwrap().unwrap();
        });
    }
}

impl Place for Database {
    fn open(&self, now: Timestamp) -> Result<Box<dyn Backend>, StoreError> {
        let storage = self.storage();
        let url = storage.url.clone().unwrap();
        Ok(Box::new(Postgres::open(&url, &storage, Some(now), runtime().handle())?))
    }
}

/// A folder with an authority (`ca.pem`) and a server's certificate by it.
pub(crate) fn authority(folder: &Path, name: &str, server_name: &str) -> PathBuf {
    let folder = folder.join(name);
    std::fs::create_dir(&folder).unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new([server_name.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    std::fs::write(folder.join("ca.pem"), issuer.pem()).unwrap();
    std::fs::write(folder.join("server.pem"), certificate.pem()).unwrap();
    std::fs::write(folder.join("server.key"), key.serialize_pem()).unwrap();
    folder
}
