//! One running driver, polled: what changes each cycle, what is new once a
//! minute, what never changes once.
//!
//! The API has no "since", so a cycle asks only for what is small: the
//! application, its executors, its active stages. Once a minute, and when a
//! stage ended, the lists of jobs and stages are read as a stream of which
//! only unseen attempts are kept. The tasks of a finished attempt are asked
//! for once, of an active one while it looks ill. `budget` says how much of
//! this a driver is asked to bear.

mod active;
mod budget;
mod executions;
mod retained;
mod tasks;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use self::active::{Active, since};
use self::budget::Purse;
pub use self::budget::{BYTES_PER_CYCLE, BYTES_PER_MINUTE, CycleCost, REQUESTS_PER_CYCLE};
use self::executions::Executions;
use self::retained::Retained;
use super::applications::{self, ApplicationInfo, Filter};
use super::assemble::{self, Parts, ReadJob};
use super::executors::{self, ExecutorSummary};
use super::jobs::JobData;
use super::listing::Listing;
use super::{Api, ApplicationPath, dropped_events, environment, jobs, stages, storage_rdd};
use crate::config::ServerUrl;
use crate::fetch::{FetchError, FetchErrorKind, HttpClient};
use crate::model::{
    Application, CachedRdd, Configuration, DataQuality, JobStatus, Source, Stage, StageId,
    StageStatus,
};

/// The whole lists of jobs and stages are read as often as this ...
const LISTS_EVERY: Duration = Duration::from_mins(1);
/// ... or, when a stage ended, as often as this: a thousand stages cost a
/// driver a third of a second.
const LISTS_AFTER_END: Duration = Duration::from_secs(20);
/// An endpoint beside the main ones is asked as often as this.
const ASIDE_EVERY: Duration = Duration::from_mins(1);
/// Attempts kept that left the list of active ones.
const LEAVING: usize = 1_000;
/// Jobs kept, newest first.
const JOBS: usize = 2_000;

/// The reader of one running driver.
#[derive(Debug)]
pub struct RunningApplication {
    cluster: String,
    base: ServerUrl,
    purse: Purse,
    cost: CycleCost,
    known: Known,
}

/// What is known of the application that runs there.
#[derive(Debug, Default)]
struct Known {
    /// Id and start: another application on the same port begins anew.
    identity: Option<(String, Option<Timestamp>)>,
    configuration: Option<Configuration>,
    executors: Vec<ExecutorSummary>,
    jobs: BTreeMap<u32, ReadJob>,
    streamed: bool,
    active: BTreeMap<StageId, Active>,
    /// Attempts that left the list of active ones and were not read yet as
    /// finished: shown as they were, so that no finding flickers.
    leaving: Vec<Stage>,
    pending: Vec<Stage>,
    retained: Retained,
    sql: Executions,
    cached: Option<Vec<CachedRdd>>,
    dropped_events: Option<u64>,
    listed: Option<Timestamp>,
    asked_aside: Option<Timestamp>,
    tasks_evicted: bool,
    implausible: bool,
}

/// What became of one cycle.
#[derive(Debug, Default)]
struct Cycle {
    /// An endpoint did not answer.
    missing: bool,
    extended: bool,
    /// Whether the jobs are known well enough to call an active stage of
    /// finished jobs a remnant.
    jobs_current: bool,
}

impl RunningApplication {
    /// A reader for the driver at `base`; the first poll reads everything.
    pub fn new(cluster: impl Into<String>, base: ServerUrl) -> Self {
        Self {
            cluster: cluster.into(),
            base,
            purse: Purse::new(),
            cost: CycleCost::default(),
            known: Known::default(),
        }
    }

    pub fn base(&self) -> &ServerUrl {
        &self.base
    }

    /// What the last [`RunningApplication::poll`] cost, also where it failed.
    pub fn cost(&self) -> CycleCost {
        self.cost
    }

    /// Asks the driver how it stands. Fails where `/applications` does; any
    /// other endpoint that fails costs only its part
    /// ([`DataQuality::EndpointsMissing`]).
    pub async fn poll(
        &mut self,
        client: &HttpClient,
        now: Timestamp,
    ) -> Result<Application, FetchError> {
        let polled = self.poll_if(client, now, &|_| true).await?;
        polled.ok_or_else(|| Self::lists_none(&Api::new(client, &self.base)))
    }

