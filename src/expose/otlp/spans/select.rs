//! Which spans of a tree are sent where not all may be: those that failed or
//! that something was found in, then the longest; each with all above it.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};

use jiff::{SignedDuration, Timestamp};

use super::forest::Forest;
use super::outcome;
use crate::config::otlp::TracesSettings;
use crate::model::{FailureClass, Stage, Task, TaskStatus};

/// What goes of a tree.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    /// Nodes, ascending: each after its parent.
    pub(super) nodes: BTreeSet<usize>,
    /// Of stage attempts among them: places in [`tasks`].
    pub(super) tasks: HashSet<(usize, usize)>,
    /// Spans that were left out.
    pub(super) dropped: u64,
}

/// A span that may go.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    unremarkable: bool,
    shorter: Reverse<SignedDuration>,
    node: usize,
    /// Of a task: its place in [`tasks`] of the node's stage.
    task: Option<usize>,
}

/// Of the nodes that are due, as many as the settings allow. `None`: none of
/// them yet, because there may be more of the run than fits, and which parts
/// of it are the costliest is known at its end.
pub(super) fn choose(
    forest: &Forest<'_>,
    tree: usize,
    due: &BTreeSet<usize>,
    remarkable: &HashSet<usize>,
    sent: u64,
    settings: &TracesSettings,
) -> Option<Chosen> {
    let candidates = candidates(forest, due, remarkable, settings);
    let most = settings.spans_per_trace.max(1) as u64;
    let root = forest.trees[tree].root;
    // Whatever has children there must follow.
    let mut chosen = Chosen::default();
    for &index in &forest.members[tree] {
        if forest.nodes[index].sent {
            add_with_ancestors(forest, index, &mut chosen.nodes);
        }
    }
    if !forest.nodes[root].sent && due.contains(&root) {
        chosen.nodes.insert(root);
    }
    let held_back = !due.contains(&root) && !forest.nodes[root].sent;
    if held_back {
        let mut all = chosen.nodes.clone();
        for candidate in &candidates {
            add_with_ancestors(forest, candidate.node, &mut all);
        }
        let tasks = candidates.iter().filter(|candidate| candidate.task.is_some()).count();
        let in_all = sent + all.len() as u64 + tasks as u64;
        if in_all > most / 2 {
            return None;
        }
    }
    let mut count = sent + chosen.nodes.len() as u64;
    for candidate in &candidates {
        let mut with = BTreeSet::new();
        add_with_ancestors(forest, candidate.node, &mut with);
        let new: Vec<usize> = with.difference(&chosen.nodes).copied().collect();
        let more = new.len() as u64 + u64::from(candidate.task.is_some());
        if count + more > most {
            chosen.dropped += u64::from(candidate.task.is_some() || !new.is_empty());
            continue;
        }
        count += more;
        chosen.nodes.extend(new);
        if let Some(task) = candidate.task {
            chosen.tasks.insert((candidate.node, task));
        }
    }
    // Those above that have not ended yet were only counted.
    chosen.nodes.retain(|node| due.contains(node));
    Some(chosen)
}

/// The node and those above it in its tree that were not sent.
fn add_with_ancestors(forest: &Forest<'_>, node: usize, to: &mut BTreeSet<usize>) {
    let tree = forest.nodes[node].tree;
    let mut next = Some(node);
    while let Some(at) = next.filter(|at| forest.nodes[*at].tree == tree) {
        if !forest.nodes[at].sent {
            to.insert(at);
        }
        next = forest.nodes[at].parent;
    }
}

fn candidates(
    forest: &Forest<'_>,
    due: &BTreeSet<usize>,
    remarkable: &HashSet<usize>,
    settings: &TracesSettings,
) -> Vec<Candidate> {
    let mut all = Vec::new();
    for &index in due {
        let node = &forest.nodes[index];
        let length = node.end.unwrap_or(node.start).duration_since(node.start);
        let unremarkable = !remarkable.contains(&index) && !outcome::is_error(forest, index);
        let candidate =
            Candidate { unremarkable, shorter: Reverse(length), node: index, task: None };
        all.push(candidate);
        let Some(stage) = forest.stage(index) else { continue };
        for (place, (task, failure)) in tasks(stage, settings.tasks_per_stage).enumerate() {
            let length = SignedDuration::try_from(task.duration).unwrap_or(SignedDuration::MAX);
            let unremarkable = unremarkable && failure.is_none();
            let task = Some(place);
            all.push(Candidate { unremarkable, shorter: Reverse(length), task, ..candidate });
        }
    }
    all.sort_unstable();
    all
}

/// The tasks of a stage attempt that get spans, if there is room: the slowest
/// that succeeded, and the newest that failed, with why.
pub(super) fn tasks(
    stage: &Stage,
    most: usize,
) -> impl Iterator<Item = (&Task, Option<FailureClass>)> {
    let ended = |task: &&Task| task.status != TaskStatus::Running;
    let slowest = stage.slowest.iter().filter(ended).take(most).map(|task| (task, None));
    let failed = stage.failed.iter().rev().take(most);
    slowest.chain(failed.map(|failed| (&failed.task, Some(failed.class))))
}

/// When a task ended.
pub(super) fn end_of(task: &Task) -> Timestamp {
    SignedDuration::try_from(task.duration)
        .ok()
        .and_then(|duration| task.launched.checked_add(duration).ok())
        .unwrap_or(task.launched)
}
