//! What holds for the objects of every case.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::helm::{
    NAME, NAMESPACE, RELEASE, config, container, kind, objects, one, rendered_cases, with, workload,
};

/// Kubernetes refuses another selector, so it is made of nothing that a value
/// or a version changes.
#[test]
fn selectors_stay_the_same_whatever_changes() {
    let own =
        json!({"app.kubernetes.io/name": "spark-exporter", "app.kubernetes.io/instance": RELEASE});
    let odd = with(&[
        "commonLabels.app\\.kubernetes\\.io/name=other",
        "podLabels.app\\.kubernetes\\.io/instance=other",
        "podLabels.app=x",
        "image.tag=9.9.9",
        "networkPolicy.enabled=true",
        "podDisruptionBudget.enabled=true",
        "podMonitor.enabled=true",
    ]);
    let all = rendered_cases().iter().map(|(name, objects)| (name.as_str(), objects));
    for (name, objects) in all.chain([("odd labels", &odd)]) {
        let workload = workload(objects);
        assert_eq!(workload["spec"]["selector"]["matchLabels"], own, "{name}");
        let labels = &workload["spec"]["template"]["metadata"]["labels"];
        for object in objects {
            let spec = &object["spec"];
            let selector = match object["kind"].as_str().unwrap() {
                "Service" => &spec["selector"],
                "NetworkPolicy" => &spec["podSelector"]["matchLabels"],
                "PodDisruptionBudget" | "PodMonitor" | "ServiceMonitor" => {
                    &spec["selector"]["matchLabels"]
                }
                _ => continue,
            };
            assert_eq!(*selector, own, "{name}: {object:#}");
        }
        for (key, value) in own.as_object().unwrap() {
            assert_eq!(labels[key], *value, "{name}");
            // The pod of `helm test` is none of the Service's.
            for pod in kind(objects, "Pod") {
                if key.ends_with("/name") {
                    assert_ne!(pod["metadata"]["labels"][key], *value, "{name}");
                }
            }
        }
    }
}

/// Whoever is let in, the pod of `helm test` is too.
#[test]
fn a_network_policy_does_not_shut_the_test_out() {
    let objects =
        with(&["networkPolicy.enabled=true", "networkPolicy.from[0].podSelector.matchLabels.a=b"]);
    let from = &one(&objects, "NetworkPolicy")["spec"]["ingress"][0]["from"];
    assert_eq!(from[0], json!({"podSelector": {"matchLabels": {"a": "b"}}}));
    let labels = &one(&objects, "Pod")["metadata"]["labels"];
    for (key, value) in from[1]["podSelector"]["matchLabels"].as_object().unwrap() {
        assert_eq!(labels[key], *value);
    }
    let open = with(&["networkPolicy.enabled=true"]);
    assert!(one(&open, "NetworkPolicy")["spec"]["ingress"][0].get("from").is_none());
}

/// One Service is scraped, whatever else has its labels.
#[test]
fn a_service_monitor_selects_one_service() {
    for sets in
        [&["serviceMonitor.enabled=true"][..], &["serviceMonitor.enabled=true", "replicaCount=3"]]
    {
        let objects = with(sets);
        let spec = &one(&objects, "ServiceMonitor")["spec"];
        let barred = spec["selector"]["matchExpressions"][0]["key"].as_str().unwrap();
        let selected: Vec<&Value> = kind(&objects, "Service")
            .into_iter()
            .filter(|service| service["metadata"]["labels"].get(barred).is_none())
            .collect();
        assert_eq!(selected.len(), 1);
        assert_eq!(selected[0]["metadata"]["name"], NAME);
        assert_eq!(selected[0]["spec"]["ports"][0]["name"], spec["endpoints"][0]["port"]);
        // The alerts know the exporter by this job.
        let job = spec["jobLabel"].as_str().unwrap();
        assert_eq!(selected[0]["metadata"]["labels"][job], "spark-exporter");
        assert_eq!(spec["namespaceSelector"]["matchNames"], json!([NAMESPACE]));
    }
}

fn grants(objects: &[Value]) -> BTreeMap<String, Value> {
    objects
        .iter()
        .filter(|object| matches!(object["kind"].as_str(), Some("Role" | "ClusterRole")))
        .map(|role| {
            let place = role["metadata"]["namespace"].as_str().unwrap_or("everywhere");
            (place.to_owned(), role["rules"].clone())
        })
        .collect()
}

