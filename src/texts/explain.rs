//! `EXPLAIN FORMATTED` (and plain `EXPLAIN`) of Spark 3.x and 4.x -> [`Plan`].
//!
//! First a tree, each level three characters further in, its nodes numbered;
//! then what is to be said of each by number; then the same of subqueries,
//! which name the node that waits for them. Adaptive execution shows two
//! trees under its own node: the final (or current) plan, which counts, and
//! the initial one. A plain `EXPLAIN` has all of a node in its line.
//!
//! ```text
//! == Physical Plan ==
//! AdaptiveSparkPlan (14)
//! +- == Final Plan ==
//!    * HashAggregate (8)
//!    +- ShuffleQueryStage (7), Statistics(sizeInBytes=64.0 B, rowCount=4)
//! +- == Initial Plan ==
//!    HashAggregate (13)
//!
//! (8) HashAggregate [codegen id : 3]
//! Keys: []
//! ```

use std::collections::BTreeMap;
use std::io::{BufRead, Read};

use super::explain_details::{Details, node};
use crate::model::{Names, Plan, PlanNode};

/// A longer text is read up to here.
const TEXT: u64 = 32 << 20;

/// Nodes kept of one plan.
const NODES: usize = 5_000;

/// Levels of a tree: deeper ones than anybody's are not a tree.
const DEPTH: usize = 2_000;

#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    #[error("cannot read it: {0}")]
    Read(#[from] std::io::Error),
    #[error(
        "no physical plan is in it; save what EXPLAIN FORMATTED <query> or \
         df.explain(\"formatted\") prints, from `== Physical Plan ==` on"
    )]
    NoPlan,
}

/// One node of a tree, its children by their places.
#[derive(Debug)]
struct TreeNode {
    /// The number it has in a formatted text.
    number: Option<u32>,
    line: String,
    children: Vec<usize>,
}

#[derive(Debug, Default)]
struct Tree {
    nodes: Vec<TreeNode>,
    roots: Vec<usize>,
    omitted: u64,
}

/// A subquery's tree, and the node that waits for it.
#[derive(Debug)]
struct Subquery {
    host: Option<u32>,
    tree: Tree,
}

/// Reads the first physical plan of a text.
pub fn read(reader: impl BufRead) -> Result<Plan, ExplainError> {
    let mut text = Vec::new();
    reader.take(TEXT).read_to_end(&mut text)?;
    parse(&String::from_utf8_lossy(&text)).ok_or(ExplainError::NoPlan)
}

/// The same of a text in memory; `None` where it holds no plan.
pub fn parse(text: &str) -> Option<Plan> {
    // A result of `EXPLAIN` saved as a table has its frame around it.
    let start = text.find("== Physical Plan ==")?;
    let mut lines = text[start..].lines().map(str::trim_end).skip(1).peekable();
    let main = tree(&mut lines);
    let mut details: BTreeMap<u32, Details> = BTreeMap::new();
    let mut subqueries: Vec<Subquery> = Vec::new();
    while let Some(line) = lines.next() {
        if let Some((number, _)) = numbered(line) {
            let own = details.entry(number).or_default();
            while let Some(line) = lines.next_if(|line| !line.is_empty()) {
                own.add(line);
            }
        } else if line.starts_with("Subquery:") {
            let host = line
                .split_once("Hosting operator id = ")
                .and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok());
            subqueries.push(Subquery { host, tree: tree(&mut lines) });
        } else if line.starts_with("== ") {
            break;
        }
    }
    let mut writer = Writer {
        details: &details,
        subqueries: &subqueries,
        names: Names::default(),
        nodes: Vec::new(),
        omitted: main.omitted,
        hosts: Vec::new(),
    };
    writer.nodes_of(&main, &main.roots, None);
    let plan = Plan { nodes: writer.nodes, nodes_omitted: writer.omitted };
    (!plan.nodes.is_empty()).then(|| plan.with_ends())
}

/// The number and name of `(3) Filter [codegen id : 1]`.
fn numbered(line: &str) -> Option<(u32, &str)> {
    let (number, name) = line.strip_prefix('(')?.split_once(')')?;
    Some((number.parse().ok()?, name.trim_start()))
}

