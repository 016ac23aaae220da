//! Real places that event logs lie in: an S3-compatible server, and HDFS with
//! WebHDFS. Each ends when its handle is dropped, and everything in it goes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::real::{Program, client, free_port, part, root, spark_script};

/// How long a server of this file may take to answer.
const STARTS_WITHIN: Duration = Duration::from_mins(2);

/// An S3-compatible server that keeps objects in memory and takes any key.
pub(crate) struct S3 {
    _program: Program,
    /// `http://127.0.0.1:PORT`; buckets are the first part of the path.
    pub(crate) endpoint: String,
}

/// Nobody checks it, but who sends none may not replace an object.
const ANYBODY: &str = "AWS4-HMAC-SHA256 Credential=anybody/20260101/us-east-1/s3/aws4_request, \
                       SignedHeaders=host, Signature=0";

impl S3 {
    pub(crate) async fn start() -> Self {
        let environment = part(&["s3"]);
        let port = free_port();
        let mut command = Command::new(environment.join("bin/python"));
        command.args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()]);
        let mut program = Program::start(command, "the S3 server", true);
        let endpoint = format!("http://127.0.0.1:{port}");
        answers(&endpoint, &mut program).await;
        Self { _program: program, endpoint }
    }

    /// Makes a bucket.
    pub(crate) async fn bucket(&self, name: &str) {
        self.put(name, Vec::new()).await;
    }

    /// Puts one object at `BUCKET/KEY`.
    pub(crate) async fn put(&self, path: &str, bytes: Vec<u8>) {
        let url = format!("{}/{path}", self.endpoint);
        let request = client().put(&url).header("authorization", ANYBODY);
        succeeds(request.body(bytes), &format!("PUT {url}")).await;
    }

    /// Puts the files of a folder below `BUCKET/PREFIX`, with the names that
    /// they have below it.
    pub(crate) async fn put_folder(&self, folder: &Path, prefix: &str) {
        for file in files_below(folder) {
            let name = file.strip_prefix(folder).unwrap().to_str().unwrap();
            self.put(&format!("{prefix}/{name}"), std::fs::read(&file).unwrap()).await;
        }
    }

    pub(crate) async fn delete(&self, path: &str) {
        let url = format!("{}/{path}", self.endpoint);
        let request = client().delete(&url).header("authorization", ANYBODY);
        succeeds(request, &format!("DELETE {url}")).await;
    }
}

/// A stand-in for Google Cloud Storage that keeps objects in memory.
pub(crate) struct Gcs {
    _program: Program,
    /// `http://127.0.0.1:PORT`
    pub(crate) endpoint: String,
}

impl Gcs {
    /// With one bucket.
    pub(crate) async fn start(bucket: &str) -> Self {
        let host = format!("127.0.0.1:{}", free_port());
        let (_, port) = host.split_once(':').unwrap();
        let mut command = Command::new(part(&["gcs"]));
        command.args(["-backend", "memory", "-scheme", "http", "-host", "127.0.0.1"]);
        command.args(["-port", port, "-public-host", &host]);
        let mut program = Program::start(command, "the GCS stand-in", true);
        let endpoint = format!("http://{host}");
        answers(&endpoint, &mut program).await;
        let url = format!("{endpoint}/storage/v1/b");
        let body = format!("{{\"name\":\"{bucket}\"}}");
        succeeds(client().post(&url).body(body), &url).await;
        Self { _program: program, endpoint }
    }

    /// Puts the files of a folder below `PREFIX` of a bucket.
    pub(crate) async fn put_folder(&self, folder: &Path, bucket: &str, prefix: &str) {
        for file in files_below(folder) {
            let name = file.strip_prefix(folder).unwrap().to_str().unwrap();
            let name = format!("{prefix}/{name}").replace('/', "%2F");
            let upload = format!("upload/storage/v1/b/{bucket}/o?uploadType=media&name={name}");
            let url = format!("{}/{upload}", self.endpoint);
            let body = std::fs::read(&file).unwrap();
            succeeds(client().post(&url).body(body), &url).await;
        }
    }
}

/// Azurite, Microsoft's stand-in for its blob storage.
pub(crate) struct Azure {
    _program: Program,
    /// `http://127.0.0.1:PORT/devstoreaccount1`
    pub(crate) endpoint: String,
}

/// The account that Azurite has, and its well-known key, which is no secret.
pub(crate) const AZURE_ACCOUNT: &str = "devstoreaccount1";
pub(crate) const AZURE_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

