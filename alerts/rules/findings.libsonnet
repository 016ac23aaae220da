// What the diagnosis found in a run. Thresholds, floors and exceptions are the daemon's
// (docs/diagnostics.md): these rules select what it says, and no number stands here.
//
// One run gives one alert a rule. Which stage is the worst may change while the run goes
// on, so it stands in the description and not in the labels.
local lib = import '../lib.libsonnet';

{
  local config = $._config,
  local l = lib.of(config),

  // The costliest of these findings, with its stage and cause.
  local worst(matchers, severities, text) = l.where(
    l.ofRun(
      'topk(1, max by (cause, stage_id, stage_attempt_id, sql_id) (spark_finding_wall_seconds{%(sel)s' + matchers + ', severity=~"' + severities + '", OWN}))'
    ),
    text
  ),
  local stage = 'tage {{ .Labels.stage_id }}.{{ .Labels.stage_attempt_id }}{{ with .Labels.sql_id }} of SQL execution {{ . }}{{ end }}',
  local ofDuration = l.where(l.ofRun('max(spark_application_duration_seconds{%(sel)sOWN})'), ' of its ' + l.seconds),
  // A finding whose seconds others promise already has 0 of its own.
  local saving =
    '{{ if .Labels.stage_id }} S' + stage + '{{ with .Labels.cause }} ({{ . }}){{ end }}{{ if .Value }}: without it{{ else }}.{{ end }}'
    + '{{ else }}{{ with .Labels.cause }} Cause: {{ . }}.{{ end }}{{ if .Value }} Without it{{ end }}{{ end }}'
    + '{{ if .Value }} the run would have been {{ .Value | humanizeDuration }} shorter' + ofDuration + '.{{ end }}',
  local stages(matchers, severities) = l.where(
    l.ofRun('count(group by (stage_id, stage_attempt_id) (spark_finding{%(sel)s' + matchers + ', severity=~"' + severities + '", OWN})) > 1'),
    ' {{ .Value }} stages have it.'
  ),

  // What to do, by cause.
  local advice(texts, otherwise) =
    local causes = std.objectFields(texts);
    if causes == [] then ' ' + otherwise else std.join('', [
      '{{ ' + (if i == 0 then 'if' else 'else if') + ' eq .Labels.cause "' + causes[i] + '" }} ' + texts[causes[i]]
      for i in std.range(0, std.length(causes) - 1)
    ]) + '{{ else }} ' + otherwise + '{{ end }}',

  // An alert of one rule: what is the matter, the costliest place, what to do.
  local finding(name, matchers, rule, summary, what, then_, conditions='', links=l.runLinks(rule)) =
    local severities = config.alerts[name].findings;
    l.alert(
      name,
      l.finding(matchers, severities) + conditions + l.recent,
      summary,
      l.who + ': ' + what + then_(severities),
      links
    ),

  // The usual story of a rule that costs wall time.
  local slow(name, matchers, rule, summary, what, texts, otherwise) =
    finding(name, matchers, rule, summary, what, function(severities)
      worst(matchers, severities, saving + advice(texts, otherwise)) + stages(matchers, severities)),

  // Rules with an alert of their own; all others are SparkCostlyFinding's.
  namedRules:: [
    'application_failed',
    'application_idle',
    'cold_start',
    'data_skew',
    'driver_gap',
    'executor_lost',
    'fetch_failures',
    'gc_pressure',
    'idle_cores',
    'job_failed',
    'memory',
    'regression',
    'scheduling_delay',
    'spill',
    'stage_retries',
    'straggler',
    'streaming_behind',
    'stuck_stage',
    'task_failures',
  ],

  local outOfMemory = 'rule=~"executor_lost|memory|task_failures|application_failed", cause=~"heap_oom|container_memory"',

  prometheusAlerts+:: {
    groups+: [{
      name: 'spark-application-findings',
      rules:
        // Somebody waits: these are of running applications only.
        finding(
          'SparkStageStuck',
          'rule="stuck_stage"',
          'stuck_stage',
          'A Spark stage does not get on and blocks its application.',
          'a stage makes no progress, and nothing else runs.',
          function(severities)
            worst('rule="stuck_stage"', severities, ' S' + stage + ': no task has ended or told of rows for {{ .Value | humanizeDuration }}.')
            + l.where(l.ofRun('max(spark_application_executor_cores{%(sel)sOWN}) > 0'), ' {{ .Value }} cores are held meanwhile.')
            + " Look at its running tasks in Spark's UI, take a thread dump of their executor, and kill the task or the executor if it hangs.",
          // Watched at the driver: a log does not tell what running tasks do. And it
          // blocks: while other stages run, the time that it costs is 0.
          l.promql(|||
            and on (%(run)s) spark_finding_wall_seconds{%(sel)srule="stuck_stage", severity=~"%(severities)s"} > 0
            and on (%(run)s) spark_application_info{%(sel)ssource="driver", kind!="interactive"}
          |||, { severities: config.alerts.SparkStageStuck.findings }) + l.running
        )
        + finding(
          'SparkApplicationWaitsForExecutors',
          'rule=~"cold_start|scheduling_delay", cause=~"no_executors?"',
          '',
          'A Spark application has work to do and no executor.',
          'jobs are waiting and no executor is there.',
          function(severities)
            worst('rule=~"cold_start|scheduling_delay", cause=~"no_executors?"', severities, ' It has waited for {{ .Value | humanizeDuration }} so far.')
            + ' The cluster is full, the queue or quota is used up, or executors cannot start: look at the resource manager for what it asked for and did not get.',
          l.promql(|||
            and on (%(run)s) spark_application_executors{%(sel)s} == 0
            and on (%(run)s) spark_application_jobs{%(sel)sstatus="running"} > 0
          |||) + l.running
        )
        + finding(
          'SparkApplicationIdle',
          'rule="application_idle"',
          'application_idle',
          'A Spark application has nothing to do and holds its cores.',
          'no job has run for long and the application lives on.',
          function(severities)
            l.where(l.ofRun('max(spark_application_executor_cores{%(sel)sOWN})'), ' It holds {{ .Value }} cores.')
            + l.where(
              l.ofRun('max(spark_finding_core_seconds{%(sel)srule="application_idle", OWN}) / 3600'),
              ' So far that is {{ .Value | printf "%.1f" }} core-hours for nothing.'
            )
            + ' Most often stop() was never called, or a thread keeps the driver alive: end it, then mend the program.',
          l.running
        )

        // Something was lost or failed.
        + l.alert(
          'SparkOutOfMemory',
          l.finding(outOfMemory, config.alerts.SparkOutOfMemory.findings) + l.recent,
          'A Spark application ran out of memory.',
          l.who + ': memory ran out.'
          + l.where(
            l.ofRun('topk(1, max by (rule, cause, executor_id) (spark_finding{%(sel)s' + outOfMemory + ', severity=~"' + config.alerts.SparkOutOfMemory.findings + '", OWN}))'),
            '{{ if eq .Labels.cause "container_memory" }} Containers were killed over their limit, or are about to be: more spark.executor.memoryOverhead (Python, off-heap, network buffers), not more heap.'
            + '{{ else if eq .Labels.rule "executor_lost" "task_failures" }} The heap of executors was too small for their tasks: smaller partitions or fewer cores an executor first, then more spark.executor.memory.'
            + '{{ else }} It is the heap of the driver: less collected or broadcast, or more spark.driver.memory.{{ end }}'
          )
          + l.where(l.ofRun('max(spark_application_executors_removed{%(sel)sOWN}) > 0'), ' Executors removed in this run, for whatever reason: {{ .Value }}.'),
          l.runLinks('')
        )
        + finding(
          'SparkExecutorLost',
          'rule="executor_lost", cause!~"heap_oom|container_memory"',
          'executor_lost',
          'A Spark application lost executors.',
          'executors went away that nobody sent away.',
          function(severities)
            l.where(
              l.ofRun('topk(1, max by (cause) (spark_finding{%(sel)srule="executor_lost", cause!~"heap_oom|container_memory", severity=~"' + severities + '", OWN}))'),
              '{{ with .Labels.cause }} Cause: {{ . }}.{{ end }}' + advice({
                killed: 'Something killed the process (137 or 143): most often the kernel or the node, for want of memory. Nothing proves who did it; the log of the node does.',
                heartbeat: 'It no longer answered: a long garbage collection, an overloaded machine, or the network.',
                node_lost: 'Its machine went.',
                preempted: 'It was preempted: a queue with guarantees, or machines that are not spot.',
                decommissioned: 'Its machine was decommissioned: spark.decommission.enabled and storage decommission move its blocks away first.',
              }, 'The log of the executor has the reason.')
            )
            + l.where(
              l.ofRun('max(spark_finding_core_seconds{%(sel)srule="executor_lost", cause!~"heap_oom|container_memory", OWN}) / 3600 > 0'),
              ' Work done again: {{ .Value | printf "%.1f" }} core-hours.'
            )
        )
        + finding(
          'SparkTaskFailures',
          'rule="task_failures", cause!~"heap_oom|container_memory"',
          'task_failures',
          'Tasks of a Spark application fail.',
          'task attempts failed.',
          function(severities)
            l.where(l.ofRun('max(spark_application_tasks{%(sel)sstatus="failed", OWN})'), ' {{ .Value }} of them')
            + l.where(l.ofRun('max(spark_application_task_failure_ratio{%(sel)sOWN})'), ', {{ .Value | humanizePercentage }} of those that ended')
            + l.where(
              l.ofRun('topk(1, max by (stage_id, stage_attempt_id) (spark_stage_tasks{%(sel)sstatus="failed", OWN})) > 0'),
              '; most in stage {{ .Labels.stage_id }}.{{ .Labels.stage_attempt_id }}: {{ .Value }}'
            )
            + '. The report has the class of the exception. A task that fails spark.task.maxFailures times ends its job.'
        )
        + l.alert(
          'SparkStageRetries',
          l.promql(|||
            max by (%(app)s) (
              spark_finding{%(sel)srule=~"stage_retries|fetch_failures", severity=~"%(severities)s"}
            )
          |||, { severities: config.alerts.SparkStageRetries.findings }) + l.recent,
          'Stages of a Spark application ran more than once.',
          l.who + ': shuffle output was gone and stages ran again.'
          + worst('rule="stage_retries"', config.alerts.SparkStageRetries.findings, saving)
          + l.whereElse(
            l.ofRun('topk(1, max by (cause) (spark_finding{%(sel)srule=~"stage_retries|fetch_failures", cause!="", severity=~"' + config.alerts.SparkStageRetries.findings + '", OWN}))'),
            advice({
              heap_oom: 'Executors ran out of memory before (heap_oom): mend that.',
              container_memory: 'Executors were killed over their container before: mend that.',
              killed: 'Executors were killed before: mend that.',
              decommissioned: 'Executors were decommissioned: move shuffle blocks first (spark.storage.decommission.enabled), or keep them outside (external or remote shuffle service).',
              preempted: 'Executors were preempted: keep shuffle output outside of them, or do not run this on spot machines.',
            }, 'Executors were lost before: {{ .Labels.cause }}.'),
            ' No executor was lost before: look at the network and at the shuffle service, and whether executors are given back while others need their files (spark.dynamicAllocation.shuffleTracking.enabled).'
          ),
          l.runLinks('stage_retries')
        )

        // It was slow, or dear.
        + slow(
          'SparkApplicationRegression',
          'rule="regression"',
          'regression',
          'A Spark job took much longer than it used to.',
          'the run took longer than earlier runs of its name on about as much data.'
          + l.where(l.ofName('max(spark_application_runs_baseline_duration_seconds{%(sel)sOWN})'), ' Usually it takes ' + l.seconds + '.'),
          {
            no_executors: 'It waited for executors: it was the cluster.',
            settings_changed: 'Its settings changed.',
            plan_changed: 'The plan of a query changed.',
            fewer_cores: 'It had fewer cores.',
          },
          'The report says which stage grew and what is different about it.'
        )
        + slow(
          'SparkDataSkew',
          'rule="data_skew"',
          'data_skew',
          'One task of a Spark stage has most of the data.',
          'a stage waits for one task that has much more to do than the others.',
          {
            hot_key: 'One key holds most rows: AQE splits it in a sort-merge or shuffled-hash join; elsewhere salt the key, or aggregate before.',
            compressible_hot_key: "One key holds most rows and compresses well, so it stays below AQE's size: lower spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes.",
            input_files: 'Its input files are uneven: mend how they are written, or split them; salting does not help.',
          },
          'Rows multiply in the stage: look at what it computes.'
        )
        + slow(
          'SparkStraggler',
          'rule="straggler"',
          'straggler',
          'A Spark stage waits for tasks that are slow without having more to do.',
          'a stage waits for slow tasks.',
          {
            slow_host: 'One host is slow: look at its disk, its CPU and its neighbours; spark.speculation runs copies elsewhere.',
            gc: 'Their garbage collection takes long.',
            fetch_wait: 'They wait for shuffle blocks: network, or an overloaded executor or shuffle service.',
            locality: 'They ran far from their data.',
            driver: 'The driver was too busy to see that they had ended.',
          },
          'Nothing that Spark measures explains it; spark.speculation may help.'
        )
        + finding(
          'SparkSpill',
          'rule="spill"',
          'spill',
          'A Spark application spills much to disk.',
          'tasks had more to sort, join or aggregate than their memory holds.',
          function(severities)
            l.where(l.ofRun('max(spark_application_disk_spilled_bytes{%(sel)sOWN})'), ' {{ .Value | humanize1024 }}B were spilled to disk.')
            + l.where(
              l.ofRun('topk(1, max by (stage_id, stage_attempt_id) (spark_stage_disk_spilled_bytes{%(sel)sOWN})) > 0'),
              ' Most by stage {{ .Labels.stage_id }}.{{ .Labels.stage_attempt_id }}: {{ .Value | humanize1024 }}B'
            )
            + l.where(
              l.ofRun('max(spark_stage_spill_ratio{%(sel)sOWN})'),
              ', up to {{ .Value | humanizePercentage }} of what a stage moved'
            )
            + '. If most tasks spill, more and smaller partitions or more memory for each core; if few do, it is skew.'
        )
        + slow(
          'SparkGcPressure',
          'rule="gc_pressure"',
          'gc_pressure',
          'A Spark application spends much of its time on garbage collection.',
          'tasks wait for the garbage collector'
          + l.where(l.ofRun('max(spark_application_gc_ratio{%(sel)sOWN})'), ' ({{ .Value | humanizePercentage }} of their run time in all)') + '.',
          {},
          'Fewer objects at a time (fewer cores an executor, smaller partitions, no large collections in user code) before a larger heap.'
        )
        + slow(
          'SparkSchedulingDelay',
          'rule=~"scheduling_delay|cold_start"',
          '',
          'A Spark application waited long to have its tasks started.',
          'stages had tasks to run and could not start them.',
          {
            no_executors: 'There were no executors: the cluster was full, or dynamic allocation too slow.',
            no_executor: 'No executor ever came.',
            locality: 'Tasks waited for an executor near their data: lower spark.locality.wait.',
            driver: 'The driver did not launch tasks fast enough: fewer and larger tasks, or more cores for it.',
          },
          'The report says which stages waited.'
        )
        + slow(
          'SparkDriverGap',
          'rule="driver_gap"',
          'driver_gap',
          'Executors of a Spark application stand idle while its driver works.',
          'between jobs the executors wait for the driver.',
          {},
          'The report says which part is listing files, planning, committing or the program itself.'
        )
        + finding(
          'SparkIdleCores',
          'rule="idle_cores"',
          'idle_cores',
          'A Spark application paid for cores that had nothing to do.',
          'most of the time its cores were idle.',
          function(severities)
            l.where(l.ofRun('max(spark_application_used_core_seconds{%(sel)sOWN}) / max(spark_application_bought_core_seconds{%(sel)sOWN})'), ' Tasks used {{ .Value | humanizePercentage }} of the core time')
            + l.where(l.ofRun('(max(spark_application_bought_core_seconds{%(sel)sOWN}) - max(spark_application_used_core_seconds{%(sel)sOWN})) / 3600'), '; {{ .Value | printf "%.1f" }} core-hours were paid for and not used')
            + l.where(
              l.ofRun('max by (currency) (spark_application_cost{%(sel)sOWN}) * (1 - scalar(max(spark_application_used_core_seconds{%(sel)sOWN}) / max(spark_application_bought_core_seconds{%(sel)sOWN})))'),
              ', about {{ .Value | printf "%.2f" }} {{ .Labels.currency }} of what the run cost'
            )
            + '. Fewer executors, or dynamic allocation with a shorter idle time; the report predicts the run on other numbers of executors.'
        )
        + l.alert(
          'SparkCostlyFinding',
          l.finding('rule!~"' + std.join('|', $.namedRules) + '"', config.alerts.SparkCostlyFinding.findings) + l.recent,
          'The diagnosis found a costly fault in a Spark application.',
          l.who + ': {{ $labels.rule }}.'
          + l.where(
            l.ofRule('topk(1, max by (cause, stage_id, stage_attempt_id, sql_id) (spark_finding_wall_seconds{%(sel)sseverity=~"' + config.alerts.SparkCostlyFinding.findings + '", OWN}))'),
            saving
          )
          + ' The report says what to change.',
          l.runLinks('{{ $labels.rule }}')
        ),
    }],
  },
}
