//! Whether slow tasks have a host in common: a slow disk or a noisy neighbour
//! shows in several stages, not in one.

use std::collections::{BTreeMap, BTreeSet};

use super::context::Context;
use super::straggler;
use crate::model::StageId;

/// Where the slow tasks of the run were, cold ones left out.
#[derive(Debug, Default)]
pub(super) struct SlowHosts {
    hosts: BTreeMap<String, Host>,
    slow_tasks: u32,
    slow: BTreeSet<String>,
}

#[derive(Debug, Default)]
pub(super) struct Host {
    pub(super) stages: BTreeSet<StageId>,
    slow_tasks: u32,
}

impl SlowHosts {
    /// A host is slow where it held slow tasks in several stages, and at
    /// least half of all of them, or most of at least three. With one host
    /// there is nothing to compare.
    pub(super) fn of(context: &Context<'_>) -> Self {
        let all: BTreeSet<&str> =
            context.application.executors.iter().map(|executor| executor.host.as_str()).collect();
        let mut found = Self::default();
        if all.len() < 2 {
            return found;
        }
        for view in &context.stages {
            for slow in straggler::stragglers(context, view) {
                if straggler::is_cold(context, view, &slow) {
                    continue;
                }
                let host = found.hosts.entry(slow.task.host.clone()).or_default();
                host.stages.insert(view.stage.id);
                host.slow_tasks = host.slow_tasks.saturating_add(1);
                found.slow_tasks = found.slow_tasks.saturating_add(1);
            }
        }
        let thresholds = &context.thresholds.straggler;
        found.slow = found
            .hosts
            .iter()
            .filter(|(name, host)| {
                let share = found.share(name);
                let many_stages = host.stages.len() >= thresholds.slow_host_stages as usize;
                (many_stages && share >= 0.5)
                    || (host.slow_tasks >= 3 && share >= thresholds.slow_host_share)
            })
            .map(|(name, _)| name.clone())
            .collect();
        found
    }

    pub(super) fn is_slow(&self, host: &str) -> bool {
        self.slow.contains(host)
    }

    pub(super) fn get(&self, host: &str) -> Option<&Host> {
        self.hosts.get(host)
    }

    pub(super) fn share(&self, host: &str) -> f64 {
        let of_host = self.hosts.get(host).map_or(0, |host| host.slow_tasks);
        f64::from(of_host) / f64::from(self.slow_tasks.max(1))
    }
}
