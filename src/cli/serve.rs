//! The daemon: what `spark-exporter` does without a command.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::Args;
use jiff::Timestamp;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::otlp::OtlpFlags;
use super::reload::{Reload, texts};
use super::shard::ShardFlags;
use super::store::StoreFlags;
use super::{Common, Outcome};
use crate::config::otlp::{OtlpSettings, Resolved, TracesSettings, resolve};
use crate::config::{Cluster, Config, Location, ServerUrl, Size, Span};
use crate::expose::otlp::{Moment, Own, Senders, instance, spans};
use crate::expose::{self, ExposeState, LiveTexts, Reloader, WebConfig};
use crate::fetch::Spool;
use crate::metrics::{self, RunView};
use crate::store;
use crate::telemetry::Telemetry;
use crate::telemetry::events::{ConfigLoaded, SeriesDropped, SettingIgnored, ShutdownStarted};
use crate::telemetry::logging::{self, LogFormat};
use crate::watch::{Publication, Watcher};

#[derive(Debug, Args)]
pub struct Serve {
    #[command(flatten)]
    common: Common,
    /// A driver UI or a History Server, whichever it turns out to be, with
    /// its path prefix if it has one; repeatable
    #[arg(long = "spark.url", value_name = "URL")]
    spark_urls: Vec<String>,
    /// Where event logs lie: a directory, or s3://, gs://, abfss://, hdfs://,
    /// webhdfs:// with bucket or server and path; repeatable
    #[arg(long = "event-log.dir", value_name = "DIR_OR_URL")]
    event_log_dirs: Vec<String>,
    /// Where /metrics and the page are served; repeatable
    #[arg(long = "web.listen-address", value_name = "ADDRESS", default_value = ":10404")]
    listen_addresses: Vec<String>,
    /// TLS, users and headers of the web end: a file in the format of
    /// Prometheus' exporters, which is read again when it changes
    #[arg(long = "web.config.file", value_name = "FILE")]
    web_config_file: Option<PathBuf>,
    /// Read the configuration again when /-/reload is posted to, as SIGHUP
    /// does in any case
    #[arg(long = "web.enable-lifecycle")]
    enable_lifecycle: bool,
    /// How long a finished run keeps its series [default: 30m]
    #[arg(long = "retention", value_name = "SPAN")]
    retention: Option<Span>,
    /// Do not read runs that ended longer ago [default: 24h for History
    /// Servers, no limit for directories]
    #[arg(long = "read.lookback", value_name = "SPAN")]
    lookback: Option<Span>,
    #[command(flatten)]
    store: StoreFlags,
    /// How long runs are remembered in the store, from their end or from when
    /// they were read, whichever is later [default: 30d]
    #[arg(long = "storage.retention.time", value_name = "SPAN")]
    store_retention: Option<Span>,
    /// Size of all runs in the store beyond which the oldest are forgotten
    /// [default: no limit; 64MiB in memory]
    #[arg(long = "storage.retention.size", value_name = "SIZE")]
    store_size: Option<Size>,
    #[command(flatten)]
    shards: ShardFlags,
    #[command(flatten)]
    otlp: OtlpFlags,
    /// error, warn, info, debug or trace
    #[arg(long = "log.level", value_name = "LEVEL", default_value = "info")]
    log_level: String,
    /// logfmt, json, or text for a person
    #[arg(long = "log.format", value_name = "FORMAT", default_value_t = LogFormat::default())]
    log_format: LogFormat,
}

