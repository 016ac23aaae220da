// What the rules have in common: labels, conditions, and the texts of alerts.
//
// Two exporters that watch the same applications, or one that was restarted, must not
// make two alerts of one thing. So expressions keep the labels that name an application
// and no others, and join with `and` and `unless`, which never fail for want of a
// one-to-one match.
{
  of(config)::
    local keep = config.keepLabels;
    local list(labels) = std.join(', ', labels);

    // Labels of a run, of a run with its name, of an application over its attempts, of a
    // name, of a cluster.
    local run = ['spark_cluster', 'app_id', 'attempt_id'] + keep;
    local labels = {
      run: list(run),
      app: list(run + ['app_name']),
      attempts: list(['spark_cluster', 'app_id'] + keep),
      name: list(['spark_cluster', 'app_name'] + keep),
      cluster: list(['spark_cluster'] + keep),
      exporter: list(['job', 'instance'] + keep),
      // Of daemons that divide the runs among them.
      shards: list(['job', 'namespace'] + keep),
      target: list(['spark_cluster', 'target'] + keep),
      sel: if config.selector == '' then '' else config.selector + ', ',
      // Of sources: those that should be there.
      staying: if config.targetsThatComeAndGo == '' then '' else 'target!~"' + config.targetsThatComeAndGo + '"',
    };

    // An expression with %(run)s and its like filled in, without empty braces.
    local promql(text, more={}) =
      std.strReplace(std.strReplace(text % (labels + config + more), '{}', ''), ', }', '}');

    // Series of the run, name or cluster that an alert is about, in a template's query:
    // OWN stands for their matchers.
    local own(of) =
      local verb(i) = '%[' + (i + 1) + ']q';
      local matchers = std.join(', ', [of[i] + '=' + verb(i) for i in std.range(0, std.length(of) - 1)]);
      local arguments = std.join(' ', ['$labels.' + label for label in of]);
      function(query)
        'printf `' + std.strReplace(promql(query), 'OWN', matchers) + '` ' + arguments + ' | query';

    local ofRun = own(run);
    local ofRule = own(run + ['rule']);
    local ofName = own(['spark_cluster', 'app_name'] + keep);
    local ofCluster = own(['spark_cluster'] + keep);

    // Text that stands only where the query has an answer: `.` is its first sample.
    local where(query, text) = '{{ with ' + query + ' }}{{ with . | first }}' + text + '{{ end }}{{ end }}';
    local whereElse(query, text, otherwise) = '{{ with ' + query + ' }}{{ with . | first }}' + text + '{{ end }}{{ else }}' + otherwise + '{{ end }}';
    local seconds = '{{ .Value | humanizeDuration }}';

    // The finding that explains best why a run failed, over all runs of a query: most
    // often told, and of those the one nearest to the cause.
    local why(of, more='') =
      local rules = ['memory', 'executor_lost', 'task_failures', 'application_failed', 'job_failed'];
      of('topk(1, ' + std.join(' or ', [
        'count by (rule, cause) (spark_finding{%(sel)srule="' + rules[i] + '", ' + more + 'severity=~"warning|critical", OWN}) + 0.' + (std.length(rules) - i)
        for i in std.range(0, std.length(rules) - 1)
      ]) + ')');

    // A value in a path or in a query of a URL.
    local inPath(label) = '{{ reReplaceAll "[+]" "%20" ($labels.' + label + ' | urlquery) }}';
    local inQuery(label) = '{{ $labels.' + label + ' | urlquery }}';
    local query(labels) = std.join('&', ['var-' + label + '=' + inQuery(label) for label in labels]);

    {
      labels:: labels,
      indent(text):: '  ' + std.strReplace(std.rstripChars(text, '\n'), '\n', '\n  ') + '\n',
      promql:: promql,
      ofRun:: ofRun,
      ofRule:: ofRule,
      ofName:: ofName,
      ofCluster:: ofCluster,
      where:: where,
      whereElse:: whereElse,
      why:: why,
      seconds:: seconds,

      // The run as people call it.
      who:: '{{ $labels.app_name }} ({{ $labels.app_id }}{{ with $labels.attempt_id }}, attempt {{ . }}{{ end }}) in {{ $labels.spark_cluster }}',

      // Not of runs that ended long ago. A run that was lost has no end: what is known of
      // it is as old as `read.stale_after` when it is found to be lost.
      recent:: promql(|||
        unless on (%(run)s) (
          time() - spark_application_end_timestamp_seconds{%(sel)s} > %(newsFor)d
        )
        unless on (%(run)s) (
          time() - spark_application_observed_timestamp_seconds{%(sel)s} > %(lostFor)d
          and on (%(run)s) spark_application_state{%(sel)sstate="running"} == 0
        )
      |||, { lostFor: config.staleAfter + 2 * config.newsFor }),

      // Not of an attempt after which another one began.
      latestAttempt:: promql(|||
        unless on (%(run)s) (
          max by (%(run)s) (spark_application_start_timestamp_seconds{%(sel)s})
            < on (%(attempts)s) group_left ()
          max by (%(attempts)s) (spark_application_start_timestamp_seconds{%(sel)s})
        )
      |||),

      running:: promql(|||
        and on (%(run)s) spark_application_state{%(sel)sstate="running"} == 1
      |||),

      // Only of clusters of which everything is seen, by exporters that have settled:
      // what is not seen may have happened. (Logs that wait to be read are no reason: the
      // newest come first.)
      seen:: promql(|||
        unless on (%(cluster)s) (spark_exporter_target_up{%(sel)s%(staying)s} == 0)
        unless on () (spark_exporter_applications_skipped{%(sel)sreason="limit"} > 0)
        unless on () (time() - spark_exporter_start_timestamp_seconds{%(sel)s} < %(settleFor)d)
      |||),

      // One alert a run and rule, however many of its stages are ill; one a run where
      // several rules tell of the same thing.
      finding(matchers, severities):: promql(|||
        max by (%(by)s) (
          spark_finding{%(sel)s%(matchers)s, severity=~"%(severities)s"}
        )
      |||, {
        matchers: matchers,
        severities: severities,
        by: labels.app + (if std.startsWith(matchers, 'rule=~') then '' else ', rule'),
      }),

      // An alert, as its entry in the configuration wants it: a list of none or one.
      alert(name, expr, summary, description, links={})::
        local own = config.alerts[name];
        if !own.enabled then [] else [{
          alert: name,
          expr: std.rstripChars(expr, '\n'),
          'for': own['for'],
          [if 'keep_firing_for' in own then 'keep_firing_for']: own.keep_firing_for,
          labels: { severity: own.severity } + config.labels + (if 'labels' in own then own.labels else {}),
          annotations: {
            summary: summary,
            description: description,
            runbook_url: config.runbookUrl + name + '.md',
          } + links + config.annotations + (if 'annotations' in own then own.annotations else {}),
        }],

      // Where to look: the dashboard and the exporter's own report of the run.
      runLinks(rule=''):: {
        dashboard_url: config.grafanaUrl + '/d/spark-exporter-application/spark-application?' + query(['spark_cluster', 'app_name', 'app_id', 'attempt_id'])
                       + '{{ with ' + ofRun('min(spark_application_start_timestamp_seconds{%(sel)sOWN})')
                       + ' }}&from={{ . | first | value | printf "%.0f" }}000&to=now{{ end }}',
        report_url: config.exporterUrl + '/applications/' + inPath('spark_cluster') + '/' + inPath('app_id')
                    + '{{ if $labels.attempt_id }}/' + inPath('attempt_id') + '{{ end }}'
                    + (if rule == '' then '' else '#' + rule),
      },
      streamLinks(rule=''):: self.runLinks(rule) + {
        dashboard_url: config.grafanaUrl + '/d/spark-exporter-streaming/spark-streaming?' + query(['spark_cluster', 'app_id']),
      },
      nameLinks:: {
        dashboard_url: config.grafanaUrl + '/d/spark-exporter-job/spark-job?' + query(['spark_cluster', 'app_name']),
      },
      clusterLinks:: {
        dashboard_url: config.grafanaUrl + '/d/spark-exporter-fleet/spark-fleet?' + query(['spark_cluster']),
      },
      exporterLinks:: {
        dashboard_url: config.grafanaUrl + '/d/spark-exporter-exporter/spark-exporter',
      },
    },
}
