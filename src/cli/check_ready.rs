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
use crate::fetch::{FetchLimits, HttpClient, Request, Timeouts};

/// How long to wait before asking again, with `--wait`.
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
    /// Credentials and TLS (YAML, the keys of http_config), for a daemon with
    /// a --web.config.file
    #[arg(long = "http.config.file", value_name = "FILE")]
    http_config: Option<PathBuf>,
    /// Only ask whether it is alive (/-/healthy)
    #[arg(long)]
    healthy: bool,
    /// How long to wait for the answer
    #[arg(long = "timeout", value_name = "SPAN", default_value = "5s")]
    timeout: Span,
    /// Ask every second for so long, until the answer is yes
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
        let state = if self.healthy { "healthy" } else { "ready" };
        let request = Request { endpoint: state, url: url.join(&["-", state], &[]), meter: None };
        let until = Instant::now() + self.wait.get();
        let answer = runtime.block_on(async {
            loop {
                match client.get_text(request.clone()).await {
                    Err(_) if Instant::now() + PAUSE < until => tokio::time::sleep(PAUSE).await,
                    answer => return answer,
                }
            }
        });
        match answer {
            Ok(_) => {
                writeln!(std::io::stdout(), "{url} is {state}")?;
                Ok(Outcome::Good)
            }
            Err(error) => {
                writeln!(std::io::stderr(), "spark-exporter: not {state}: {error}")?;
                Ok(Outcome::Found)
            }
        }
    }
}