impl Serve {
    /// Watches and serves until SIGTERM or SIGINT.
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let telemetry = Arc::new(Telemetry::new(Timestamp::now()));
        let config = self.settings()?;
        let Resolved { settings: otlp, warnings } =
            resolve(&config.otlp, &|name| std::env::var_os(name)).map_err(anyhow::Error::msg)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .context("cannot start the asynchronous runtime")?;
        runtime.block_on(async {
            let mut listeners = Vec::new();
            for address in &self.listen_addresses {
                listeners.push(listen(address).await?);
            }
            let first = listeners.first().context("no address to listen on")?;
            let instance = instance(first.local_addr().context("cannot listen")?);
            let own = Own::new(&otlp, &instance, &telemetry)?;
            logging::init(&self.log_level, self.log_format, own.listeners(&self.log_level)?)?;
            for warning in warnings {
                SettingIgnored { message: warning }.emit(&telemetry);
            }
            let served =
                serve(Arc::new(self), listeners, config, &otlp, &instance, telemetry).await;
            let within = otlp.shutdown_timeout;
            let last = tokio::task::spawn_blocking(move || own.end(within)).await;
            served.and(last.context("cannot end the daemon's own telemetry"))
        })?;
        // A log that is being parsed must not hold up the end.
        runtime.shutdown_background();
        Ok(Outcome::Good)
    }

    pub(super) fn has_config_file(&self) -> bool {
        self.common.config_file.is_some()
    }

    /// The file of the web end.
    fn web(&self, telemetry: &Arc<Telemetry>) -> anyhow::Result<Arc<WebConfig>> {
        let telemetry = Arc::clone(telemetry);
        Ok(Arc::new(match &self.web_config_file {
            None => WebConfig::open(telemetry),
            Some(path) => WebConfig::load(path, telemetry).map_err(anyhow::Error::msg)?,
        }))
    }

    /// The file with the flags added to it.
    pub(super) fn settings(&self) -> anyhow::Result<Config> {
        let mut config = self.common.config()?;
        if let Some(retention) = self.retention {
            config.retention.0 = retention;
        }
        if self.lookback.is_some() {
            config.read.lookback = self.lookback;
        }
        self.store.add_to(&mut config.storage)?;
        self.otlp.add_to(&mut config.otlp)?;
        self.shards.add_to(&mut config.sharding)?;
        if let Some(time) = self.store_retention {
            config.storage.retention.time = time;
        }
        if self.store_size.is_some() {
            config.storage.retention.size = self.store_size;
        }
        let urls: Vec<ServerUrl> = parsed("--spark.url", &self.spark_urls)?;
        let locations: Vec<Location> = parsed("--event-log.dir", &self.event_log_dirs)?;
        if !(self.spark_urls.is_empty() && self.event_log_dirs.is_empty()) {
            let name = &self.common.cluster_name;
            if !config.clusters.iter().any(|cluster| cluster.name == *name) {
                config.clusters.push(Cluster { name: name.clone(), ..Cluster::default() });
            }
            for cluster in config.clusters.iter_mut().filter(|cluster| cluster.name == *name) {
                cluster.urls.extend_from_slice(&urls);
                cluster.event_log_dirs.extend_from_slice(&locations);
            }
        }
        if !config.has_sources() {
            bail!(
                "nothing to watch: give --spark.url URL (a driver UI or a History Server), \
                 --event-log.dir DIR, or --config.file FILE with clusters; --help shows examples"
            );
        }
        config.check().map_err(anyhow::Error::msg)?;
        // Of a URL nobody knows yet what it is; a driver needs no folder.
        if config.storage.temp_path.is_some()
            || config.clusters.iter().any(|cluster| !cluster.history_servers.is_empty())
        {
            Spool::new(&config.storage.temp_path(), config.limits.spool_size.bytes()).check()?;
        }
        Ok(config)
    }
}

/// Parsed here and not by clap, which would repeat a refused value with
/// whatever secret is in it.
pub(super) fn parsed<T: FromStr<Err = String>>(
    flag: &str,
    texts: &[String],
) -> anyhow::Result<Vec<T>> {
    let parse = |text: &String| text.parse().map_err(|why| anyhow::anyhow!("{flag}: {why}"));
    texts.iter().map(parse).collect()
}

