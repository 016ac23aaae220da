//! `--baseline`: earlier runs, by which one that is diagnosed is told to have
//! taken longer than runs of its name used to. What the daemon's store does
//! for runs it has seen, for those that somebody has at hand.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::in_order;
use super::plan::{self, Wanted};
use super::progress::Progress;
use super::read::{Read, Work};
use super::session::Session;
use crate::config::Config;
use crate::diagnose::{RunSummary, judge, with_regression};
use crate::store::StoredRun;

/// Kept of a name, the latest: several times what a baseline is made of.
const MOST_RUNS: usize = 100;

/// Runs that ended well, in short, by the name of their job.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    by_name: BTreeMap<String, Vec<RunSummary>>,
    /// Some could not be read; that was said.
    pub(super) unread: bool,
}

impl Earlier {
    pub(super) fn read(sources: &[String], session: &mut Session) -> Self {
        let mut earlier = Self::default();
        if sources.is_empty() {
            return earlier;
        }
        let wanted = Wanted { app_ids: Vec::new(), latest: Some(MOST_RUNS) };
        let mut work = Vec::new();
        for source in sources {
            session.progress.looking_at(source);
            match plan::plan(source, &wanted, session) {
                Ok(found) => work.extend(found),
                Err(error) => work.push(Work::Fault(format!("{error:#}"))),
            }
        }
        session.progress.end();
        session.progress = Progress::new(work.iter().map(Work::bytes).sum(), work.len());
        let session = &*session;
        let threads = session.config.limits.concurrent_logs;
        let short = |work: Work| -> Vec<anyhow::Result<(String, StoredRun)>> {
            let runs = work.read(&[], session).into_iter();
            runs.map(|read| read.map(|read| stored(&read, &session.config))).collect()
        };
        in_order::in_order(work, threads, short, |results| {
            for result in results.flatten() {
                match result {
                    Ok((name, run)) if run.record.ended_well => earlier.add(name, run.summary),
                    Ok(_) => {}
                    Err(error) => {
                        earlier.unread = true;
                        session.progress.complain(&format!("{error:#}"));
                    }
                }
            }
        });
        session.progress.end();
        earlier
    }

    fn add(&mut self, name: String, run: RunSummary) {
        let runs = self.by_name.entry(name).or_default();
        runs.push(run);
        if runs.len() > 2 * MOST_RUNS {
            runs.sort_by_key(|run| Reverse(run.start_ms));
            runs.truncate(MOST_RUNS);
        }
    }

    /// The run with what holding it against those before it found.
    pub(super) fn hold(&self, mut read: Read, config: &Config) -> Read {
        let (name, run) = stored(&read, config);
        let Some(before) = self.by_name.get(&name).filter(|_| run.record.ended_well) else {
            return read;
        };
        let thresholds = config.thresholds_for(&read.run.application.name);
        let finding = judge(&run.summary, before, &thresholds).finding;
        read.run.diagnosis = with_regression(&read.run.diagnosis, finding);
        read
    }
}

/// The name of the job it is a run of, and what is kept of it.
fn stored(read: &Read, config: &Config) -> (String, StoredRun) {
    let application = &read.run.application;
    let name = config.names.rewrite(&application.name);
    let run = StoredRun::of(application, &read.run.diagnosis, &name, None, None);
    (name, run)
}
