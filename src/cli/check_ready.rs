//! `spark-exporter check-ready URL`: for probes and scripts where there is no
//! curl, as in the image.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;

use super::Outcome;
use crate::config::{HttpConfig, ServerUrl, Span, without_values};
use crate::fetch::{FetchLimits, HttpClient, Request, Timeouts};

/// How long to wait before asking again, with `--wait`.
const PAUSE: Duration = Duration::from_secs(1);

/// Bytes of an answer; ours are one line.
const LONGEST_ANSWER: u64 = 64 * 1024;

/// Asks a running daemon whether it has read its sources once (/-/ready); the
/// exit status is 0 when it has, and 2 when not.
#[derive(Debug, Args)]
pub struct CheckReady {
    /// Where the daemon answers
    #[arg(value_name = "URL", default_value = "http://127.0.0.1:10404")]
    url: ServerUrl,
    /// Only ask whether it is alive (/-/healthy)
    #[arg(long)]
    healthy: bool,
    /// File (YAML) with credentials and TLS settings, as http_config in the
    /// configuration: basic_auth, tls_config, ...
    #[arg(long = "http.config.file", value_name = "FILE")]
    http_config_file: Option<PathBuf>,
    /// How long one answer may take
    #[arg(long, value_name = "SPAN", default_value = "5s")]
    timeout: Span,
    /// Ask again every second for so long until the answer is yes
    #[arg(long, value_name = "SPAN", default_value = "0s")]
    wait: Span,
}

impl CheckReady {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        if self.timeout < Span::seconds(1) {
            bail!("--timeout is {}: the least is 1s", self.timeout);
        }
        let config = self.http_config_file.as_deref().map(read).transpose()?.unwrap_or_default();
        let timeout = self.timeout.get();
        let timeouts = Timeouts { connect: timeout, idle: timeout, total: timeout };
        let limits = FetchLimits { response_size: LONGEST_ANSWER, in_flight_per_server: 1 };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start the asynchronous runtime")?;
        let answer = runtime.block_on(async {
            let client = HttpClient::without_proxies(&config, timeouts, limits)?;
            self.ask(&client).await
        })?;
        writeln!(std::io::stdout().lock(), "{}", answer.trim_end())?;
        Ok(Outcome::Good)
    }

    async fn ask(&self, client: &HttpClient) -> anyhow::Result<String> {
        let endpoint = if self.healthy { "healthy" } else { "ready" };
        let url = self.url.join(&["-", endpoint], &[]);
        let until = Instant::now() + self.wait.get();
        loop {
            let request = Request { endpoint, url: url.clone(), meter: None };
            match client.get_text(request).await {
                Ok(answer) => return Ok(answer),
                Err(_) if Instant::now() + PAUSE < until => tokio::time::sleep(PAUSE).await,
                // Without its hint, which is about Spark's servers.
                Err(error) => bail!("GET {}: {}", error.url, error.what),
            }
        }
    }
}

/// Errors name file, line and key, and quote no value.
fn read(path: &Path) -> anyhow::Result<HttpConfig> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let config: HttpConfig = serde_saphyr::from_str(&text).map_err(|error| {
        anyhow::anyhow!(
            "{} is not valid: {}",
            path.display(),
            without_values(&error.without_snippet().to_string())
        )
    })?;
    config.validate().map_err(|why| anyhow::anyhow!("{} is not valid: {why}", path.display()))?;
    Ok(config)
}
