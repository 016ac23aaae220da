// The exporter itself: without it all others are silent.
local lib = import '../lib.libsonnet';

{
  local config = $._config,
  local l = lib.of(config),
  local who = '{{ $labels.instance }}',
  local alert(name, expr, summary, description) = l.alert(name, l.promql(expr), summary, description, l.exporterLinks),

  prometheusAlerts+:: {
    groups+: [{
      name: 'spark-exporter',
      rules:
        alert(
          'SparkExporterDown',
          |||
            up{%(sel)sjob="%(exporterJob)s"} == 0
            or
            absent(up{%(sel)sjob="%(exporterJob)s"})
          |||,
          'Prometheus cannot scrape spark-exporter.',
          '{{ with $labels.instance }}spark-exporter at {{ . }} cannot be scraped{{ else }}No target with job="' + config.exporterJob + '" is scraped{{ end }}: of its Spark applications nothing is known, and no alert about them can come.'
        )
        + alert(
          'SparkExporterRestarting',
          |||
            changes(spark_exporter_start_timestamp_seconds{%(sel)s}[30m]) > 2
          |||,
          'spark-exporter restarts again and again.',
          who + ' started {{ $value }} times in half an hour. Without a store on disk its totals by name begin at 0 each time.'
        )
        + alert(
          'SparkExporterTargetDown',
          'max by (%(target)s) (spark_exporter_target_up{%(sel)s%(staying)s}) == 0',
          'spark-exporter cannot reach a source of Spark applications.',
          '{{ $labels.target }} (cluster {{ $labels.spark_cluster }}) does not answer'
          + l.where(
            'printf `max(' + l.promql('spark_exporter_target_last_success_timestamp_seconds{%(sel)sspark_cluster=') + '%q, target=%q})` $labels.spark_cluster $labels.target | query',
            '; it last did at {{ .Value | humanizeTimestamp }}'
          )
          + '. Its applications are not seen; alerts about jobs that are due are held back for this cluster.'
        )
        + alert(
          'SparkExporterBlind',
          'max by (%(cluster)s) (spark_exporter_target_up{%(sel)s%(staying)s}) == 0',
          'spark-exporter reaches no source of a whole cluster.',
          'Of the Spark applications of {{ $labels.spark_cluster }} nothing is known: none of its sources answers.'
        )
        + alert(
          'SparkExporterDriversSilent',
          // One driver may well have no UI. Most of them have one.
          |||
            max by (%(cluster)s) (spark_exporter_kubernetes_drivers{%(sel)sstate="silent"})
            >
            max by (%(cluster)s) (spark_exporter_kubernetes_drivers{%(sel)sstate="answering"})
          |||,
          'Most Spark drivers on Kubernetes do not answer spark-exporter.',
          '{{ $value }} drivers of {{ $labels.spark_cluster }} have not answered for minutes although their pods run, more than those that do: of their applications nothing is known while they run. A NetworkPolicy keeps spark-exporter out, or their UI is off.'
        )
        + alert(
          'SparkExporterDataStale',
          |||
            max by (%(exporter)s) (time() - spark_exporter_snapshot_timestamp_seconds{%(sel)s}) > %(staleSnapshot)d
            or
            max by (%(exporter)s) (
              time() - spark_application_observed_timestamp_seconds{%(sel)s}
              and on (%(run)s, %(exporter)s) spark_application_state{%(sel)sstate="running"} == 1
              and on (%(run)s, %(exporter)s) spark_application_info{%(sel)ssource="driver"}
            ) > %(staleRun)d
          |||,
          'What spark-exporter shows is old.',
          who + ' shows numbers that are {{ $value | humanizeDuration }} old: its snapshot, or those of an application that it reads from its driver.'
        )
        + alert(
          'SparkExporterApplicationsSkipped',
          |||
            max by (%(exporter)s, reason) (
              min_over_time(spark_exporter_applications_skipped{%(sel)sreason=~"limit|in_progress"}[10m])
            ) > 0
            or
            max by (%(exporter)s, reason) (
              min_over_time(spark_exporter_applications_skipped{%(sel)sreason="waiting"}[1h])
              unless
              delta(spark_exporter_applications_skipped{%(sel)sreason="waiting"}[1h]) < 0
            ) > 0
          |||,
          'spark-exporter leaves applications out.',
          who + ' has no series of {{ $value }} applications, reason: {{ $labels.reason }}. '
          + '{{ if eq $labels.reason "limit" }}More are there than limits.applications.'
          + '{{ else if eq $labels.reason "in_progress" }}More are running than limits.followed_logs.'
          + '{{ else }}They have waited to be read for an hour, and get no fewer.{{ end }}'
        )
        + alert(
          'SparkExporterEventLogsUnreadable',
          |||
            max by (%(exporter)s, reason) (
              increase(spark_exporter_event_log_read_failures_total{%(sel)sreason!~"not_an_event_log|no_events"}[1h])
            ) > 0
            or
            max by (%(exporter)s, reason) (
              delta(spark_exporter_applications_skipped{%(sel)sreason="unreadable"}[1h])
              unless on (%(exporter)s)
              increase(spark_exporter_event_log_read_failures_total{%(sel)sreason!~"not_an_event_log|no_events"}[1h]) > 0
              unless on (%(exporter)s)
              time() - spark_exporter_start_timestamp_seconds{%(sel)s} < 4000
            ) > 0
          |||,
          'spark-exporter could not read event logs.',
          who + ' could not read {{ $value | printf "%.0f" }} event logs, or runs of a History Server, in the last hour, reason: {{ $labels.reason }}. They are in no number. Its own log names them.'
        )
        + alert(
          'SparkExporterSeriesDropped',
          |||
            max by (%(exporter)s, reason) (
              increase(spark_exporter_series_dropped_total{%(sel)sreason!~"stages_limit|executors_limit|streaming_queries_limit|sql_executions_limit|findings_limit"}[15m])
            ) > 0
          |||,
          'spark-exporter leaves series out.',
          who + ' leaves out series in each of its snapshots, reason: {{ $labels.reason }}. '
          + '{{ if eq $labels.reason "series_limit" "targets_limit" }}It has reached a limit: whole applications, names or targets have no series, and alerts do not see them.'
          + '{{ else }}Two things have the same labels once these are cut to limits.label_length.{{ end }}'
        )
        + alert(
          'SparkExporterConfigReloadFailed',
          |||
            spark_exporter_config_last_reload_successful{%(sel)s} == 0
          |||,
          'spark-exporter did not take its new configuration.',
          who + ' read its configuration again and could not use it: the one before is still in force, and the next restart will fail. Its log says what is wrong.'
        )
        + alert(
          'SparkExporterWebConfigReloadFailed',
          |||
            spark_exporter_web_config_last_reload_successful{%(sel)s} == 0
          |||,
          'spark-exporter did not take its new certificates or users.',
          who + ' cannot use its web configuration file, or a certificate that it names, since that changed: what was there before is still in force, an old certificate until it expires. Its log says what is wrong.'
        )
        + alert(
          'SparkExporterStorageDown',
          |||
            spark_exporter_storage_up{%(sel)s} == 0
          |||,
          'The store of spark-exporter cannot be used.',
          who + ' can neither read nor write its store. Series by name are left out, and alerts that rest on them (no success, keeps failing, stream down) are silent.'
        )
        + alert(
          'SparkExporterStoragePending',
          |||
            min_over_time(spark_exporter_storage_pending_runs{%(sel)s}[15m]) > 0
          |||,
          'Runs wait to be written to the store of spark-exporter.',
          '{{ $value }} runs that ' + who + ' has read are not in its store yet, and not in the totals by name.'
        )
        + alert(
          'SparkExporterOtlpFailing',
          // One request that goes wrong is followed by one that makes up for
          // it: of a trouble that lasts there is one within any ten minutes.
          |||
            sum without (outcome) (
              increase(spark_exporter_otlp_requests_total{outcome=~"refused|given_up", %(sel)s}[10m])
            ) > 0
          |||,
          'spark-exporter cannot deliver by OTLP.',
          'The back end that ' + who + ' sends {{ $labels.signal }} to by OTLP refuses requests, or takes none: {{ $value | printf "%.0f" }} failed in the last ten minutes. Whoever looks at {{ $labels.signal }} there misses some.'
        )
        + alert(
          'SparkExporterAppNamesOverflowed',
          |||
            increase(spark_exporter_app_names_overflowed_total{%(sel)s}[1h]) > 0
          |||,
          'spark-exporter has more names of applications than it may.',
          who + ' added up {{ $value | printf "%.0f" }} runs as _other in the last hour: there are limits.app_names names already. Jobs under _other have no alerts of their own.'
        )
        + alert(
          'SparkExporterShardsWrong',
          // In order: they do not agree how many there are; as many are there; each number
          // is there.
          |||
            max by (%(shards)s) (spark_exporter_shards{%(sel)s})
            > min by (%(shards)s) (spark_exporter_shards{%(sel)s})
            or
            max by (%(shards)s) (spark_exporter_shards{%(sel)s} > 1)
            != count by (%(shards)s) (spark_exporter_shards{%(sel)s} > 1)
            or
            max by (%(shards)s) (spark_exporter_shards{%(sel)s} > 1)
            != count by (%(shards)s) (
              count_values by (%(shards)s) (
                "shard",
                spark_exporter_shard_ordinal{%(sel)s} and on (%(exporter)s) spark_exporter_shards{%(sel)s} > 1
              )
            )
          |||,
          'The shards of spark-exporter do not make a whole.',
          'Daemons of the job {{ $labels.job }}{{ with $labels.namespace }} in {{ . }}{{ end }} divide the runs into {{ $value }} shards'
          + l.where(
            'printf `count(' + l.promql('spark_exporter_shards{%(sel)sjob=') + '%q, namespace=%q})` $labels.job $labels.namespace | query',
            '; {{ .Value }} are scraped'
          )
          + '. One is missing or there twice, or they do not agree how many there are: applications of some names are shown by nobody, or twice.'
        )
        + alert(
          'SparkExporterIdentityCollisions',
          |||
            increase(spark_exporter_identity_collisions_total{%(sel)s}[1h]) > 0
          |||,
          'Different Spark applications carry the same id.',
          who + ' saw {{ $value | printf "%.0f" }} runs in the last hour that carry the id of another run in the same cluster. Give their sources different cluster names.'
        ),
    }],
  },
}