impl Azure {
    /// `folder` holds its own files.
    pub(crate) async fn start(folder: &Path) -> Self {
        let main = part(&["azure"]).join("node_modules/azurite/dist/src/blob/main.js");
        let port = free_port();
        let mut command = Command::new("node");
        command.arg(main).args(["--blobHost", "127.0.0.1", "--blobPort", &port.to_string()]);
        command.args(["--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry"]);
        command.current_dir(folder);
        let mut program = Program::start(command, "Azurite", true);
        let endpoint = format!("http://127.0.0.1:{port}/{AZURE_ACCOUNT}");
        answers(&endpoint, &mut program).await;
        Self { _program: program, endpoint }
    }

    /// Makes a container and puts the files of a folder below `PREFIX` of it.
    pub(crate) fn put_folder(&self, folder: &Path, container: &str, prefix: &str) {
        let status = Command::new("python3")
            .arg(root().join("tests/common/azure_put.py"))
            .args([&self.endpoint, AZURE_ACCOUNT, AZURE_KEY, container, prefix])
            .arg(folder)
            .status()
            .unwrap();
        assert!(status.success(), "azure_put.py says above why");
    }
}

/// Waits until a server that was just started answers anything.
async fn answers(url: &str, program: &mut Program) {
    let deadline = Instant::now() + STARTS_WITHIN;
    while client().get(url).send().await.is_err() {
        assert!(!program.has_ended(), "{url}: its server ended: {:?}", program.said());
        assert!(Instant::now() < deadline, "{url} did not answer: {:?}", program.said());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn succeeds(request: reqwest::RequestBuilder, what: &str) {
    let answer = request.send().await.unwrap_or_else(|error| panic!("{what}: {error}"));
    let status = answer.status();
    let text = answer.text().await.unwrap_or_default();
    assert!(status.is_success(), "{what}: {status} {text}");
}

/// A namenode and a datanode. Files belong to the user `spark` and are as
/// private as Spark makes them.
pub(crate) struct Hdfs {
    program: Program,
    /// `hdfs://localhost:PORT`
    pub(crate) hdfs: String,
    /// `localhost:PORT` of the namenode's web end, below which WebHDFS is.
    pub(crate) web: String,
}

/// The user to whom what lies in [`Hdfs`] belongs.
pub(crate) const HDFS_USER: &str = "spark";

impl Hdfs {
    /// `folder` holds its blocks.
    pub(crate) fn start(folder: &Path) -> Self {
        let part = part(&["hdfs"]);
        let class_path = format!("{0}/classes:{0}/lib/*", part.display());
        let mut command = Command::new("java");
        command
            .args(["-Xmx512m", "--add-opens", "java.base/java.lang=ALL-UNNAMED", "-cp"])
            .args([&class_path, "MiniHdfs"])
            .arg(folder)
            .env("HADOOP_USER_NAME", HDFS_USER);
        let program = Program::start(command, "HDFS", false);
        let hdfs = program.value("hdfs", STARTS_WITHIN);
        let web = program.value("webhdfs", STARTS_WITHIN);
        program.value("ready", STARTS_WITHIN);
        let web = web.strip_prefix("http://").unwrap_or(&web).to_owned();
        Self { program, hdfs, web }
    }

    /// Copies a file or a folder there.
    pub(crate) fn put(&mut self, local: &Path, remote: &str) {
        self.obey(&format!("put {} {remote}", local.display()));
    }

    /// Appends a file to one that is left open, as Spark leaves its log.
    pub(crate) fn write(&mut self, local: &Path, remote: &str) {
        self.obey(&format!("write {} {remote}", local.display()));
    }

    pub(crate) fn rename(&mut self, from: &str, to: &str) {
        self.obey(&format!("rename {from} {to}"));
    }

    pub(crate) fn change_mode(&mut self, octal: &str, path: &str) {
        self.obey(&format!("chmod {octal} {path}"));
    }

    pub(crate) fn delete(&mut self, path: &str) {
        self.obey(&format!("delete {path}"));
    }

    fn obey(&mut self, line: &str) {
        self.program.tell(line);
        self.program.wait_for(Duration::from_mins(1), |said| {
            (said.strip_prefix("done=") == Some(line)).then_some(())
        });
    }
}

/// Writes a recorded log again through Spark's own writers, once for each SPEC
/// (`tests/spark/write_logs` says what that is), all into one directory, which
/// may be an `hdfs://` URL. The last digits of the application's id count them.
pub(crate) fn write_logs(version: &str, log: &Path, directory: &str, specs: &[String]) {
    let output = spark_script("write_logs", version)
        .args(["--spark", version, "--together"])
        .arg(log)
        .arg(directory)
        .args(specs)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "write_logs {}: {errors}", log.display());
}

/// A folder of `tests/fixtures/eventlog/codecs`.
pub(crate) fn codec_fixture(name: &str) -> PathBuf {
    let path = root().join("tests/fixtures/eventlog/codecs").join(name);
    assert!(path.is_dir(), "{} is missing: tests/spark/record_codecs", path.display());
    path
}

/// All files below a folder, in order of name.
pub(crate) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}
