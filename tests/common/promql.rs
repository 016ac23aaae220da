//! PromQL in tests: what dashboards and alerts ask for must exist. A query is
//! parsed, and held against the catalogue from its selectors outwards: each
//! metric, each label that is matched, and each label that is grouped by or
//! joined on has to be there at that place of the expression. A misspelt label
//! is no error in Prometheus, it only makes a panel empty.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{LazyLock, Mutex, PoisonError};

use promql_parser::label::Labels;
use promql_parser::parser::{
    BinaryExpr, Call, Expr, LabelModifier, VectorMatchCardinality, VectorSelector, parse, token,
};
use spark_exporter::metrics::catalogue::{CATALOGUE, Kind};

/// Labels that the scrape adds, not the exporter; some only in Kubernetes.
pub(crate) const TARGET_LABELS: [&str; 7] =
    ["job", "instance", "pod", "namespace", "container", "service", "endpoint"];

/// Series that are not the exporter's: Prometheus makes them itself.
const OF_PROMETHEUS: [(&str, &[&str]); 3] =
    [("up", &[]), ("scrape_duration_seconds", &[]), ("scrape_samples_scraped", &[])];

/// Further series that a query may ask for, with their labels: alerts, or what
/// recording rules make.
pub(crate) type More<'a> = &'a [(&'a str, &'a [&'a str])];

/// What is wrong with a query, or nothing. Grafana's variables have to be
/// replaced before: [`with_values`].
pub(crate) fn problems(query: &str, more: More<'_>) -> Vec<String> {
    match parsed(query) {
        Err(error) => vec![format!("it is no PromQL: {error}")],
        Ok(expression) => {
            let mut check = Check { more, problems: Vec::new() };
            check.labels(&expression);
            check.problems
        }
    }
}

/// The selectors of a query, from left to right.
pub(crate) fn selectors(query: &str) -> Vec<VectorSelector> {
    let mut found = Vec::new();
    gather(&parsed(query).unwrap_or_else(|error| panic!("{query}: {error}")), &mut |expression| {
        match expression {
            Expr::VectorSelector(selector) => found.push(selector.clone()),
            Expr::MatrixSelector(selector) => found.push(selector.vs.clone()),
            _ => {}
        }
    });
    found
}

/// Calls of functions in a query, outer ones first.
pub(crate) fn calls(query: &str) -> Vec<Call> {
    let mut found = Vec::new();
    gather(&parsed(query).unwrap_or_else(|error| panic!("{query}: {error}")), &mut |expression| {
        if let Expr::Call(call) = expression {
            found.push(call.clone());
        }
    });
    found
}

static VARIABLE: LazyLock<regex::Regex> = LazyLock::new(|| {
    regex::Regex::new(r"\$\{(?<a>\w+)(?:\.\w+)?(?::[\w,]+)?\}|\[\[(?<b>\w+)\]\]|\$(?<c>\w+)")
        .expect("a pattern")
});

/// A query with values in the place of Grafana's variables: the built-in ones
/// with usual values, others with `of`, in each spelling (`$x`, `${x}`,
/// `${x:regex}`, `[[x]]`).
pub(crate) fn with_values(query: &str, of: &dyn Fn(&str) -> Option<String>) -> String {
    let replaced = VARIABLE.replace_all(query, |found: &regex::Captures<'_>| {
        let name = ["a", "b", "c"].iter().find_map(|group| found.name(group)).expect("a name");
        let built_in = match name.as_str() {
            "__rate_interval" => Some("1m"),
            "__interval" => Some("15s"),
            "__range" => Some("1h"),
            "__range_s" => Some("3600"),
            "__interval_ms" => Some("15000"),
            "__from" => Some("1764000000000"),
            "__to" => Some("1764003600000"),
            _ => None,
        };
        built_in
            .map(str::to_owned)
            .or_else(|| of(name.as_str()))
            .unwrap_or_else(|| found[0].to_owned())
    });
    replaced.into_owned()
}

/// Each query is parsed once in a test binary: that takes milliseconds, and
/// several tests look at all of them.
fn parsed(query: &str) -> Result<Expr, String> {
    static PARSED: Mutex<BTreeMap<String, Result<Expr, String>>> = Mutex::new(BTreeMap::new());
    let mut parsed = PARSED.lock().unwrap_or_else(PoisonError::into_inner);
    parsed.entry(query.to_owned()).or_insert_with(|| parse(query)).clone()
}

fn gather(expression: &Expr, visit: &mut dyn FnMut(&Expr)) {
    visit(expression);
    match expression {
        Expr::Aggregate(inner) => {
            if let Some(parameter) = &inner.param {
                gather(parameter, visit);
            }
            gather(&inner.expr, visit);
        }
        Expr::Unary(inner) => gather(&inner.expr, visit),
        Expr::Paren(inner) => gather(&inner.expr, visit),
        Expr::Subquery(inner) => gather(&inner.expr, visit),
        Expr::Binary(inner) => {
            gather(&inner.lhs, visit);
            gather(&inner.rhs, visit);
        }
        Expr::Call(call) => call.args.args.iter().for_each(|argument| gather(argument, visit)),
        _ => {}
    }
}

struct Check<'a> {
    more: More<'a>,
    problems: Vec<String>,
}

impl Check<'_> {
    /// The labels that the result of this can have.
    fn labels(&mut self, expression: &Expr) -> BTreeSet<String> {
        match expression {
            Expr::VectorSelector(selector) => self.selector(selector),
            Expr::MatrixSelector(selector) => self.selector(&selector.vs),
            Expr::Unary(inner) => self.labels(&inner.expr),
            Expr::Paren(inner) => self.labels(&inner.expr),
            Expr::Subquery(inner) => self.labels(&inner.expr),
            Expr::Call(call) => self.call(call),
            Expr::Binary(binary) => self.binary(binary),
            Expr::Aggregate(aggregate) => {
                let inner = self.labels(&aggregate.expr);
                // topk and its like choose series and leave them as they are.
                let chooses = [token::T_TOPK, token::T_BOTTOMK].contains(&aggregate.op.id());
                let mut kept = match &aggregate.modifier {
                    Some(LabelModifier::Include(labels)) => {
                        self.must_have(&inner, labels, "grouped by");
                        labels.labels.iter().cloned().collect()
                    }
                    Some(LabelModifier::Exclude(labels)) => {
                        self.must_have(&inner, labels, "grouped without");
                        inner.iter().filter(|l| !labels.labels.contains(l)).cloned().collect()
                    }
                    None => BTreeSet::new(),
                };
                if chooses {
                    kept = inner;
                } else if aggregate.op.id() == token::T_COUNT_VALUES
                    && let Some(Expr::StringLiteral(label)) = aggregate.param.as_deref()
                {
                    kept.insert(label.val.clone());
                }
                kept
            }
            Expr::NumberLiteral(_) | Expr::StringLiteral(_) | Expr::Extension(_) => BTreeSet::new(),
        }
    }

    fn selector(&mut self, selector: &VectorSelector) -> BTreeSet<String> {
        let Some(name) = &selector.name else {
            self.problems.push(format!("{selector}: a selector names its metric"));
            return BTreeSet::new();
        };
        let Some(mut labels) = self.of_metric(name) else {
            self.problems.push(format!("{name} is not in the catalogue"));
            return BTreeSet::new();
        };
        labels.extend(TARGET_LABELS.map(str::to_owned));
        for matcher in
            selector.matchers.matchers.iter().chain(selector.matchers.or_matchers.iter().flatten())
        {
            if !labels.contains(&matcher.name) {
                self.problems.push(format!("{name} has no label {}", matcher.name));
            }
        }
        labels
    }

    fn of_metric(&self, name: &str) -> Option<BTreeSet<String>> {
        let other = self.more.iter().chain(&OF_PROMETHEUS).find(|(other, _)| *other == name);
        if let Some((_, labels)) = other {
            return Some(labels.iter().map(|label| (*label).to_owned()).collect());
        }
        let metric = CATALOGUE.iter().find(|metric| {
            let part = name.strip_prefix(metric.name);
            match metric.kind {
                Kind::Histogram => matches!(part, Some("_bucket" | "_sum" | "_count")),
                _ => part == Some(""),
            }
        })?;
        let le = name.ends_with("_bucket").then_some("le");
        let optional = metric.optional_labels().iter().copied();
        Some(metric.label_names().chain(optional).chain(le).map(str::to_owned).collect())
    }

    fn call(&mut self, call: &Call) -> BTreeSet<String> {
        let text = |place: usize| match call.args.args.get(place).map(AsRef::as_ref) {
            Some(Expr::StringLiteral(text)) => text.val.clone(),
            _ => String::new(),
        };
        let mut labels = BTreeSet::new();
        for argument in &call.args.args {
            labels.extend(self.labels(argument));
        }
        match call.func.name {
            "label_replace" => {
                self.must_have_one(&labels, &text(3), "label_replace reads");
                labels.insert(text(1));
            }
            "label_join" => {
                for place in 3..call.args.args.len() {
                    self.must_have_one(&labels, &text(place), "label_join reads");
                }
                labels.insert(text(1));
            }
            "histogram_quantile" => {
                self.must_have_one(&labels, "le", "histogram_quantile reads");
                labels.remove("le");
            }
            "vector" | "scalar" | "time" => labels.clear(),
            _ => {}
        }
        labels
    }

    fn binary(&mut self, binary: &BinaryExpr) -> BTreeSet<String> {
        let (left, right) = (self.labels(&binary.lhs), self.labels(&binary.rhs));
        let operator = binary.op.id();
        let matching = binary.modifier.as_ref().and_then(|modifier| modifier.matching.as_ref());
        if let Some(LabelModifier::Include(on)) = matching {
            self.must_have(&left, on, "joined on, left side:");
            self.must_have(&right, on, "joined on, right side:");
        }
        if operator == token::T_LOR {
            return left.union(&right).cloned().collect();
        }
        if operator == token::T_LAND || operator == token::T_LUNLESS {
            return left;
        }
        let Some(modifier) = &binary.modifier else {
            return left.union(&right).cloned().collect();
        };
        match (&modifier.card, matching) {
            (VectorMatchCardinality::ManyToOne(more), _) => {
                self.must_have(&right, more, "brought by group_left:");
                left.into_iter().chain(more.labels.iter().cloned()).collect()
            }
            (VectorMatchCardinality::OneToMany(more), _) => {
                self.must_have(&left, more, "brought by group_right:");
                right.into_iter().chain(more.labels.iter().cloned()).collect()
            }
            (_, Some(LabelModifier::Include(on))) => on.labels.iter().cloned().collect(),
            (_, Some(LabelModifier::Exclude(off))) => {
                left.into_iter().filter(|label| !off.labels.contains(label)).collect()
            }
            // One side can be a number.
            (_, None) => left.union(&right).cloned().collect(),
        }
    }

    fn must_have(&mut self, there: &BTreeSet<String>, asked: &Labels, how: &str) {
        for label in &asked.labels {
            self.must_have_one(there, label, how);
        }
    }

    fn must_have_one(&mut self, there: &BTreeSet<String>, label: &str, how: &str) {
        // `without (pod)` is no fault where there are no pods, and
        // label_replace reads no label where it only sets one.
        if !label.is_empty() && !there.contains(label) && !TARGET_LABELS.contains(&label) {
            let there: Vec<&str> = there.iter().map(String::as_str).collect();
            self.problems.push(format!("{how} {label}, which is not there, only {there:?}"));
        }
    }
}