    /// As [`RunningApplication::poll`], unless an application of another name
    /// runs there than is wanted: then nothing more is asked, and `None` is
    /// what comes of it.
    ///
    /// # Errors
    /// As [`RunningApplication::poll`].
    pub async fn poll_if(
        &mut self,
        client: &HttpClient,
        now: Timestamp,
        wants: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<Option<Application>, FetchError> {
        self.purse.fill(now);
        let api = Api::new(client, &self.base);
        let mut cycle = Cycle::default();
        let result = self.cycle(&api, now, &mut cycle, wants).await;
        let meter = api.meter();
        self.cost = CycleCost {
            requests: meter.requests(),
            bytes: meter.wire_bytes(),
            extended: cycle.extended,
        };
        self.purse.spend(self.cost.bytes);
        Ok(result?.map(|listed| self.assemble(&listed, &cycle, now)))
    }

    async fn cycle(
        &mut self,
        api: &Api,
        now: Timestamp,
        cycle: &mut Cycle,
        wants: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<Option<ApplicationInfo>, FetchError> {
        let listed = applications::get(api, Filter { limit: Some(1), ..Filter::default() }).await?;
        let Some(application) = listed.into_iter().next().filter(|one| !one.id.get().is_empty())
        else {
            return Err(Self::lists_none(api));
        };
        if !wants(application.name_or_id()) {
            self.known = Known::default();
            return Ok(None);
        }
        let start = application.latest().and_then(applications::ApplicationAttemptInfo::start);
        let identity = Some((application.id.get().to_owned(), start));
        if self.known.identity != identity {
            self.known = Known { identity, ..Known::default() };
        }
        let path = ApplicationPath::new(application.id.get(), None);
        let known = &mut self.known;
        match executors::get(api, &path).await {
            Ok(executors) => known.executors = executors,
            Err(_) => cycle.missing = true,
        }
        if known.configuration.is_none() {
            cycle.extended = true;
            match environment::get(api, &path).await {
                Ok(environment) => known.configuration = Some(environment.configuration()),
                Err(_) => cycle.missing = true,
            }
        }
        if since(known.listed, now, LISTS_EVERY) && self.purse.allows(api.meter().wire_bytes()) {
            known.lists(api, &path, now, cycle).await;
        } else {
            known.active_stages(api, &path, now, cycle).await;
            let ended = !known.leaving.is_empty();
            if ended && since(known.listed, now, LISTS_AFTER_END) && self.purse.is_half_full() {
                known.lists(api, &path, now, cycle).await;
            } else {
                known.jobs_of_active_stages(api, &path, cycle).await;
            }
        }
        if since(known.asked_aside, now, ASIDE_EVERY) && self.purse.allows(api.meter().wire_bytes())
        {
            known.aside(api, &path, now, cycle).await;
        }
        tasks::of_active(known, &self.purse, api, &path, now, cycle).await;
        tasks::of_finished(known, &self.purse, api, &path, cycle).await;
        // With the lists, so that other cycles stay small.
        if known.listed == Some(now) {
            known.sql.read(&self.purse, api, &path, cycle).await;
        }
        Ok(Some(application))
    }

    fn lists_none(api: &Api) -> FetchError {
        let url = api.url(&["applications"], &[]);
        let what = "a driver that lists no application";
        FetchError::new(FetchErrorKind::UnknownApplication, &url, what)
            .hint("it is starting or stopping, or this is a History Server")
    }

    fn assemble(
        &self,
        application: &ApplicationInfo,
        cycle: &Cycle,
        now: Timestamp,
    ) -> Application {
        let known = &self.known;
        let attempt = application.latest().cloned().unwrap_or_default();
        let stages = known
            .retained
            .stages()
            .cloned()
            .chain(known.active.values().map(Active::assembled))
            .chain(known.leaving.iter().filter(|one| !known.retained.contains(one.id)).cloned())
            .chain(known.pending.iter().cloned())
            .collect();
        let (sql, sql_omitted) = known.sql.known();
        let marks = [
            (DataQuality::EndpointsMissing, cycle.missing),
            (DataQuality::DroppedEvents, known.dropped_events.is_some_and(|events| events > 0)),
            (DataQuality::StagesEvicted, known.retained.evicted() > 0),
            (DataQuality::StagesOmitted, known.retained.omitted() > known.retained.evicted()),
            (DataQuality::SqlExecutionsOmitted, sql_omitted > 0),
            (DataQuality::TasksEvicted, known.tasks_evicted),
            (DataQuality::ImplausibleValues, known.implausible),
        ];
        let data_quality: BTreeSet<DataQuality> =
            marks.into_iter().filter(|(_, marked)| *marked).map(|(mark, _)| mark).collect();
        let mut jobs: Vec<ReadJob> = known.jobs.values().cloned().collect();
        // A stream's batches may have left the list; it stays a stream.
        if known.streamed
            && let Some(first) = jobs.first_mut()
        {
            first.streamed = true;
        }
        assemble::application(Parts {
            cluster: &self.cluster,
            source: Source::Driver,
            application,
            attempt: &attempt,
            configuration: known.configuration.as_ref(),
            executors: &known.executors,
            cached: known.cached.as_deref(),
            jobs,
            stages,
            stages_omitted: known.retained.omitted(),
            sql,
            sql_omitted,
            jobs_before_stages: cycle.jobs_current,
            data_quality,
            now,
        })
    }
}

impl Known {
    /// The whole lists. Jobs first: an active stage all of whose jobs ended
    /// before is then a remnant, and no race.
    async fn lists(
        &mut self,
        api: &Api,
        path: &ApplicationPath,
        now: Timestamp,
        cycle: &mut Cycle,
    ) {
        cycle.extended = true;
        // Also when it fails: a driver that cannot answer is not asked harder.
        self.listed = Some(now);
        match jobs::get(api, path, None, Vec::new(), keep_job).await {
            Ok(read) => {
                self.take_jobs(read.state);
                cycle.jobs_current = true;
            }
            Err(_) => cycle.missing = true,
        }
        let listing = Listing::unseen(self.retained.seen());
        let visit = |listing: &mut Listing, data| listing.visit(&data);
        match stages::get(api, path, None, listing, visit).await {
            Ok(read) => {
                let mut listing = read.state;
                self.implausible |= listing.implausible || read.skipped > 0;
                let (active, pending): (Vec<_>, Vec<_>) = std::mem::take(&mut listing.open)
                    .into_iter()
                    .partition(|(stage, _)| stage.status == StageStatus::Active);
                self.pending = pending.into_iter().map(|(stage, _)| stage).collect();
                self.take_active(active, now);
                self.leaving.clear();
                self.retained.take(listing);
            }
            Err(_) => cycle.missing = true,
        }
    }

    /// The stages that run now.
    async fn active_stages(
        &mut self,
        api: &Api,
        path: &ApplicationPath,
        now: Timestamp,
        cycle: &mut Cycle,
    ) {
        let listing = Listing::unseen(Arc::default());
        let visit = |listing: &mut Listing, data| listing.visit(&data);
        match stages::get(api, path, Some("active"), listing, visit).await {
            Ok(read) => {
                self.implausible |= read.state.implausible || read.skipped > 0;
                self.take_active(read.state.open, now);
            }
            Err(_) => cycle.missing = true,
        }
    }

    fn take_active(&mut self, listed: Vec<(Stage, stages::KillReasons)>, now: Timestamp) {
        let mut before = std::mem::take(&mut self.active);
        for (stage, kills) in listed {
            let id = stage.id;
            let active = match before.remove(&id) {
                Some(mut active) => {
                    active.update(stage, kills, now);
                    active
                }
                None => Active::new(stage, kills, now),
            };
            self.active.insert(id, active);
        }
        let active = &self.active;
        self.pending.retain(|stage| !active.contains_key(&stage.id));
        self.leaving.retain(|stage| !active.contains_key(&stage.id));
        self.leaving.extend(before.into_values().map(|gone| gone.assembled()));
        // Only a driver whose whole list fails for long gets here.
        self.leaving.drain(..self.leaving.len().saturating_sub(LEAVING));
    }

    /// Which jobs run, where an active stage belongs to none that is known to
    /// run: one small question instead of the whole list.
    async fn jobs_of_active_stages(
        &mut self,
        api: &Api,
        path: &ApplicationPath,
        cycle: &mut Cycle,
    ) {
        let running: BTreeSet<u32> = self
            .jobs
            .values()
            .filter(|read| read.job.status == JobStatus::Running)
            .flat_map(|read| read.job.stage_ids.iter().copied())
            .collect();
        if self.active.keys().all(|id| running.contains(&id.stage)) {
            cycle.jobs_current = true;
            return;
        }
        match jobs::get(api, path, Some("running"), Vec::new(), keep_job).await {
            Ok(read) => {
                self.take_jobs(read.state);
                cycle.jobs_current = true;
            }
            Err(_) => cycle.missing = true,
        }
    }

    fn take_jobs(&mut self, listed: Vec<ReadJob>) {
        for read in listed {
            self.streamed |= read.streamed;
            self.jobs.insert(read.job.id, read);
        }
        while self.jobs.len() > JOBS {
            self.jobs.pop_first();
        }
    }

    /// What is cached, and whether events were dropped.
    async fn aside(
        &mut self,
        api: &Api,
        path: &ApplicationPath,
        now: Timestamp,
        cycle: &mut Cycle,
    ) {
        cycle.extended = true;
        self.asked_aside = Some(now);
        match storage_rdd::get(api, path).await {
            Ok(cached) => self.cached = Some(cached),
            Err(_) => cycle.missing = true,
        }
        // Switched off in some installations: then it stays unknown.
        if let Ok(dropped) = dropped_events::get(api).await {
            self.dropped_events = dropped;
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the shape of a visitor")]
fn keep_job(all: &mut Vec<ReadJob>, data: JobData) {
    all.extend(assemble::job(&data));
}