/// Reads lines up to the empty one after the tree.
fn tree<'t>(lines: &mut std::iter::Peekable<impl Iterator<Item = &'t str>>) -> Tree {
    let mut tree = Tree::default();
    // The last node of each level.
    let mut above: Vec<usize> = Vec::new();
    // Lines of the initial plan are as far in as its heading, or further.
    let mut skip_beyond: Option<usize> = None;
    while let Some(line) = lines.next_if(|line| !line.is_empty() && !line.starts_with("== ")) {
        let (indent, content) = unindent(line);
        if let Some(level) = skip_beyond {
            if indent >= level && !content.starts_with("== ") {
                continue;
            }
            skip_beyond = None;
        }
        if let Some(heading) = content.strip_prefix("== ") {
            if heading.starts_with("Initial") {
                skip_beyond = Some(indent);
            }
            continue;
        }
        let depth = indent.min(DEPTH).min(above.len());
        if tree.nodes.len() >= NODES {
            tree.omitted += 1;
            continue;
        }
        let place = tree.nodes.len();
        let number = number_of(content);
        tree.nodes.push(TreeNode { number, line: content.to_owned(), children: Vec::new() });
        above.truncate(depth);
        match above.last() {
            Some(parent) => tree.nodes[*parent].children.push(place),
            None => tree.roots.push(place),
        }
        above.push(place);
    }
    tree
}

/// How far in a line stands, in levels, and what stands there.
fn unindent(line: &str) -> (usize, &str) {
    let mut rest = line;
    let mut level = 0;
    loop {
        if let Some(inner) = rest.strip_prefix("+- ").or_else(|| rest.strip_prefix(":- ")) {
            return (level + 1, inner);
        }
        match rest.strip_prefix("   ").or_else(|| rest.strip_prefix(":  ")) {
            Some(inner) => {
                rest = inner;
                level += 1;
            }
            None => return (level, rest),
        }
    }
}

/// The number of `* HashAggregate (8)` or `ShuffleQueryStage (7), Statistics(...)`.
fn number_of(content: &str) -> Option<u32> {
    let content = content.split_once("), Statistics(").map_or(content, |(before, _)| before);
    let (_, number) = content.trim_end_matches(')').rsplit_once(" (")?;
    number.parse().ok()
}

struct Writer<'a> {
    details: &'a BTreeMap<u32, Details>,
    subqueries: &'a [Subquery],
    names: Names,
    nodes: Vec<PlanNode>,
    omitted: u64,
    /// Subqueries that are being written: one that hosts itself ends there.
    hosts: Vec<usize>,
}