/// Reading pods, and the operators' resources where they are wanted: nothing
/// else, nowhere else.
#[test]
fn roles_allow_what_discovery_needs() {
    let verbs = json!(["list", "watch"]);
    let pods = json!({"apiGroups": [""], "resources": ["pods"], "verbs": verbs});
    let operators = json!({
        "apiGroups": ["sparkoperator.k8s.io", "spark.apache.org"],
        "resources": ["sparkapplications"],
        "verbs": verbs,
    });
    let both = json!([pods, operators]);
    for (sets, expected) in [
        (&["x=y"][..0], vec![(NAMESPACE, both.clone())]),
        (&["discovery.namespaces={etl,ml}"], vec![("etl", both.clone()), ("ml", both.clone())]),
        (&["discovery.allNamespaces=true"], vec![("everywhere", both.clone())]),
        (&["discovery.sparkApplications=off"], vec![(NAMESPACE, json!([pods]))]),
        (&["discovery.enabled=false"], vec![]),
        (&["rbac.create=false"], vec![]),
    ] {
        let objects = with(sets);
        let expected: BTreeMap<String, Value> =
            expected.into_iter().map(|(place, rules)| (place.to_owned(), rules)).collect();
        assert_eq!(grants(&objects), expected, "{sets:?}");
        let account = one(&objects, "ServiceAccount");
        assert_eq!(account["automountServiceAccountToken"], false);
        for binding in objects.iter().filter(|object| {
            matches!(object["kind"].as_str(), Some("RoleBinding" | "ClusterRoleBinding"))
        }) {
            assert_eq!(binding["subjects"].as_array().unwrap().len(), 1);
            assert_eq!(binding["subjects"][0]["name"], account["metadata"]["name"]);
            assert_eq!(binding["subjects"][0]["namespace"], NAMESPACE);
        }
        let pod = &workload(&objects)["spec"]["template"]["spec"];
        assert_eq!(
            pod["automountServiceAccountToken"],
            !sets.contains(&"discovery.enabled=false"),
            "a token only where pods are watched"
        );
    }
}

/// The namespaces of the roles are those that are watched.
#[test]
fn what_is_allowed_is_what_is_watched() {
    for (sets, namespaces) in [
        (&["x=y"][..0], json!({"own_namespace": true})),
        (&["discovery.namespaces={etl,ml}"], json!({"names": ["etl", "ml"]})),
        (&["discovery.allNamespaces=true"], json!({})),
    ] {
        let config = config(&with(sets)).unwrap();
        let config: Value = serde_saphyr::from_str(&config).unwrap();
        assert_eq!(config["clusters"][0]["kubernetes"]["namespaces"], namespaces, "{sets:?}");
    }
}

/// What Kubernetes' restricted standard wants, and a root that nobody writes.
#[test]
fn pods_have_no_rights_and_write_nowhere_but_in_their_volumes() {
    for (name, objects) in rendered_cases() {
        let mut pods = vec![&workload(objects)["spec"]["template"]["spec"]];
        pods.extend(kind(objects, "Pod").into_iter().map(|pod| &pod["spec"]));
        for pod in pods {
            assert_eq!(pod["securityContext"]["runAsNonRoot"], true, "{name}");
            assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
            let user = &pod["securityContext"]["runAsUser"];
            assert!(*user == 65532 || name == "openshift" && user.is_null(), "{name}: {user}");
            let all = ["containers", "initContainers"].into_iter();
            for container in all.flat_map(|key| pod[key].as_array().into_iter().flatten()) {
                let context = &container["securityContext"];
                assert_eq!(context["allowPrivilegeEscalation"], false, "{name}");
                assert_eq!(context["capabilities"]["drop"], json!(["ALL"]), "{name}");
            }
        }
        let own = container(objects);
        assert_eq!(own["securityContext"]["readOnlyRootFilesystem"], true, "{name}");
        let mut written = BTreeSet::new();
        for mount in own["volumeMounts"].as_array().unwrap() {
            let path = mount["mountPath"].as_str().unwrap();
            if mount["readOnly"] != true {
                written.insert(path);
            }
        }
        written.remove("/var/lib/spark-exporter");
        assert_eq!(written.into_iter().collect::<Vec<_>>(), ["/tmp/spark-exporter"], "{name}");
        let volumes = workload(objects)["spec"]["template"]["spec"]["volumes"].as_array().unwrap();
        let temp = volumes.iter().find(|volume| volume["name"] == "temp").unwrap();
        assert!(temp["emptyDir"]["sizeLimit"].is_string(), "{name}");
    }
}

/// Each mount has its volume, each volume its mount, no path is there twice,
/// and each file that the configuration names lies on one of them.
#[test]
fn every_file_that_is_named_is_mounted() {
    for (name, objects) in rendered_cases() {
        let pod = &workload(objects)["spec"]["template"]["spec"];
        let mut volumes: BTreeSet<&str> = pod["volumes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|volume| volume["name"].as_str().unwrap())
            .collect();
        if workload(objects)["spec"].get("volumeClaimTemplates").is_some() {
            volumes.insert("store");
        }
        let mounts = container(objects)["volumeMounts"].as_array().unwrap();
        let used: BTreeSet<&str> =
            mounts.iter().map(|mount| mount["name"].as_str().unwrap()).collect();
        assert_eq!(used, volumes, "{name}");
        let paths: BTreeSet<&str> =
            mounts.iter().map(|mount| mount["mountPath"].as_str().unwrap()).collect();
        assert_eq!(paths.len(), mounts.len(), "{name}: {mounts:#?}");
        let Some(config) = config(objects) else { continue };
        let mut files = Vec::new();
        named(&serde_saphyr::from_str(&config).unwrap(), &mut files);
        for file in files.iter().filter(|file| file.starts_with('/')) {
            assert!(
                paths.iter().any(|path| file.starts_with(&format!("{path}/")) || file == path),
                "{name}: {file} is on no volume: {paths:?}"
            );
        }
    }
}

/// All texts of a configuration.
fn named(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => fields.values().for_each(|value| named(value, found)),
        Value::Array(values) => values.iter().for_each(|value| named(value, found)),
        Value::String(text) => found.push(text.clone()),
        _ => {}
    }
}

