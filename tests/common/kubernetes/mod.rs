//! A real API server of Kubernetes with its etcd, on free ports of loopback.
//! It has neither controllers nor a kubelet: nothing makes pods of a
//! StatefulSet, gives a namespace its default service account, or collects
//! what a deleted object owned. A pod is what a test writes, status and all.
//!
//! Tests of one binary share one server ([`ApiServer::shared`]) and take a
//! namespace each; who stops it takes one of their own ([`ApiServer::start`]).

pub(crate) mod objects;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use reqwest::Method;
use serde_json::{Value, json};

use super::real::{Program, free_port, part};

/// It takes five seconds alone, a minute beside compilers.
const STARTS_WITHIN: Duration = Duration::from_mins(2);

/// The administrator's token: no secret, since the server ends with the test.
pub(crate) const ADMIN_TOKEN: &str = "token-of-the-administrator";

/// Users besides, who may nothing until a test binds a role to them.
const USERS: [&str; 2] = ["alice", "bob"];

/// Runs a program until standard input closes, which it does however this
/// process ends, then removes the folder; or until the program ends. Its
/// output comes first with its process id.
const UNTIL_CLOSED: &str = r#"
folder="$1"; shift
trap : TERM
"$@" 2>&1 </dev/null & program=$!
echo "pid=$program"
cat <&3 >/dev/null & reader=$!
wait -n "$program" "$reader"
if ! kill -0 "$reader" 2>/dev/null; then
    kill -TERM "$program"; wait "$program"
    [ -z "$folder" ] || rm -rf "$folder"
fi
kill "$reader" 2>/dev/null
"#;

pub(crate) struct ApiServer {
    /// `https://127.0.0.1:PORT`
    pub(crate) url: String,
    /// PEM.
    pub(crate) authority: String,
    folder: PathBuf,
    port: u16,
    etcd_port: u16,
    client: reqwest::Client,
    /// Held while they are stopped or started. In this order they end.
    programs: Mutex<(Option<Running>, Option<Running>)>,
}

struct Running {
    program: Program,
    pid: String,
    log: Vec<String>,
}

impl Running {
    fn start(what: &str, folder: Option<&Path>, command: &Command) -> Self {
        let mut shell = Command::new("bash");
        shell.args(["-c", &format!("exec 3<&0; {UNTIL_CLOSED}"), "bash"]);
        shell.arg(folder.unwrap_or(Path::new("")));
        shell.arg(command.get_program()).args(command.get_args());
        let program = Program::start(shell, what, false);
        let pid = program.value("pid", STARTS_WITHIN);
        Self { program, pid, log: Vec::new() }
    }

    /// Ends it as a crash does.
    fn kill(mut self) {
        let _ = Command::new("kill").args(["-KILL", &self.pid]).status();
        self.program.end(STARTS_WITHIN);
    }

    fn said(&mut self) -> String {
        self.log.extend(self.program.said());
        let from = self.log.len().saturating_sub(100);
        self.log[from..].join("\n")
    }
}

