//! What the application is, and what it was configured to have.

use super::{Replay, owned};
use crate::eventlog::event;
use crate::model::{Configuration, DataQuality, ResourceProfile, TraceContext};

/// Says in logs of Databricks which runtime wrote them.
const DATABRICKS_RUNTIME: &str = "spark.databricks.clusterUsageTags.sparkVersion";

/// Resource profiles kept of one application.
const MOST_PROFILES: usize = 1_000;

impl Replay<'_> {
    pub(super) fn application_start(&mut self, event: &event::ApplicationStart<'_>) {
        self.id = owned(&event.id).or_else(|| self.id.take());
        self.attempt = owned(&event.attempt);
        self.name = owned(&event.name);
        self.user = owned(&event.user);
        self.start = self.checks.time(event.time);
    }

    pub(super) fn environment(&mut self, event: event::EnvironmentUpdate<'_>) {
        let mut configuration = Configuration::new(event.spark.0);
        configuration.java_version = event.jvm.and_then(|jvm| owned(&jvm.java_version));
        if let Some(system) = event.system {
            configuration.java_command = owned(&system.java_command);
            configuration.trace_context = TraceContext::of_system(|key| match key {
                "traceparent" => system.traceparent.get(),
                "tracestate" => system.tracestate.get(),
                "TRACEPARENT" => system.upper_traceparent.get(),
                "TRACESTATE" => system.upper_tracestate.get(),
                _ => None,
            });
        }
        configuration.resource_profiles = self.profiles.values().cloned().collect();
        // Its LogStart has no version.
        if let Some(runtime) = configuration.get(DATABRICKS_RUNTIME) {
            self.checks.mark(DataQuality::Databricks);
            self.version.get_or_insert_with(|| runtime.to_owned());
        }
        self.configuration = configuration;
    }

    pub(super) fn resource_profile(&mut self, event: &event::ResourceProfileAdded) {
        let Some(id) = event.id.id() else { return };
        let amount = |request: &Option<event::Request>| request.as_ref()?.amount.0;
        let executor = event.executor.as_ref();
        let task_cpus = event.task.as_ref().and_then(|task| amount(&task.cpus));
        // MiB, all of them; 0 of off heap says that it is not on.
        let bytes = |request: fn(&event::ExecutorRequests) -> &Option<event::Request>| {
            executor
                .and_then(|executor| amount(request(executor)))
                .filter(|mebibytes| *mebibytes > 0.0)
                .map(|mebibytes| (mebibytes * 1_048_576.0) as u64)
        };
        let profile = ResourceProfile {
            id,
            executor_cores: executor
                .and_then(|executor| amount(&executor.cores))
                .filter(|cores| *cores >= 1.0)
                .map(|cores| cores as u32),
            executor_memory_bytes: bytes(|executor| &executor.memory),
            executor_overhead_bytes: bytes(|executor| &executor.overhead),
            executor_python_memory_bytes: bytes(|executor| &executor.python),
            executor_off_heap_bytes: bytes(|executor| &executor.off_heap),
            task_cpus: task_cpus.filter(|cpus| *cpus > 0.0).unwrap_or(1.0),
        };
        if self.profiles.len() < MOST_PROFILES || self.profiles.contains_key(&id) {
            self.profiles.insert(id, profile);
        }
        self.configuration.resource_profiles = self.profiles.values().cloned().collect();
    }
}
