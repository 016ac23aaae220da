// Applications that should never end, and queries that do not keep up.
local lib = import '../lib.libsonnet';

{
  local config = $._config,
  local l = lib.of(config),

  local behind(name, summary, what) = l.alert(
    name,
    l.finding('rule="streaming_behind"', config.alerts[name].findings) + l.running,
    summary,
    l.who + ': ' + what
    + l.where(
      l.ofRun('topk(1, max by (query_id) (spark_streaming_query_backlog_offsets{%(sel)sOWN}))'),
      ' What waits in the source of query {{ .Labels.query_id }}: {{ .Value | humanize }} (of Kafka: records).'
    )
    + l.where(
      l.ofRun('topk(1, max by (query_id) (spark_streaming_query_batch_duration_seconds{%(sel)sOWN}))'),
      ' Its longest latest batch took ' + l.seconds + '.'
    )
    + l.where(l.ofRun('sum(max by (query_id) (spark_streaming_query_state_rows{%(sel)sOWN})) > 0'), ' Rows of state: {{ .Value | humanize }}.')
    + ' More cores help only where its tasks are more than its cores: look at partitions of the source, skew, and state that grows.',
    l.streamLinks('streaming_behind')
  ),

  prometheusAlerts+:: {
    groups+: [{
      name: 'spark-streaming',
      rules:
        l.alert(
          'SparkStreamingDown',
          // Series of the run go after the exporter's `retention`, so it is remembered
          // here that it was a stream. Its successor has another id and the same name.
          // A run without an end is counted by name an hour after it was found to be lost;
          // until then its own state tells, as long as no other run has ended well.
          l.promql(|||
            group by (%(name)s) (
              last_over_time(spark_application_info{%(sel)skind="streaming", app_name!~"_unnamed|_other|%(streamsNotMissed)s"}[%(streamMissedFor)ds])
            )
            and on (%(name)s) (
              spark_application_runs_failures_in_a_row{%(sel)s} > 0
                and on (%(name)s) time() - spark_application_runs_last_end_timestamp_seconds{%(sel)s} < %(streamMissedFor)d
              or
              last_over_time(spark_application_info{%(sel)skind="streaming"}[1h])
                and on (%(run)s) last_over_time(spark_application_state{%(sel)sstate="lost"}[1h]) == 1
                and on (%(run)s) time() - last_over_time(spark_application_observed_timestamp_seconds{%(sel)s}[1h]) < %(lostFor)d
                unless on (%(name)s) time() - spark_application_runs_last_success_timestamp_seconds{%(sel)s} < %(lostFor)d
            )
            unless on (%(name)s) (
              spark_application_info{%(sel)s}
              and on (%(run)s) spark_application_state{%(sel)sstate="running"} == 1
            )
            unless on () (spark_exporter_applications_skipped{%(sel)sreason=~"in_progress|running_on_history_server"} > 0)
          |||, { lostFor: config.staleAfter + 2 * 3600 }) + l.seen,
          'A Spark stream ended badly and nobody started it again.',
          '{{ $labels.app_name }} in {{ $labels.spark_cluster }} is a stream, its latest run did not end well, and no run of it is there now.'
          + l.where(l.ofName('max(spark_application_runs_last_end_timestamp_seconds{%(sel)sOWN})'), ' It ended at {{ .Value | humanizeTimestamp }}.')
          + l.where(
            l.why(l.ofName),
            ' The diagnosis says {{ .Labels.rule }}{{ with .Labels.cause }} ({{ . }}){{ end }}.'
          )
          + ' Its data waits: start it again, then look for the reason.',
          l.nameLinks
        )
        + behind(
          'SparkStreamingBehind',
          'A Spark stream does not keep up.',
          'its batches take longer than its trigger, one after the other, or what waits grows.',
        )
        + behind(
          'SparkStreamingStaysBehind',
          'A Spark stream has been behind for long and does not catch up.',
          'it has been behind for ' + config.alerts.SparkStreamingStaysBehind['for'] + ' and more.',
        ),
    }],
  },
}