impl ApiServer {
    /// The one that the tests of this binary share.
    pub(crate) async fn shared() -> &'static Self {
        static SHARED: tokio::sync::OnceCell<ApiServer> = tokio::sync::OnceCell::const_new();
        SHARED.get_or_init(Self::start).await
    }

    /// A new one, without anything in it.
    pub(crate) async fn start() -> Self {
        part(&["kubernetes"]);
        let folder = tempfile::Builder::new().prefix("kubernetes-").tempdir().unwrap().keep();
        let authority = write_certificates(&folder);
        let certificate = reqwest::Certificate::from_pem(authority.as_bytes()).unwrap();
        let client = reqwest::Client::builder()
            .tls_certs_only([certificate])
            .no_proxy()
            // Each test has a runtime of its own, and a connection lives in one.
            .pool_max_idle_per_host(0)
            .timeout(Duration::from_mins(1))
            .build()
            .unwrap();
        let (port, etcd_port) = (free_port(), free_port());
        let url = format!("https://127.0.0.1:{port}");
        let programs = Mutex::default();
        let server = Self { url, authority, folder, port, etcd_port, client, programs };
        server.start_etcd();
        server.start_again().await;
        server
    }

    fn start_etcd(&self) {
        let mut etcd = Command::new(part(&["kubernetes"]).join("etcd"));
        let client = format!("http://127.0.0.1:{}", self.etcd_port);
        let peer = format!("http://127.0.0.1:{}", free_port());
        etcd.arg("--data-dir").arg(self.folder.join("etcd"));
        etcd.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        etcd.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        etcd.args(["--initial-cluster", &format!("default={peer}")]);
        // What it holds need not outlive a power cut.
        etcd.args(["--unsafe-no-fsync", "--log-level", "warn"]);
        let running = Running::start("etcd", Some(&self.folder), &etcd);
        self.programs.lock().unwrap().1 = Some(running);
    }

    /// Starts the API server again after [`Self::kill`], on the same port and
    /// over the same objects; returns once it is ready.
    pub(crate) async fn start_again(&self) {
        let file = |name: &str| self.folder.join(name).display().to_string();
        let mut server = Command::new(part(&["kubernetes"]).join("kube-apiserver"));
        for (flag, value) in [
            ("etcd-servers", format!("http://127.0.0.1:{}", self.etcd_port)),
            ("secure-port", self.port.to_string()),
            ("bind-address", "127.0.0.1".to_owned()),
            ("cert-dir", file("certificates")),
            ("tls-cert-file", file("server.pem")),
            ("tls-private-key-file", file("server.key")),
            ("client-ca-file", file("ca.pem")),
            ("token-auth-file", file("tokens.csv")),
            ("service-account-issuer", "https://kubernetes.default.svc".to_owned()),
            ("service-account-signing-key-file", file("tokens.key")),
            ("service-account-key-file", file("tokens.pub")),
            ("authorization-mode", "RBAC".to_owned()),
            ("service-cluster-ip-range", "10.0.0.0/24".to_owned()),
            // Without controllers no namespace has the account that it asks for.
            ("disable-admission-plugins", "ServiceAccount".to_owned()),
            ("v", "0".to_owned()),
        ] {
            server.arg(format!("--{flag}={value}"));
        }
        let running = Running::start("the API server", None, &server);
        self.programs.lock().unwrap().0 = Some(running);
        let deadline = Instant::now() + STARTS_WITHIN;
        while !self.is_ready().await {
            assert!(!self.has_ended(), "the API server ended:\n{}", self.log());
            assert!(Instant::now() < deadline, "the API server is not ready:\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn is_ready(&self) -> bool {
        let ready = self.request(Method::GET, "/readyz").send().await;
        ready.is_ok_and(|answer| answer.status().is_success())
    }

    fn has_ended(&self) -> bool {
        let mut programs = self.programs.lock().unwrap();
        let ended = |running: &mut Option<Running>| {
            running.as_mut().is_none_or(|running| running.program.has_ended())
        };
        ended(&mut programs.0) || ended(&mut programs.1)
    }

    /// The end of what the API server and etcd say.
    pub(crate) fn log(&self) -> String {
        let mut programs = self.programs.lock().unwrap();
        let said = |running: &mut Option<Running>| {
            running.as_mut().map_or_else(|| "not running".to_owned(), Running::said)
        };
        format!("API server:\n{}\netcd:\n{}", said(&mut programs.0), said(&mut programs.1))
    }

    /// Ends the API server as a crash does; etcd and what it holds stay.
    pub(crate) fn kill(&self) {
        let running = self.programs.lock().unwrap().0.take();
        running.expect("the API server runs").kill();
    }

    /// Makes every older resource version one that is too old: the history in
    /// etcd goes, and the API server, which keeps a copy, starts anew. Who
    /// watched, and goes on from where they were, is told "410 Gone".
    pub(crate) async fn forget_history(&self) {
        self.kill();
        self.compact().await;
        self.start_again().await;
    }

    /// Removes etcd's history up to now.
    async fn compact(&self) {
        let etcd = format!("http://127.0.0.1:{}/v3/kv", self.etcd_port);
        let post = async |path: &str, body: Value| -> Value {
            let request = self.client.post(format!("{etcd}/{path}")).body(body.to_string());
            let answer = request.send().await.unwrap().error_for_status().unwrap();
            serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap()
        };
        let range = post("range", json!({"key": "AA==", "limit": 1})).await;
        let revision = range["header"]["revision"].clone();
        post("compaction", json!({"revision": revision, "physical": true})).await;
    }

    /// A token of a service account, as a kubelet asks for one.
    pub(crate) async fn token_of(&self, namespace: &str, account: &str) -> String {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
        let request = self.request(Method::POST, &path).header("content-type", "application/json");
        let body =
            json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
        let answer = self.succeeds(request.body(body.to_string()), &path).await;
        answer["status"]["token"].as_str().unwrap().to_owned()
    }

    /// Writes a kubeconfig file for whoever has this token ([`ADMIN_TOKEN`],
    /// one of [`token_of_user`], one of [`Self::token_of`]).
    pub(crate) fn kubeconfig(&self, file: &Path, token: &str, namespace: &str) {
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "contexts": [{
                "name": "test",
                "context": {"cluster": "test", "user": "test", "namespace": namespace},
            }],
            "clusters": [{
                "name": "test",
                "cluster": {
                    "server": self.url,
                    "certificate-authority": self.folder.join("ca.pem"),
                },
            }],
            "users": [{"name": "test", "user": {"token": token}}],
        });
        std::fs::write(file, config.to_string()).unwrap();
    }

    /// kubectl as the administrator.
    pub(crate) fn kubectl(&self) -> Command {
        let mut command = Command::new(part(&["helm", "4"]).join("kubectl"));
        command.env("KUBECONFIG", self.admin_config());
        command
    }

    /// A kubeconfig file of the administrator.
    pub(crate) fn admin_config(&self) -> PathBuf {
        let file = self.folder.join("admin.kubeconfig");
        if !file.exists() {
            let new = self.folder.join(format!("admin.kubeconfig.{}", fastrand::u64(..)));
            self.kubeconfig(&new, ADMIN_TOKEN, "default");
            std::fs::rename(new, &file).unwrap();
        }
        file
    }
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        if std::thread::panicking() {
            #[allow(clippy::print_stderr, reason = "what a test says that failed")]
            {
                eprintln!("{}", self.log());
            }
        }
        let mut programs = self.programs.lock().unwrap();
        drop(programs.0.take());
        drop(programs.1.take());
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A token of one of [`USERS`].
pub(crate) fn token_of_user(user: &str) -> String {
    assert!(USERS.contains(&user), "no user {user}");
    format!("token-of-{user}")
}

/// Certificates, and who has which token; the authority's certificate.
fn write_certificates(folder: &Path) -> String {
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let names = ["127.0.0.1", "localhost", "kubernetes.default.svc"].map(str::to_owned);
    let key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
    write("ca.pem", &authority);
    write("server.pem", &server.pem());
    write("server.key", &key.serialize_pem());
    let tokens = KeyPair::generate().unwrap();
    write("tokens.key", &tokens.serialize_pem());
    write("tokens.pub", &tokens.public_key_pem());
    let admin = format!("{ADMIN_TOKEN},admin,1,\"system:masters\"");
    let users = USERS.map(|user| format!("{},{user},{user}", token_of_user(user)));
    write("tokens.csv", &format!("{admin}\n{}\n", users.join("\n")));
    authority
}