impl Writer<'_> {
    /// Writes these nodes and those below them.
    fn nodes_of(&mut self, tree: &Tree, roots: &[usize], parent: Option<u32>) {
        let mut pending: Vec<(usize, Option<u32>)> =
            roots.iter().rev().map(|root| (*root, parent)).collect();
        while let Some((place, parent)) = pending.pop() {
            if self.nodes.len() >= NODES {
                self.omitted += 1;
                continue;
            }
            let written = &tree.nodes[place];
            let details = written.number.and_then(|number| self.details.get(&number));
            let own = self.nodes.len() as u32;
            self.nodes.push(node(&written.line, written.number, details, parent, &mut self.names));
            // Children before subqueries, as in Spark's own tree; they are
            // written at once, so that each node stands before those below it.
            if let Some(number) = written.number.filter(|number| self.waits(*number)) {
                self.nodes_of(tree, &written.children, Some(own));
                self.subqueries_of(number, own);
            } else {
                pending.extend(written.children.iter().rev().map(|child| (*child, Some(own))));
            }
        }
    }

    fn waits(&self, number: u32) -> bool {
        let mut all = self.subqueries.iter().enumerate();
        all.any(|(place, one)| one.host == Some(number) && !self.hosts.contains(&place))
    }

    fn subqueries_of(&mut self, number: u32, parent: u32) {
        let all = self.subqueries;
        for (place, subquery) in all.iter().enumerate() {
            if subquery.host != Some(number) || self.hosts.contains(&place) {
                continue;
            }
            self.hosts.push(place);
            let own = self.nodes.len() as u32;
            self.nodes.push(node("Subquery", None, None, Some(parent), &mut self.names));
            self.nodes_of(&subquery.tree, &subquery.tree.roots, Some(own));
            self.hosts.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(plan: &Plan) -> Vec<(&str, Option<u32>)> {
        plan.nodes.iter().map(|node| (&*node.name, node.parent)).collect()
    }

    const FORMATTED: &str = "\
== Physical Plan ==
AdaptiveSparkPlan (12)
+- == Final Plan ==
   * Project (6)
   +- * BroadcastHashJoin Inner BuildRight (5)
      :- * Filter (2)
      :  +- * Scan parquet (1)
      +- BroadcastQueryStage (4), Statistics(sizeInBytes=1.0 MiB, rowCount=40)
         +- BroadcastExchange (3)
+- == Initial Plan ==
   Project (11)
   +- BroadcastHashJoin Inner BuildRight (10)


(1) Scan parquet 
Output [2]: [id#7L, day#10]
Batched: true
Location: InMemoryFileIndex [file:/t/a, file:/t/b]
PushedFilters: [IsNotNull(id), GreaterThan(id,Subquery)]
ReadSchema: struct<id:bigint>

(2) Filter [codegen id : 2]
Input [2]: [id#7L, day#10]
Condition : (id#7L > Subquery scalar-subquery#9, [id=#31])

(5) BroadcastHashJoin [codegen id : 2]
Left keys [1]: [id#7L]
Right keys [1]: [account#5L]
Join type: Inner
Join condition: None

(12) AdaptiveSparkPlan
Arguments: isFinalPlan=true

===== Subqueries =====

Subquery:1 Hosting operator id = 2 Hosting Expression = Subquery scalar-subquery#9, [id=#31]
* HashAggregate (21)
+- * Range (20)


(20) Range [codegen id : 1]
Arguments: Range (0, 40, step=1, splits=Some(2))

(21) HashAggregate [codegen id : 1]
Keys: []
Functions [1]: [avg(id#3L)]
";

    #[test]
    fn the_final_plan_with_details_and_subqueries() {
        let plan = parse(FORMATTED).expect("a plan");
        assert_eq!(
            names(&plan),
            [
                ("AdaptiveSparkPlan", None),
                ("Project", Some(0)),
                ("BroadcastHashJoin", Some(1)),
                ("Filter", Some(2)),
                ("Scan parquet", Some(3)),
                ("Subquery", Some(3)),
                ("HashAggregate", Some(5)),
                ("Range", Some(6)),
                ("BroadcastQueryStage", Some(2)),
                ("BroadcastExchange", Some(8)),
            ]
        );
        assert_eq!(plan.children(2).map(|(place, _)| place).collect::<Vec<_>>(), [3, 8]);
        let text = |place: usize| plan.nodes[place].text.as_str();
        assert_eq!(text(2), "BroadcastHashJoin [id#7L], [account#5L], Inner, BuildRight");
        assert!(text(3).contains("(id#7L > Subquery"), "{}", text(3));
        let scan = &plan.nodes[4];
        assert_eq!(scan.metadata("PartitionFilters"), Some("[]"), "left out where it is empty");
        assert_eq!(scan.metadata("ReadSchema"), Some("struct<id:bigint>"));
        assert!(text(6).contains("functions=[avg(id#3L)]"), "{}", text(6));
    }

    #[test]
    fn a_plain_one_has_all_in_its_lines() {
        let plan = parse(
            "something before\n== Physical Plan ==\n*(2) Project [id#7L]\n\
             +- *(2) SortMergeJoin [id#7L], [id#9L], LeftOuter\n   :- *(1) Filter (id#7L > 1)\n   \
             :  +- *(1) FileScan parquet [id#7L,day#10] Batched: true, DataFilters: [(id#7L > 1)], \
             Format: Parquet, Location: InMemoryFileIndex(1 paths)[file:/t], PartitionFilters: [], \
             PushedFilters: [], ReadSchema: struct<id:bigint>\n   +- ReusedExchange [id#9L], Exchange\n",
        )
        .expect("a plan");
        assert_eq!(
            names(&plan),
            [
                ("Project", None),
                ("SortMergeJoin", Some(0)),
                ("Filter", Some(1)),
                ("Scan parquet", Some(2)),
                ("ReusedExchange", Some(1)),
            ]
        );
        assert_eq!(plan.nodes[3].metadata("PartitionFilters"), Some("[]"));
        assert!(plan.nodes[1].text.as_str().ends_with("LeftOuter"));
    }

    #[test]
    fn what_is_no_plan_and_what_is_endless() {
        assert!(parse("select 1").is_none());
        assert!(parse("== Physical Plan ==\n\n").is_none());
        let deep: String = (0..9_000)
            .flat_map(|level| ["   ".repeat(level % 900), "+- Filter\n".into()])
            .collect();
        let plan = parse(&format!("== Physical Plan ==\n{deep}")).expect("a plan");
        assert_eq!((plan.nodes.len(), plan.nodes_omitted), (NODES, 4_000));
        let own = "== Physical Plan ==\nFilter (1)\n\n\n(1) Filter\nCondition : x\n\n\
                   Subquery:1 Hosting operator id = 1 Hosting Expression = x\nFilter (1)\n\n";
        assert_eq!(parse(own).expect("a plan").nodes.len(), 3, "it does not host itself again");
    }
}