async fn serve(
    arguments: Arc<Serve>,
    listeners: Vec<TcpListener>,
    config: Config,
    otlp: &OtlpSettings,
    instance: &str,
    telemetry: Arc<Telemetry>,
) -> anyhow::Result<()> {
    let limits = config.limits.clone();
    let texts = Arc::new(LiveTexts::new(texts(&config)));
    let web = arguments.web(&telemetry)?;
    let (reloader, requests) = Reloader::new();
    let mut state = ExposeState::new(Arc::clone(&telemetry), &limits, Timestamp::now())
        .showing(Arc::clone(&texts))
        .guarded_by(Arc::clone(&web));
    if arguments.enable_lifecycle {
        state = state.reloaded_by(reloader.clone());
    }
    let state = Arc::new(state);

    let stop = CancellationToken::new();
    let open = {
        let (storage, names) = (config.storage.clone(), config.limits.app_names);
        let runtime = Handle::current();
        move || store::open(&storage, names, &runtime)
    };
    let watcher = Watcher::new(config.clone(), Arc::clone(&telemetry), open);
    ConfigLoaded { at: Timestamp::now(), sources: None }.emit(&telemetry);
    let senders = Senders::new(otlp, instance, &limits, &texts, watcher.clone(), &telemetry)?;
    let (moments, feed) = tokio::sync::watch::channel(None);
    let publish = Publisher {
        state: Arc::clone(&state),
        telemetry: Arc::clone(&telemetry),
        traces: otlp.traces.clone(),
        moments,
    };
    let mut serving = JoinSet::new();
    for listener in listeners {
        let stop = stop.clone().cancelled_owned();
        serving.spawn(expose::run(listener, Arc::clone(&state), stop));
    }
    serving.spawn(Arc::clone(&web).watch(stop.clone()));
    let reload = Reload {
        serve: arguments,
        watcher: watcher.clone(),
        web,
        texts,
        telemetry: Arc::clone(&telemetry),
        config,
    };
    let hangup = signal(SignalKind::hangup()).context("cannot wait for SIGHUP")?;
    serving.spawn(reload.run(hangup, requests, stop.clone()));
    let sending = tokio::spawn(senders.run(feed, stop.clone()));
    let publish = move |publication| publish.publish(publication);
    let mut watching = tokio::spawn(watcher.run(stop.clone(), publish));
    let ended = tokio::select! {
        signal = stop_signal() => {
            ShutdownStarted { signal: signal? }.emit(&telemetry);
            stop.cancel();
            (&mut watching).await
        }
        ended = &mut watching => ended,
    };
    stop.cancel();
    while let Some(served) = serving.join_next().await {
        served.context("the web server failed")?;
    }
    drop(reloader);
    sending.await.context("what sends by OTLP failed")?;
    ended.context("the watcher failed")?.context("cannot talk to the sources")
}

/// Makes what is served and sent of what the watcher holds.
struct Publisher {
    state: Arc<ExposeState>,
    telemetry: Arc<Telemetry>,
    /// Which traces are sent, if any are.
    traces: Option<TracesSettings>,
    moments: tokio::sync::watch::Sender<Option<Arc<Moment>>>,
}

impl Publisher {
    fn publish(&self, publication: Publication) {
        let now = Timestamp::now();
        let Publication { mut runs, names, ready, limits } = publication;
        if let Some(traces) = &self.traces {
            for view in &mut runs {
                view.trace_id = spans::trace_of(&view.application, traces, now);
            }
        }
        let snapshot = metrics::build(&runs, &names, &self.telemetry.snapshot(), &limits, now);
        for (reason, count) in snapshot.dropped() {
            SeriesDropped { reason, count: *count }.emit(&self.telemetry);
        }
        let (snapshot, runs) = (Arc::new(snapshot), Arc::<[RunView]>::from(runs));
        self.state.publish(Arc::clone(&snapshot), Arc::clone(&runs), now);
        if ready {
            self.state.set_ready();
        }
        self.moments.send_replace(Some(Arc::new(Moment { snapshot, runs, ready, at: now })));
    }
}

/// Binds `host:port`, or `:port` for every address of the machine.
async fn listen(address: &str) -> anyhow::Result<TcpListener> {
    let hint = || {
        format!(
            "cannot listen on {address}: give --web.listen-address HOST:PORT that is free, for \
             example 127.0.0.1:10404"
        )
    };
    match address.strip_prefix(':') {
        None => TcpListener::bind(address).await.with_context(hint),
        Some(port) => match TcpListener::bind(format!("[::]:{port}")).await {
            Ok(listener) => Ok(listener),
            // A machine without IPv6.
            Err(_) => TcpListener::bind(format!("0.0.0.0:{port}")).await.with_context(hint),
        },
    }
}

async fn stop_signal() -> anyhow::Result<&'static str> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for SIGINT")?;
    Ok(tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    })
}
