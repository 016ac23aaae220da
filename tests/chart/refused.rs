//! What is refused, and what is said then.

use crate::helm::refusal;

/// By the schema: a value that cannot be, with the place it stands in.
#[test]
fn what_cannot_be_is_refused_by_the_schema() {
    for (set, said) in [
        ("replicas=2", "replicas"),
        ("image.tags=\"x\"", "tags"),
        ("image.tag=\"not a tag\"", "tag"),
        ("image.digest=\"latest\"", "digest"),
        ("image.pullPolicy=\"Sometimes\"", "pullPolicy"),
        ("replicaCount=0", "replicaCount"),
        ("replicaCount=\"two\"", "replicaCount"),
        ("web.port=80", "port"),
        ("discovery.enabled=\"yes\"", "enabled"),
        ("discovery.executors=\"on\"", "executors"),
        ("discovery.namespaces=[\"Not A Name\"]", "namespaces"),
        ("discovery.namespaces=[\"etl\",\"etl\"]", "namespaces"),
        ("historyServers=[\"history:18080\"]", "historyServers"),
        ("eventLogs.volumes=[{\"claim\":\"x\"}]", "volumes"),
        ("storage.persistence.size=\"much\"", "size"),
        ("storage.persistence.accessModes=[\"ReadOnlyMany\"]", "accessModes"),
        ("storage.postgresql.url=\"postgres://user:hunter2@db/x\"", "url"),
        ("otlp.endpoint=\"collector:4317\"", "endpoint"),
        ("otlp.protocol=\"http/json\"", "protocol"),
        ("log.level=\"loud\"", "level"),
        ("web.users={\"me\":\"hunter2\"}", "users"),
        ("service.type=\"ExternalName\"", "type"),
        ("serviceMonitor.enabled=\"maybe\"", "enabled"),
        ("serviceMonitor.interval=\"soon\"", "interval"),
        ("prometheusRule.alerts={\"SparkSpill\":{\"severity\":\"page\"}}", "severity"),
        ("prometheusRule.alerts={\"SparkSpill\":{\"enabled\":false}}", "enabled"),
        ("prometheusRule.runbookUrl=\"https://wiki.example.org/runbooks\"", "runbookUrl"),
        ("commonLabels={\"a\":1}", "commonLabels"),
        ("verticalPodAutoscaler.updateMode=\"Never\"", "updateMode"),
        ("storage.temp.medium=\"Disk\"", "medium"),
    ] {
        for version in ["3", "4"] {
            let error = refusal(version, &[set]);
            assert!(error.contains(said) && error.contains("schema"), "{set}: {error}");
        }
    }
}

/// By the templates: what does not go together.
#[test]
fn what_does_not_go_together_is_refused_with_what_to_do() {
    for (sets, said) in [
        (
            &["discovery.allNamespaces=true", "discovery.namespaces=[\"etl\"]"][..],
            "discovery.allNamespaces and discovery.namespaces exclude each other",
        ),
        (
            &["storage.persistence.enabled=true", "storage.postgresql.url=\"postgres://u@db/x\""],
            "storage.persistence.enabled and storage.postgresql.url exclude each other",
        ),
        (
            &[
                "replicaCount=2",
                "storage.persistence.enabled=true",
                "storage.persistence.existingClaim=\"mine\"",
            ],
            "each of several shards needs its own",
        ),
        (&["storage.postgresql.secretName=\"pg\""], "give storage.postgresql.url"),
        (&["http.basicAuth.secretName=\"x\""], "http.basicAuth.username"),
        (&["http.basicAuth.username=\"x\""], "http.basicAuth.secretName"),
        (
            &[
                "http.basicAuth={\"username\":\"u\",\"secretName\":\"x\"}",
                "http.bearerToken.secretName=\"y\"",
            ],
            "http.basicAuth and http.bearerToken exclude each other",
        ),
        (
            &["http.ca={\"secretName\":\"x\",\"configMapName\":\"y\"}"],
            "http.ca.secretName and http.ca.configMapName exclude each other",
        ),
        (
            &["serviceMonitor.enabled=true", "podMonitor.enabled=true"],
            "serviceMonitor.enabled and podMonitor.enabled exclude each other",
        ),
        (&["serviceMonitor.enabled=true", "service.enabled=false"], "needs service.enabled"),
        (&["ingress.enabled=true"], "ingress.hosts"),
        (&["httpRoute.enabled=true"], "httpRoute.parentRefs"),
        (&["ingress.enabled=true", "service.enabled=false"], "ingress.enabled needs"),
        (&["probe.enabled=true", "service.enabled=false"], "give probe.url"),
        (&["web.tls.minVersion=\"TLS13\""], "web.tls.secretName"),
        (
            &["web.existingSecret=\"x\"", "web.config={\"rate_limit\":{\"burst\":1}}"],
            "web.existingSecret holds the whole file",
        ),
        (
            &["configExistingSecret=\"x\"", "config={\"retention\":\"1h\"}"],
            "configExistingSecret holds the whole file",
        ),
        (
            &[
                "prometheusRule.enabled=true",
                "prometheusRule.alerts={\"SparkSpil\":{\"disabled\":true}}",
            ],
            "there is no such alert; there are SparkApplicationFailed",
        ),
        (
            &["config={\"clusters\":[{\"name\":\"default\",\"drivers\":[\"http://x:1\"]}]}"],
            "name one of them otherwise",
        ),
    ] {
        let error = refusal("4", sets);
        assert!(error.contains(said), "{sets:?}: {error}");
    }
}

/// Whoever may read ConfigMaps would read it.
#[test]
fn a_secret_in_the_configuration_is_refused_and_not_quoted() {
    for (config, place) in [
        (
            r#"{"clusters":[{"name":"a","http_config":{"basic_auth":{"username":"u","password":"hunter2"}}}]}"#,
            "config.clusters[0].http_config.basic_auth.password",
        ),
        (
            r#"{"clusters":[{"name":"a","http_config":{"authorization":{"credentials":"hunter2"}}}]}"#,
            "config.clusters[0].http_config.authorization.credentials",
        ),
        (
            r#"{"clusters":[{"name":"a","http_config":{"http_headers":{"X-Key":{"secrets":["hunter2"]}}}}]}"#,
            "config.clusters[0].http_config.http_headers.X-Key.secrets",
        ),
        (
            r#"{"otlp":{"endpoint":"http://c","headers":{"Authorization":"hunter2"}}}"#,
            "config.otlp.headers.Authorization",
        ),
        (
            r#"{"otlp":{"traces":{"headers":{"x-api-key":"hunter2"}}}}"#,
            "config.otlp.traces.headers.x-api-key",
        ),
    ] {
        let error = refusal("4", &[&format!("config={config}")]);
        assert!(error.contains(place) && error.contains("a Secret"), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}
