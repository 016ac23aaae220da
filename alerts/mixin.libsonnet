// Alerts, recording rules and dashboards for spark-exporter as a mixin: import it, lay
// your settings over `_config`, and take `prometheusAlerts`, `prometheusRules` and
// `grafanaDashboards`. The YAML files beside it are what it gives as it stands.
(import 'config.libsonnet')
+ (import 'rules/outcomes.libsonnet')
+ (import 'rules/streaming.libsonnet')
+ (import 'rules/findings.libsonnet')
+ (import 'rules/exporter.libsonnet')
+ (import 'rules/recording.libsonnet')
+ {
  grafanaDashboards+:: {
    'spark-exporter-fleet.json': import '../dashboards/fleet.json',
    'spark-exporter-job.json': import '../dashboards/job.json',
    'spark-exporter-application.json': import '../dashboards/application.json',
    'spark-exporter-stage.json': import '../dashboards/stage.json',
    'spark-exporter-streaming.json': import '../dashboards/streaming.json',
    'spark-exporter-exporter.json': import '../dashboards/exporter.json',
  },
}
