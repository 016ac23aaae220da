//! The graph of a plan as `/sql` sends it into the tree that Spark's own plan
//! was, as event logs have it.
//!
//! Spark draws its graph from the tree and leaves out what does no work: a
//! `WholeStageCodegen` is a number on its members, the `InputAdapter` below
//! them is gone, and what is used twice has two arrows. All three are put back
//! here, so that a rule sees one shape of plan. What cannot be put back are
//! the query stages of adaptive execution: wrappers without metrics.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::metric_text;
use crate::model::{MetricKind, Names, Plan, PlanMetric, PlanNode, SqlText, StageId, shorten};
use crate::rest::sql::{ExecutionData, NodeData};

/// Metrics kept of one node.
const MOST_METRICS: usize = 200;

/// Characters kept of a metadata value, as of an event log's.
const VALUE_LENGTH: usize = 300;

/// One node still to be written.
struct Pending {
    /// Its place among the nodes that Spark sent.
    index: usize,
    parent: Option<u32>,
    /// The codegen that its parent belongs to.
    codegen: Option<u64>,
}

/// The plan of at most `most` nodes; `None` where the answer has no nodes.
pub(super) fn plan(execution: &ExecutionData, most: usize, names: &mut Names) -> Option<Plan> {
    let graph = Graph::new(execution);
    let mut writer = Writer { sql_id: execution.id.or_zero(), names, nodes: Vec::new() };
    let mut omitted = 0;
    let mut written = BTreeSet::new();
    let mut pending: Vec<Pending> = graph.roots();
    while let Some(Pending { index, parent, codegen }) = pending.pop() {
        if writer.nodes.len() >= most {
            omitted += 1;
            continue;
        }
        let Some(data) = execution.nodes.get(index) else { continue };
        let mut parent = parent;
        let own = data.whole_stage_codegen_id.get();
        if codegen.is_some() && own != codegen && !is_subquery(data) {
            parent = Some(writer.wrapper("InputAdapter", parent));
        }
        if !written.insert(index) {
            parent = Some(writer.wrapper("ReusedExchange", parent));
        }
        if let Some(id) = own.filter(|_| own != codegen) {
            let cluster = graph.cluster(id, data.node_id.or_zero());
            let cluster = cluster.and_then(|place| Some((place, execution.nodes.get(place)?)));
            parent = Some(match cluster {
                Some((place, data)) => writer.node(place, data, parent),
                None => writer.wrapper(&format!("WholeStageCodegen ({id})"), parent),
            });
        }
        let place = writer.node(index, data, parent);
        let children = graph.children(index).iter().rev();
        pending.extend(children.map(|child| Pending {
            index: *child,
            parent: Some(place),
            codegen: own,
        }));
    }
    let plan = Plan { nodes: writer.nodes, nodes_omitted: omitted };
    (!plan.nodes.is_empty()).then(|| plan.with_ends())
}

fn is_subquery(data: &NodeData) -> bool {
    data.node_name.get().starts_with("Subquery")
        || data.node_name.get().starts_with("ReusedSubquery")
}

/// Who feeds whom, by places in the answer.
struct Graph {
    children: Vec<Vec<usize>>,
    roots: Vec<usize>,
    /// Number of a codegen and of its own node -> that node's place. A cached
    /// plan has numbers of its own, which begin again at 1.
    clusters: BTreeMap<(u64, u64), usize>,
}

impl Graph {
    fn new(execution: &ExecutionData) -> Self {
        let mut places = BTreeMap::new();
        let mut clusters = BTreeMap::new();
        for (index, node) in execution.nodes.iter().enumerate() {
            if let Some(id) = node.node_id.get() {
                places.entry(id).or_insert(index);
            }
            if let Some(id) = cluster_id(node) {
                clusters.entry((id, node.node_id.or_zero())).or_insert(index);
            }
        }
        let mut children = vec![Vec::new(); execution.nodes.len()];
        let mut feeds = BTreeSet::new();
        // The arrows into a node stand in the order of its children.
        for edge in &execution.edges {
            let place = |id: super::Count| places.get(&id.get()?).copied();
            if let (Some(from), Some(to)) = (place(edge.from_id), place(edge.to_id)) {
                children[to].push(from);
                feeds.insert(from);
            }
        }
        let is_cluster = |index: &usize| cluster_id(&execution.nodes[*index]).is_some();
        let roots = (0..execution.nodes.len())
            .filter(|index| !feeds.contains(index) && !is_cluster(index))
            .collect();
        Self { children, roots, clusters }
    }

