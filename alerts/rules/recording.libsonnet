// Recording rules: what people ask over long ranges, by name and by cluster. Alerts and
// dashboards do not need them. Named level:metric:operations; level are the labels.
//
// Two exporters that show the same jobs (one store for both, or each its own) have the
// same counters: `max` takes one of them. Shards have each name at one owner only.
local lib = import '../lib.libsonnet';

{
  local config = $._config,
  local l = lib.of(config),
  local prefix(labels) = std.join('_', labels + config.keepLabels),
  local record(labels, name, expr) = {
    record: prefix(labels) + ':' + name,
    expr: std.rstripChars(l.promql(expr), '\n'),
  },
  local name = ['spark_cluster', 'app_name'],
  local cluster = ['spark_cluster'],

  // An increase a day by name, and over the names of a cluster.
  local day(metric, extra='') = [
    {
      local plain = std.strReplace(metric, '_total', ''),
      local labels = if extra == '' then [] else [extra],
      local more = if extra == '' then '' else ', ' + extra,
      both:: [
        record(name + labels, plain + ':increase1d',
               'max by (%(name)s' + more + ') (increase(' + metric + '{%(sel)s}[1d]))'),
        record(cluster + labels, plain + ':increase1d',
               'sum by (%(cluster)s' + more + ') (' + prefix(name + labels) + ':' + plain + ':increase1d)'),
      ],
    }.both,
  ][0],

  // A ratio of two of those, where there is anything to divide by.
  local ratio(labels, name_, above, below) =
    record(labels, name_ + ':ratio_increase1d',
           above + '\n/ on (' + (if labels == name then '%(name)s' else '%(cluster)s') + ')\n(' + below + ' > 0)'),

  local quantile(q) = record(
    name, 'spark_application_runs_duration_seconds:p%d_increase1d' % (q * 100),
    'histogram_quantile(' + q + ', max by (%(name)s, le) (increase(spark_application_runs_duration_seconds_bucket{%(sel)s}[1d])))'
  ),

  local known(level) =
    local runs = prefix(level + ['outcome']) + ':spark_application_runs:increase1d';
    local labels = if level == name then '%(name)s' else '%(cluster)s';
    {
      failed: 'sum by (' + labels + ') (' + runs + '{outcome=~"failed|lost"})',
      succeeded: 'sum by (' + labels + ') (' + runs + '{outcome="succeeded"})',
      all: 'sum by (' + labels + ') (' + runs + '{outcome=~"succeeded|failed|lost"})',
    },

  prometheusRules+:: {
    groups+: [
      {
        name: 'spark-jobs.rules',
        interval: '2m',
        rules:
          day('spark_application_runs_total', 'outcome')
          + std.flattenArrays([
            [
              ratio(level, 'spark_application_runs_failed_per_runs', known(level).failed, known(level).all),
              ratio(level, 'spark_application_runs_succeeded_per_runs', known(level).succeeded, known(level).all),
            ]
            for level in [name, cluster]
          ])
          + day('spark_application_runs_bought_core_seconds_total')
          + day('spark_application_runs_used_core_seconds_total')
          + day('spark_application_runs_wasted_core_seconds_total')
          + [
            ratio(level, 'spark_application_runs_used_per_bought_core_seconds',
                  prefix(level) + ':spark_application_runs_used_core_seconds:increase1d',
                  prefix(level) + ':spark_application_runs_bought_core_seconds:increase1d')
            for level in [name, cluster]
          ]
          + day('spark_application_runs_cost_total', 'currency')
          + day('spark_application_runs_disk_spilled_bytes_total')
          + day('spark_application_runs_input_bytes_total')
          + day('spark_application_runs_with_finding_total', 'rule')
          + [
            record(name, 'spark_application_runs_duration_seconds:mean_increase1d', |||
              max by (%(name)s) (increase(spark_application_runs_duration_seconds_sum{%(sel)s}[1d]))
              / on (%(name)s)
              (max by (%(name)s) (increase(spark_application_runs_duration_seconds_count{%(sel)s}[1d])) > 0)
            |||),
            quantile(0.5),
            quantile(0.9),
          ],
      },
      {
        name: 'spark-applications.rules',
        rules: [
          record(cluster + ['state'], 'spark_application_state:sum',
                 'sum by (%(cluster)s, state) (max by (%(run)s, state) (spark_application_state{%(sel)s}))'),
          record(cluster, 'spark_application_executor_cores:sum',
                 'sum by (%(cluster)s) (max by (%(run)s) (spark_application_executor_cores{%(sel)s}))'),
          record(cluster + ['rule', 'severity'], 'spark_finding:count',
                 'count by (%(cluster)s, rule, severity) (group by (%(app)s, rule, cause, severity, subject, stage_id, stage_attempt_id, sql_id, executor_id) (spark_finding{%(sel)s}))'),
          record(cluster + ['rule'], 'spark_finding_core_seconds:sum',
                 'sum by (%(cluster)s, rule) (max by (%(app)s, rule, cause, severity, subject, stage_id, stage_attempt_id, sql_id, executor_id) (spark_finding_core_seconds{%(sel)s}))'),
          record(cluster + ['rule'], 'spark_finding_wall_seconds:sum',
                 'sum by (%(cluster)s, rule) (max by (%(app)s, rule, cause, severity, subject, stage_id, stage_attempt_id, sql_id, executor_id) (spark_finding_wall_seconds{%(sel)s}))'),
        ],
      },
    ],
  },
}
