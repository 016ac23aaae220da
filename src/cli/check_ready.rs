//! `spark-exporter check-ready`: one question to a daemon, for whoever has no
//! shell and no curl to ask it with: a container's health check, a chart's
//! test.

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;

use super::Outcome;
use super::serve::parsed;
use crate::config::{HttpConfig, Limits, ServerUrl, Span};
use crate::fetch::{FetchError, FetchLimits, HttpClient, Request, Timeouts};

/// Before asking again, with `--wait`.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    spark-exporter check-ready\n      \
    whether the daemon of this machine or pod is ready; exit status 0 or 1\n  \
    spark-exporter check-ready https://spark-exporter:10404 --http.config.file client.yml\n      \
    the same over TLS, as the client that client.yml says:\n        \
    basic_auth: {username: probe, password_file: /run/secrets/password}\n        \
    tls_config: {ca_file: /etc/ssl/company.pem}")]
pub struct CheckReady {
    /// Where it listens, with its path prefix if it has one
    #[arg(value_name = "URL", default_value = "http://127.0.0.1:10404")]
    url: String,
    /// Only ask whether it lives (/-/healthy), not whether it has asked its
    /// sources once (/-/ready)
    #[arg(long)]
    healthy: bool,
    /// Credentials and TLS (YAML, the keys of http_config), for a daemon with
    /// a --web.config.file
    #[arg(long = "http.config.file", value_name = "FILE")]
    http_config: Option<PathBuf>,
    /// How long to wait for the answer
    #[arg(long = "timeout", value_name = "SPAN", default_value = "5s")]
    timeout: Span,
    /// Ask again, every second and for so long, until the answer is yes
    #[arg(long = "wait", value_name = "SPAN", default_value = "0s")]
    wait: Span,
}

impl CheckReady {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let url: ServerUrl = parsed("URL", &[self.url])?.remove(0);
        let config = match &self.http_config {
            None => HttpConfig::default(),
            Some(path) => {
                let text = std::fs::read_to_string(path).with_context(|| {
                    format!("cannot read --http.config.file {}", path.display())
                })?;
                HttpConfig::parse(&text).map_err(|why| {
                    anyhow::anyhow!("--http.config.file {} is not valid: {why}", path.display())
                })?
            }
        };
        let total = self.timeout.get().max(Duration::from_millis(1));
        let timeouts = Timeouts { connect: total, idle: total, total };
        let limits = FetchLimits::from(&Limits::default());
        let client = HttpClient::without_proxies(&config, timeouts, limits)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start the asynchronous runtime")?;
        let endpoint = if self.healthy { "healthy" } else { "ready" };
        let asked = url.join(&["-", endpoint], &[]);
        let request = Request { endpoint, url: asked, meter: None };
        match runtime.block_on(ask(&client, request, self.wait.get())) {
            Ok(()) => {
                writeln!(std::io::stdout(), "{url} is {endpoint}")?;
                Ok(Outcome::Good)
            }
            // Without its hint, which is about Spark's servers.
            Err(error) => {
                writeln!(
                    std::io::stderr(),
                    "spark-exporter: not {endpoint}: {url}: {}",
                    error.what
                )?;
                Ok(Outcome::Found)
            }
        }
    }
}

async fn ask(client: &HttpClient, request: Request, wait: Duration) -> Result<(), FetchError> {
    let begun = Instant::now();
    loop {
        match client.get_text(request.clone()).await {
            Ok(_) => return Ok(()),
            Err(error) if begun.elapsed() + PAUSE > wait => return Err(error),
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}