#[test]
fn shards_know_their_part_and_have_stores_of_their_own() {
    let objects = with(&["replicaCount=3", "storage.persistence.enabled=true"]);
    let set = one(&objects, "StatefulSet");
    assert!(kind(&objects, "Deployment").is_empty());
    assert!(kind(&objects, "PersistentVolumeClaim").is_empty());
    assert_eq!(set["spec"]["replicas"], 3);
    assert_eq!(set["spec"]["volumeClaimTemplates"][0]["metadata"]["name"], "store");
    let arguments = container(&objects)["args"].as_array().unwrap();
    assert!(arguments.contains(&json!("--shard=$(POD_NAME)")));
    assert!(arguments.contains(&json!("--total-shards=3")));
    let names = &container(&objects)["env"][0];
    assert_eq!(names["name"], "POD_NAME");
    assert_eq!(names["valueFrom"]["fieldRef"]["fieldPath"], "metadata.name");
    let governing = set["spec"]["serviceName"].as_str().unwrap();
    let service = kind(&objects, "Service");
    let service = service.iter().find(|one| one["metadata"]["name"] == governing).unwrap();
    assert_eq!(service["spec"]["clusterIP"], "None");

    let objects = with(&["storage.persistence.enabled=true"]);
    assert!(kind(&objects, "StatefulSet").is_empty());
    let claim = one(&objects, "PersistentVolumeClaim");
    assert_eq!(claim["metadata"]["annotations"]["helm.sh/resource-policy"], "keep");
    // Two at once would count everything twice.
    assert_eq!(one(&objects, "Deployment")["spec"]["strategy"]["type"], "Recreate");
    let text = serde_json::to_string(&objects).unwrap();
    assert!(!text.contains("--shard"), "one shard is all of it");
}

/// A long release does not make names that Kubernetes refuses.
#[test]
fn names_are_cut_to_what_kubernetes_takes() {
    let long = "a-release-with-a-name-as-long-as-helm-takes-it-to-be1";
    let sets = ["replicaCount=2", "storage.persistence.enabled=true", "web.tls.secretName=x"];
    let chart = crate::helm::chart();
    let mut arguments = vec!["template", long, chart.to_str().unwrap()];
    for set in sets {
        arguments.extend(["--set", set]);
    }
    let output = crate::helm::run("4", &arguments);
    for object in crate::helm::objects_of(&String::from_utf8(output.stdout).unwrap()) {
        let name = object["metadata"]["name"].as_str().unwrap();
        // A pod of a StatefulSet has a hash and a number after it in labels.
        let most = if object["kind"] == "StatefulSet" { 52 } else { 63 };
        assert!(name.len() <= most, "{} {name}", object["kind"]);
    }
}

/// A change of the configuration makes new pods; one of a label does not
/// change what they read.
#[test]
fn pods_are_made_anew_when_what_they_read_changes() {
    let checksum = |sets: &[&str], which: &str| {
        let objects = with(sets);
        workload(&objects)["spec"]["template"]["metadata"]["annotations"][which].clone()
    };
    let plain = checksum(&[], "checksum/config");
    assert!(plain.is_string());
    assert_ne!(plain, checksum(&["config.retention=1h"], "checksum/config"));
    assert_eq!(plain, checksum(&["commonLabels.a=b"], "checksum/config"));
    let one = checksum(&["web.tls.secretName=a"], "checksum/web");
    assert_ne!(
        one,
        checksum(&["web.tls.secretName=a", "web.tls.minVersion=TLS13"], "checksum/web")
    );
}

/// Numbers that Helm would write as 1e+06.
#[test]
fn large_numbers_stay_numbers() {
    let text =
        config(&with(&["config.limits.series=1000000", "config.limits.task_spans=30000000"]));
    let text = text.unwrap();
    assert!(text.contains("series: 1000000") && text.contains("task_spans: 30000000"), "{text}");
}

#[test]
fn objects_lie_in_the_namespace_that_is_asked_for() {
    let objects = objects(&["--set", "namespaceOverride=elsewhere,serviceMonitor.enabled=true"]);
    for object in &objects {
        assert_eq!(object["metadata"]["namespace"], "elsewhere", "{object:#}");
    }
    assert_eq!(one(&objects, "RoleBinding")["subjects"][0]["namespace"], "elsewhere");
}
