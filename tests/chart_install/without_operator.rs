//! A cluster that has no Prometheus operator: the chart installs as it comes,
//! and who asks for what the operator would read is told what is missing.

use crate::common::kubernetes::ApiServer;
use crate::world::{Helm, chart};

#[tokio::test]
async fn nothing_of_the_operator_is_made_or_needed() {
    let server = ApiServer::start().await;
    let chart = chart();
    let chart = chart.to_str().unwrap();
    for version in ["3", "4"] {
        let helm = Helm::new(version, &server);
        let name = &format!("helm-{version}");
        let here = ["install", name, chart, "--namespace", name, "--create-namespace"];
        let notes = helm.succeeds(&here, "");
        assert!(!notes.contains("ServiceMonitor is"), "{notes}");
        let manifest = helm.succeeds(&["get", "manifest", name, "--namespace", name], "");
        assert!(!manifest.contains("monitoring.coreos.com"), "{manifest}");
        // Prometheus' own chart finds it all the same.
        assert!(manifest.contains("prometheus.io/scrape"), "{manifest}");
        assert!(manifest.contains("kind: Deployment"), "{manifest}");

        let name = &format!("asked-{version}");
        let here = ["install", name, chart, "--namespace", name, "--create-namespace"];
        let output = helm.run(&here, "serviceMonitor: {enabled: true}");
        assert!(!output.status.success(), "a ServiceMonitor was made of nothing");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("ServiceMonitor") && said.contains("CRDs"), "{said}");

        // The operator comes later: the next upgrade makes what it reads.
        if version == "4" {
            server.install_crds("prometheus-operator").await;
            let name = "helm-4";
            helm.succeeds(&["upgrade", name, chart, "--namespace", name], "");
            for kind in ["servicemonitors", "prometheusrules"] {
                let path = format!("/apis/monitoring.coreos.com/v1/namespaces/{name}/{kind}");
                assert_eq!(server.list(&path).await.len(), 1, "{kind}");
            }
        }
    }
}