    fn roots(&self) -> Vec<Pending> {
        let root = |index: &usize| Pending { index: *index, parent: None, codegen: None };
        self.roots.iter().rev().map(root).collect()
    }

    fn children(&self, index: usize) -> &[usize] {
        self.children.get(index).map(Vec::as_slice).unwrap_or_default()
    }

    /// Of the codegens with this number the one whose members Spark numbered
    /// next after it: a member's own number is a little larger.
    fn cluster(&self, id: u64, member: u64) -> Option<usize> {
        self.clusters.range((id, 0)..=(id, member)).next_back().map(|(_, place)| *place)
    }
}

/// The number of a `WholeStageCodegen (N)`.
fn cluster_id(node: &NodeData) -> Option<u64> {
    let number = node.node_name.get().strip_prefix("WholeStageCodegen (")?;
    number.trim_end().strip_suffix(')')?.parse().ok()
}

struct Writer<'n> {
    sql_id: u64,
    names: &'n mut Names,
    nodes: Vec<PlanNode>,
}

impl Writer<'_> {
    fn push(&mut self, node: PlanNode) -> u32 {
        self.nodes.push(node);
        (self.nodes.len() - 1) as u32
    }

    fn wrapper(&mut self, name: &str, parent: Option<u32>) -> u32 {
        let name = self.names.get(name);
        self.push(PlanNode {
            text: SqlText::from(&*name),
            name,
            parent,
            end: 0,
            metadata: Vec::new(),
            metrics: Vec::new(),
            stages: Vec::new(),
        })
    }

    fn node(&mut self, index: usize, data: &NodeData, parent: Option<u32>) -> u32 {
        let mut stages: BTreeSet<StageId> = BTreeSet::new();
        let mut metrics = Vec::new();
        for (place, metric) in data.metrics.iter().take(MOST_METRICS).enumerate() {
            let parsed = metric_text::parse(metric.value.get());
            let (kind, value) = parsed.unwrap_or((MetricKind::Custom, None));
            stages.extend(value.and_then(|value| value.largest).map(|largest| largest.stage));
            metrics.push(PlanMetric {
                name: self.names.get(metric.name.get()),
                kind,
                accumulator: self.accumulator(index, place),
                value: value.map(Box::new),
            });
        }
        let mut text = data.desc.0.clone().unwrap_or_default();
        if text.is_empty() && cluster_id(data).is_some() {
            data.node_name.get().clone_into(&mut text);
        }
        let name = self.names.get(data.node_name.get());
        let metadata = metadata(&name, &text, self.names);
        self.push(PlanNode {
            name,
            text: text.into(),
            parent,
            end: 0,
            metadata,
            metrics,
            stages: stages.into_iter().collect(),
        })
    }

    /// Spark does not tell the accumulator: a number that no other metric of
    /// the application has, and that none of Spark's is.
    fn accumulator(&self, node: usize, metric: usize) -> u64 {
        (1 << 63)
            | (self.sql_id & 0x7fff_ffff) << 32
            | (node as u64 & 0xff_ffff) << 8
            | metric as u64
    }
}

/// Metadata of a scan, out of its text.
fn metadata(name: &str, text: &str, names: &mut Names) -> Vec<(Arc<str>, SqlText)> {
    if !name.starts_with("Scan ") {
        return Vec::new();
    }
    let value = |key: &str| Some(shorten(Plan::metadata_in(text, key)?, VALUE_LENGTH));
    Plan::METADATA_KEYS
        .iter()
        .filter_map(|key| Some((names.get(key), value(key)?.into())))
        .collect()
}
