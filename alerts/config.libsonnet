// What can be set. Lay your own over it:
//
//   (import 'mixin.libsonnet') + { _config+:: { grafanaUrl: 'https://grafana.example.org' } }
//
// docs/alerts.md has examples. Thresholds of the diagnosis are not here: they stand in
// the exporter's own configuration (docs/diagnostics.md).
{
  _config+:: {
    // The exporter's `job` label: which `up` series are its own.
    exporterJob: 'spark-exporter',

    // More matchers for every series of Spark and of the exporter, for example
    // 'env="prod"': several installations in one Prometheus, Thanos or Mimir.
    selector: '',

    // Labels that alerts keep beside their own, for example ['cluster', 'env']. All
    // series of the exporter must have them, or none (an absent label is an empty one).
    keepLabels: [],

    // What links begin with. Empty: paths, as for an Alertmanager template that puts the
    // address before them (alerts/templates/).
    grafanaUrl: '',
    exporterUrl: '',
    runbookUrl: 'https://github.com/spark-exporter/spark-exporter/blob/main/docs/runbooks/',

    // For how long after its end a finished run can raise an alert. A first start or a
    // restart reads old runs again; they are no news.
    newsFor: 3600,

    // The exporter's `read.stale_after`: a log that nobody wrote for so long is of a lost
    // run. What is known of such a run is at least as old when it is called lost.
    staleAfter: 3600,

    // Of jobs by name: no verdict for so long after the exporter started.
    settleFor: 600,

    // SparkApplicationKeepsFailing: so many runs in a row, the latest within a day.
    failuresInARow: 3,

    // SparkSubmissionFailed: for how long a SparkApplication may wait for its driver.
    submissionWaitsFor: 900,

    // SparkManyApplicationsFail: so many jobs failed within half an hour, more than half
    // of those that ended.
    failingJobs: 5,

    // SparkStreamingDown: for how long a stream that ended is missed.
    streamMissedFor: 6 * 3600,

    // Names under which people try streams out: nobody misses them when the session ends.
    streamsNotMissed: 'PySparkShell|Spark shell|SparkR|Zeppelin|livy-session',

    // Targets that may be down, as a regular expression of `target`: drivers that come
    // and go, for example 'http://driver-.*:4040'.
    targetsThatComeAndGo: '',

    // SparkExporterDataStale: how old the newest numbers may be.
    staleSnapshot: 300,
    staleRun: 900,

    // Labels and annotations for every alert, for example { team: 'data' }.
    labels: {},
    annotations: {},

    // Each alert: enabled, for, severity; for alerts made of findings also which
    // severities of a finding raise it. `labels`, `annotations` and `keep_firing_for` can
    // be added to each. What is about things that go on is kept for a while after it has
    // gone, so that a restart of the exporter does not end and raise it again.
    alerts: {
      // How runs end.
      SparkApplicationFailed: { enabled: true, 'for': '2m', severity: 'warning' },
      SparkApplicationLost: { enabled: true, 'for': '2m', severity: 'warning' },
      SparkApplicationKeepsFailing: { enabled: true, 'for': '2m', severity: 'warning' },
      SparkApplicationNoSuccess: { enabled: true, 'for': '5m', keep_firing_for: '5m', severity: 'critical' },
      SparkApplicationOverdue: { enabled: true, 'for': '5m', keep_firing_for: '5m', severity: 'warning' },
      SparkSubmissionFailed: { enabled: true, 'for': '2m', severity: 'warning' },
      SparkManyApplicationsFail: { enabled: true, 'for': '2m', severity: 'critical' },

      // Streams.
      SparkStreamingDown: { enabled: true, 'for': '5m', keep_firing_for: '5m', severity: 'critical' },
      SparkStreamingBehind: { enabled: true, 'for': '5m', keep_firing_for: '5m', severity: 'warning', findings: 'warning|critical' },
      SparkStreamingStaysBehind: { enabled: true, 'for': '30m', keep_firing_for: '5m', severity: 'critical', findings: 'warning|critical' },

      // Applications that run and do not get on.
      SparkStageStuck: { enabled: true, 'for': '5m', keep_firing_for: '5m', severity: 'critical', findings: 'warning|critical' },
      SparkApplicationWaitsForExecutors: { enabled: true, 'for': '3m', keep_firing_for: '5m', severity: 'warning', findings: 'warning|critical' },
      SparkApplicationIdle: { enabled: true, 'for': '5m', keep_firing_for: '5m', severity: 'warning', findings: 'warning|critical' },

      // What went wrong in a run.
      SparkOutOfMemory: { enabled: true, 'for': '1m', severity: 'warning', findings: 'warning|critical' },
      SparkExecutorLost: { enabled: true, 'for': '1m', severity: 'warning', findings: 'warning|critical' },
      SparkTaskFailures: { enabled: true, 'for': '1m', severity: 'warning', findings: 'warning|critical' },
      SparkStageRetries: { enabled: true, 'for': '1m', severity: 'warning', findings: 'warning|critical' },

      // What made a run slow or dear.
      SparkApplicationRegression: { enabled: true, 'for': '1m', severity: 'warning', findings: 'critical' },
      SparkDataSkew: { enabled: true, 'for': '2m', severity: 'warning', findings: 'critical' },
      SparkStraggler: { enabled: true, 'for': '2m', severity: 'warning', findings: 'critical' },
      SparkSpill: { enabled: true, 'for': '2m', severity: 'warning', findings: 'critical' },
      SparkGcPressure: { enabled: true, 'for': '2m', severity: 'warning', findings: 'critical' },
      SparkSchedulingDelay: { enabled: true, 'for': '2m', severity: 'warning', findings: 'critical' },
      SparkDriverGap: { enabled: true, 'for': '2m', severity: 'warning', findings: 'critical' },
      SparkIdleCores: { enabled: true, 'for': '2m', severity: 'info', findings: 'warning|critical' },
      SparkCostlyFinding: { enabled: true, 'for': '2m', severity: 'warning', findings: 'critical' },

      // The exporter itself.
      SparkExporterDown: { enabled: true, 'for': '10m', severity: 'critical' },
      SparkExporterRestarting: { enabled: true, 'for': '5m', severity: 'warning' },
      SparkExporterTargetDown: { enabled: true, 'for': '10m', severity: 'warning' },
      SparkExporterBlind: { enabled: true, 'for': '30m', severity: 'critical' },
      SparkExporterDriversSilent: { enabled: true, 'for': '15m', severity: 'warning' },
      SparkExporterDataStale: { enabled: true, 'for': '5m', severity: 'warning' },
      SparkExporterApplicationsSkipped: { enabled: true, 'for': '30m', severity: 'warning' },
      SparkExporterEventLogsUnreadable: { enabled: true, 'for': '0m', severity: 'warning' },
      SparkExporterSeriesDropped: { enabled: true, 'for': '15m', severity: 'warning' },
      SparkExporterConfigReloadFailed: { enabled: true, 'for': '5m', severity: 'warning' },
      SparkExporterWebConfigReloadFailed: { enabled: true, 'for': '5m', severity: 'warning' },
      SparkExporterStorageDown: { enabled: true, 'for': '5m', severity: 'warning' },
      SparkExporterStoragePending: { enabled: true, 'for': '30m', severity: 'warning' },
      SparkExporterOtlpFailing: { enabled: true, 'for': '15m', severity: 'warning' },
      SparkExporterAppNamesOverflowed: { enabled: true, 'for': '0m', severity: 'warning' },
      SparkExporterShardsWrong: { enabled: true, 'for': '15m', severity: 'warning' },
      SparkExporterIdentityCollisions: { enabled: true, 'for': '0m', severity: 'warning' },
    },
  },
}
