//! `/environment`: configuration and JVM. 100 KB and more, and it never
//! changes, so it is read once; Hadoop's properties and the class path are
//! passed over.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::value::{Count, Text};
use super::{Api, ApplicationPath};
use crate::fetch::FetchError;
use crate::model::{Configuration, ResourceProfile, TraceContext};

#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ApplicationEnvironmentInfo {
    pub runtime: RuntimeInfo,
    pub spark_properties: Vec<(String, String)>,
    pub system_properties: Vec<(String, String)>,
    pub resource_profiles: Vec<ResourceProfileInfo>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RuntimeInfo {
    pub java_version: Text,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceProfileInfo {
    pub id: Count,
    pub executor_resources: BTreeMap<String, ResourceRequest>,
    pub task_resources: BTreeMap<String, ResourceRequest>,
}

/// Cores, MiB of memory, or CPUs of a task.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceRequest {
    pub amount: Option<f64>,
}

impl ApplicationEnvironmentInfo {
    /// What rules may ask of it.
    pub fn configuration(&self) -> Configuration {
        let mut configuration = Configuration::new(self.spark_properties.iter().cloned());
        configuration.java_version.clone_from(&self.runtime.java_version.0);
        let system = |name: &str| {
            let property = self.system_properties.iter().find(|(key, _)| key == name);
            property.map(|(_, value)| value.as_str())
        };
        configuration.java_command = system("sun.java.command").map(str::to_owned);
        configuration.trace_context = TraceContext::of_system(system);
        configuration.resource_profiles =
            self.resource_profiles.iter().filter_map(ResourceProfileInfo::profile).collect();
        configuration
    }
}

impl ResourceProfileInfo {
    fn profile(&self) -> Option<ResourceProfile> {
        let executor = |name: &str| {
            self.executor_resources
                .get(name)
                .and_then(|request| request.amount)
                .filter(|amount| amount.is_finite() && *amount > 0.0)
        };
        let task_cpus = self.task_resources.get("cpus").and_then(|request| request.amount);
        let bytes = |name| executor(name).map(|mebibytes| (mebibytes * 1_048_576.0) as u64);
        Some(ResourceProfile {
            id: self.id.id()?,
            executor_cores: executor("cores").map(|cores| cores as u32),
            executor_memory_bytes: bytes("memory"),
            executor_overhead_bytes: bytes("memoryOverhead"),
            executor_python_memory_bytes: bytes("pyspark.memory"),
            executor_off_heap_bytes: bytes("offHeap"),
            task_cpus: task_cpus.filter(|cpus| cpus.is_finite() && *cpus > 0.0).unwrap_or(1.0),
        })
    }
}

pub async fn get(
    api: &Api,
    application: &ApplicationPath,
) -> Result<ApplicationEnvironmentInfo, FetchError> {
    api.json("environment", api.application_url(application, &["environment"], &[])).await
}
