// How applications end: one run, a job by its name, many at once.
local lib = import '../lib.libsonnet';

{
  local config = $._config,
  local l = lib.of(config),

  // Failed: the driver's exit code says so, or (Spark before 4.0 writes none) a job
  // failed and nothing came after it. People's own sessions are judged by the exit code
  // alone: their last statement may well be one that failed.
  local failed = l.promql(|||
    (
        spark_application_state{%(sel)sstate="failed"} == 1
      or
        spark_finding{%(sel)srule=~"job_failed|application_failed", severity="critical"}
          unless on (%(run)s) spark_application_info{%(sel)skind="interactive"}
          unless on (%(run)s) spark_application_state{%(sel)sstate=~"running|lost"} == 1
    )
  |||),

  local endedWithin(span) = l.promql(|||
    and on (%(run)s) time() - spark_application_end_timestamp_seconds{%(sel)s} < %(span)d
  |||, { span: span }),

  local lastSuccess = l.where(
    l.ofName('max(spark_application_runs_last_success_timestamp_seconds{%(sel)sOWN})'),
    ' The job last succeeded at {{ .Value | humanizeTimestamp }}.'
  ),

  // A job that has not succeeded when it was due.
  local overdue(name, basis, summary) = l.alert(
    name,
    l.promql(|||
      time() - max by (%(name)s) (spark_application_runs_success_due_timestamp_seconds{%(sel)sbasis="%(basis)s"}) > 0
    |||, { basis: basis }) + l.seen,
    summary,
    '{{ $labels.app_name }} in {{ $labels.spark_cluster }}: a run that ends well is overdue by {{ $value | humanizeDuration }}.'
    + lastSuccess
    + l.where(l.ofName('max(spark_application_runs_success_interval_seconds{%(sel)sOWN})'), ' It usually succeeds every ' + l.seconds + '.')
    + '{{ with ' + l.ofName('min(spark_application_start_timestamp_seconds{%(sel)s} and on (%(run)s) spark_application_state{%(sel)sstate="running"} == 1 and on (%(run)s) spark_application_info{%(sel)sOWN})')
    + ' }}{{ with . | first }} A run is there since {{ .Value | humanizeTimestamp }} and has not ended.{{ end }}{{ else }} No run of it is there now.{{ end }}',
    l.nameLinks
  ),

  prometheusAlerts+:: {
    groups+: [{
      name: 'spark-applications',
      rules:
        l.alert(
          'SparkApplicationFailed',
          l.promql('max by (%(app)s) (spark_application_info{%(sel)s})\nand on (%(run)s) ') + failed
          + l.latestAttempt + l.recent,
          'A Spark application failed.',
          l.who + ' failed'
          + l.where(l.ofRun('max(spark_application_duration_seconds{%(sel)sOWN})'), ' after ' + l.seconds)
          + l.where(l.ofRun('max(spark_application_exit_code{%(sel)sOWN})'), ', exit code {{ .Value }}')
          + '.'
          + l.where(
            l.why(l.ofRun, 'cause!="", '),
            ' The diagnosis names {{ .Labels.cause }} ({{ .Labels.rule }}).'
          )
          + l.where(
            l.ofName('max(spark_application_runs_failures_in_a_row{%(sel)sOWN}) > 1'),
            ' Failures of this job in a row: {{ .Value }}.'
          )
          + lastSuccess
          + ' The report has the reason and what to change.',
          l.runLinks('')
        )
        + l.alert(
          'SparkApplicationLost',
          l.promql(|||
            max by (%(app)s) (spark_application_info{%(sel)skind!="interactive"})
            and on (%(run)s) spark_application_state{%(sel)sstate="lost"} == 1
            unless on (%(run)s) spark_application_data_quality{%(sel)sreason="databricks"} == 1
          |||) + l.latestAttempt + l.recent,
          'A Spark application went away without an end.',
          l.who + ' wrote no end'
          + l.where(l.ofRun('max(spark_application_observed_timestamp_seconds{%(sel)sOWN})'), ', and nothing since {{ .Value | humanizeTimestamp }}')
          + '. Its driver was killed, or its machine went.'
          + l.where(l.ofRun('count by (cause) (spark_finding{%(sel)srule="memory", cause="heap_oom", OWN})'), " The driver's heap was full when it last told.")
          + lastSuccess,
          l.runLinks('')
        )
        + l.alert(
          'SparkApplicationKeepsFailing',
          l.promql(|||
            max by (%(name)s) (
              spark_application_runs_failures_in_a_row{%(sel)sapp_name!~"_unnamed|_other"}
            ) >= %(failuresInARow)d
            and on (%(name)s) time() - spark_application_runs_last_end_timestamp_seconds{%(sel)s} < 86400
          |||),
          'The latest runs of a Spark job all failed.',
          '{{ $labels.app_name }} in {{ $labels.spark_cluster }}: its latest {{ $value }} runs all failed.'
          + lastSuccess
          + l.where(
            l.why(l.ofName),
            ' Of the runs still shown, most say {{ .Labels.rule }}{{ with .Labels.cause }} ({{ . }}){{ end }}.'
          ),
          l.nameLinks
        )
        // What somebody said pages; what was learned may be wrong on a holiday.
        + overdue('SparkApplicationNoSuccess', 'configured', 'A Spark job has not succeeded within the time that was set for it.')
        + overdue('SparkApplicationOverdue', 'learned', 'A Spark job has not succeeded for longer than is usual.')
        + l.alert(
          'SparkSubmissionFailed',
          l.promql(|||
            max by (%(cluster)s, operator, k8s_namespace_name, submission, state) (
                time() - spark_exporter_kubernetes_submission_timestamp_seconds{%(sel)sstate="submission_failed"} < %(newsFor)d
              or
                time() - spark_exporter_kubernetes_submission_timestamp_seconds{%(sel)sstate="submitted"} > %(submissionWaitsFor)d
            )
          |||),
          'A SparkApplication got no driver.',
          '{{ $labels.submission }} in the namespace {{ $labels.k8s_namespace_name }} ({{ $labels.spark_cluster }}) '
          + '{{ if eq $labels.state "submission_failed" }}could not be submitted{{ else }}waits for its driver{{ end }} since {{ $value | humanizeDuration }}. '
          + 'There is no run to show: kubectl describe sparkapplication has what its operator says.',
          l.clusterLinks
        )
        + l.alert(
          'SparkManyApplicationsFail',
          local jobs(of) = l.promql(|||
            group by (%(name)s) (
              spark_application_info{%(sel)s}
          |||) + of;
          local failing = jobs('  and on ' + l.promql('(%(run)s) ') + std.strReplace(failed, '\n', '\n  ') + endedWithin(1800)) + ')\n'
                          + l.promql('unless on (%(name)s) (\n  spark_application_info{%(sel)s}\n  and on (%(run)s) spark_application_state{%(sel)sstate="succeeded"} == 1\n') + l.indent(endedWithin(1800)) + ')\n';
          l.promql('count by (%(cluster)s) (\n') + l.indent(failing) + ') >= %d\n' % config.failingJobs
          + l.promql('and\ncount by (%(cluster)s) (\n') + l.indent(failing) + ')\n'
          + l.promql('> 0.5 * count by (%(cluster)s) (\n') + l.indent(jobs(l.indent(endedWithin(1800))) + ')\n') + ')\n',
          'Many Spark jobs of one cluster fail at the same time.',
          'In {{ $labels.spark_cluster }} {{ $value }} jobs failed within half an hour and did not succeed meanwhile: more than half of those that ended. What they share (storage, metastore, network, the resource manager, a library) is likelier to be broken than each of them.'
          + l.where(
            l.why(l.ofCluster),
            ' Most say {{ .Labels.rule }}{{ with .Labels.cause }} ({{ . }}){{ end }}.'
          ),
          l.clusterLinks
        ),
    }],
  },
}
