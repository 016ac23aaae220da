//! A real OpenTelemetry Collector on loopback, whose file exporter writes what
//! it took as OTLP's JSON.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use crate::common::real::{Program, free_port, part};
use crate::received::Received;

/// What differs between the Collectors of the tests.
#[derive(Debug, Clone, Default)]
pub(crate) struct Options {
    /// Certificates of both sides, signed by an authority of the test's own.
    pub(crate) tls: bool,
    /// Name and value of a header without which nothing is taken.
    pub(crate) api_key: Option<(&'static str, &'static str)>,
    /// `max_recv_msg_size_mib` of gRPC; 4 where not set.
    pub(crate) grpc_limit_mib: Option<u32>,
}

/// Its ports stay the same when it is started again.
pub(crate) struct Collector {
    folder: tempfile::TempDir,
    program: Option<Program>,
    http: u16,
    grpc: u16,
    options: Options,
    /// What was read of its file so far, and up to where.
    read: Mutex<(u64, Received)>,
}

impl Collector {
    pub(crate) fn start(options: Options) -> Self {
        let mut collector = Self::absent(options);
        collector.restart();
        collector
    }

    /// One that will be started later.
    pub(crate) fn absent(options: Options) -> Self {
        let folder = tempfile::tempdir().unwrap();
        if options.tls {
            certificates(folder.path());
        }
        let read = Mutex::default();
        Self { folder, program: None, http: free_port(), grpc: free_port(), options, read }
    }

    /// Starts it, again if it was there before: what it has written stays.
    pub(crate) fn restart(&mut self) {
        let program = part(&["collector"]).join("otelcol");
        let config = self.folder.path().join("collector.yaml");
        std::fs::write(&config, self.configuration()).unwrap();
        let mut command = Command::new(program);
        command.arg("--config").arg(config);
        let started = Program::start(command, "the Collector", true);
        started.wait_for(Duration::from_mins(1), |line| {
            line.contains("Everything is ready").then_some(())
        });
        self.program = Some(started);
    }

    /// Ends it as a crash does. What it has taken is on disk first.
    pub(crate) fn kill(&mut self) {
        if let Some(mut program) = self.program.take() {
            // Twice its flush interval.
            std::thread::sleep(Duration::from_millis(200));
            program.kill();
            program.end(Duration::from_secs(10));
        }
    }

    fn configuration(&self) -> String {
        let file = |name: &str| self.file(name).display().to_string();
        let mut common = String::new();
        if self.options.tls {
            let (own, key, clients) = (file("server.pem"), file("server.key"), file("ca.pem"));
            let tls = format!("cert_file: {own}, key_file: {key}, client_ca_file: {clients}");
            common = format!("        tls: {{{tls}}}\n");
        }
        let mut extensions = String::new();
        let mut enabled = "[]";
        if let Some((header, value)) = self.options.api_key {
            common += "        auth: {authenticator: bearertokenauth}\n";
            extensions = format!(
                "extensions:\n  bearertokenauth: {{scheme: '', header: {header}, token: {value}}}\n"
            );
            enabled = "[bearertokenauth]";
        }
        let (http, grpc) = (self.http, self.grpc);
        let limit = self.options.grpc_limit_mib.unwrap_or(4);
        let out = file("received.jsonl");
        format!(
            "receivers:\n  otlp:\n    protocols:\n      grpc:\n        endpoint: 127.0.0.1:{grpc}\n        \
             max_recv_msg_size_mib: {limit}\n{common}      http:\n        endpoint: 127.0.0.1:{http}\n{common}\
             exporters:\n  file: {{path: {out}, append: true, flush_interval: 50ms}}\n{extensions}\
             service:\n  telemetry: {{metrics: {{level: none}}}}\n  extensions: {enabled}\n  pipelines:\n    \
             metrics: {{receivers: [otlp], exporters: [file]}}\n    \
             traces: {{receivers: [otlp], exporters: [file]}}\n    \
             logs: {{receivers: [otlp], exporters: [file]}}\n"
        )
    }

    /// A file of its folder: `ca.pem`, `client.pem`, `client.key`.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn scheme(&self) -> &'static str {
        if self.options.tls { "https" } else { "http" }
    }

    pub(crate) fn http(&self) -> String {
        format!("{}://127.0.0.1:{}", self.scheme(), self.http)
    }

    pub(crate) fn grpc(&self) -> String {
        format!("{}://127.0.0.1:{}", self.scheme(), self.grpc)
    }

    /// What it has taken so far.
    pub(crate) fn received(&self) -> Received {
        self.look(Received::clone)
    }

    fn look<T>(&self, pick: impl FnOnce(&Received) -> T) -> T {
        let mut read = self.read.lock().unwrap();
        let (from, received) = &mut *read;
        *from = received.read_on(&self.file("received.jsonl"), *from);
        pick(received)
    }

    /// Waits until what it has taken is enough.
    pub(crate) fn until<T>(
        &self,
        what: &str,
        within: Duration,
        mut pick: impl FnMut(&Received) -> Option<T>,
    ) -> T {
        let deadline = Instant::now() + within;
        loop {
            if let Some(picked) = self.look(&mut pick) {
                return picked;
            }
            assert!(
                Instant::now() < deadline,
                "the Collector did not get {what} within {within:?}; it has {}",
                self.look(Received::summary)
            );
            std::thread::sleep(Duration::from_millis(300));
        }
    }
}

/// An authority, a server's certificate for 127.0.0.1 and a client's.
fn certificates(folder: &Path) {
    let write = |name: &str, text: String| std::fs::write(folder.join(name), text).unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    write("ca.pem", params.self_signed(&key).unwrap().pem());
    let issuer = Issuer::new(params, key);
    for (file, name) in [("server", "127.0.0.1"), ("client", "exporter.example.com")] {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        write(&format!("{file}.pem"), certificate.pem());
        write(&format!("{file}.key"), key.serialize_pem());
    }
}
