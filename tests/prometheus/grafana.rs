//! What Grafana does with a dashboard before Prometheus sees anything of it:
//! variables get their values in order, and are put into queries.

use std::collections::BTreeMap;

use regex::{Captures, Regex};
use serde_json::Value;

use crate::servers::Prometheus;

/// The span that is looked at, and what is worked out from it.
pub(crate) const SPAN: u64 = 900;
const BUILT_IN: [(&str, &str); 8] = [
    ("__interval", "15s"),
    ("__interval_ms", "15000"),
    ("__rate_interval", "1m0s"),
    ("__range", "900s"),
    ("__range_s", "900"),
    ("__range_ms", "900000"),
    ("__from", "0"),
    ("__to", "0"),
];

/// What a variable stands for.
#[derive(Debug, Clone)]
enum Chosen {
    /// One value; escaped as part of a regular expression, or of a string.
    Values { values: Vec<String>, regex: bool },
    /// As it is: what a dashboard says that "All" is.
    Raw(String),
}

impl Chosen {
    fn text(&self, format: Option<&str>) -> Result<String, String> {
        match (self, format) {
            (Self::Raw(text), _) => Ok(text.clone()),
            (Self::Values { values, regex }, None) => Ok(if *regex {
                join(&values.iter().map(|value| escaped(value)).collect::<Vec<_>>())
            } else {
                values.concat().replace('\\', "\\\\").replace('"', "\\\"")
            }),
            (Self::Values { values, .. }, Some("regex")) => {
                Ok(join(&values.iter().map(|value| regex::escape(value)).collect::<Vec<_>>()))
            }
            (Self::Values { values, .. }, Some("pipe")) => Ok(values.join("|")),
            (Self::Values { values, .. }, Some("raw" | "text" | "csv")) => Ok(values.join(",")),
            (_, Some(format)) => Err(format!("the format {format} is not known here")),
        }
    }
}

fn join(values: &[String]) -> String {
    if values.len() == 1 { values.concat() } else { format!("({})", values.join("|")) }
}

/// As Grafana's Prometheus source escapes a value in a regular expression in a
/// string.
fn escaped(value: &str) -> String {
    let special = Regex::new(r"[$^*{}\[\]'+?.()|\\]").unwrap();
    special.replace_all(value, r"\\$0").into_owned()
}

/// A dashboard with a value for each of its variables.
pub(crate) struct Opened<'d> {
    pub(crate) dashboard: &'d Value,
    chosen: BTreeMap<String, Chosen>,
}

impl<'d> Opened<'d> {
    /// Opens it with these values chosen, as by a link; all other variables get
    /// "All", or the first value that there is.
    pub(crate) async fn at(
        prometheus: &Prometheus,
        dashboard: &'d Value,
        picks: &[(&str, &str)],
    ) -> Result<Self, String> {
        let mut opened = Self { dashboard, chosen: BTreeMap::new() };
        for variable in list(&dashboard["templating"]["list"]) {
            let name = variable["name"].as_str().unwrap();
            let chosen = match variable["type"].as_str().unwrap() {
                "query" => opened.choose(prometheus, variable, picks).await?,
                "textbox" | "constant" => {
                    Chosen::Raw(variable["query"].as_str().unwrap_or_default().to_owned())
                }
                "custom" | "interval" => {
                    let first = variable["query"].as_str().unwrap_or_default();
                    Chosen::Raw(first.split(',').next().unwrap_or_default().trim().to_owned())
                }
                "datasource" => continue,
                other => return Err(format!("${name}: variables of type {other} are not known")),
            };
            opened.chosen.insert(name.to_owned(), chosen);
        }
        Ok(opened)
    }

    async fn choose(
        &self,
        prometheus: &Prometheus,
        variable: &Value,
        picks: &[(&str, &str)],
    ) -> Result<Chosen, String> {
        let name = variable["name"].as_str().unwrap();
        let values = self.values(prometheus, variable).await?;
        let several = variable["multi"] == true || variable["includeAll"] == true;
        if let Some((_, pick)) = picks.iter().find(|(picked, _)| *picked == name) {
            return if values.iter().any(|value| value == pick) {
                Ok(Chosen::Values { values: vec![(*pick).to_owned()], regex: several })
            } else {
                Err(format!("${name} does not offer {pick}, but {values:?}"))
            };
        }
        if variable["includeAll"] == true {
            return Ok(match variable["allValue"].as_str() {
                Some(all) if !all.is_empty() => Chosen::Raw(all.to_owned()),
                _ => Chosen::Values { values, regex: true },
            });
        }
        match values.into_iter().next() {
            Some(first) => Ok(Chosen::Values { values: vec![first], regex: several }),
            None => Err(format!("${name} has no value")),
        }
    }

    /// What a variable of a query offers.
    async fn values(
        &self,
        prometheus: &Prometheus,
        variable: &Value,
    ) -> Result<Vec<String>, String> {
        let query = &variable["query"];
        let text = query.as_str().or(query["query"].as_str()).unwrap_or_default();
        let text = self.filled(text)?;
        let of_label = Regex::new(r"^label_values\((?:(.+),\s*)?(\w+)\)$").unwrap();
        let Some(found) = of_label.captures(text.trim()) else {
            return Err(format!("the query {text} is not known here"));
        };
        let path = format!("label/{}/values", &found[2]);
        let series = found.get(1).map(|series| series.as_str());
        let selector: Vec<_> = series.iter().map(|series| ("match[]", *series)).collect();
        let data = prometheus.ask(&path, &selector).await?;
        let values = list(&data).filter_map(|value| value.as_str().map(str::to_owned));
        let Some(pattern) = variable["regex"].as_str().filter(|pattern| !pattern.is_empty()) else {
            return Ok(values.collect());
        };
        let pattern = Regex::new(pattern.trim_matches('/')).map_err(|error| error.to_string())?;
        let part = |value: String| {
            let found = pattern.captures(&value)?;
            let part = found.get(1).or(found.get(0))?;
            Some(part.as_str().to_owned())
        };
        Ok(values.filter_map(part).collect())
    }

    /// A text with its variables filled in.
    pub(crate) fn filled(&self, text: &str) -> Result<String, String> {
        let variable = Regex::new(r"\$(\w+)|\$\{(\w+)(?::(\w+))?\}|\[\[(\w+)\]\]").unwrap();
        let mut wrong = None;
        let filled = variable.replace_all(text, |found: &Captures<'_>| {
            let whole = found[0].to_owned();
            let name = found.get(1).or(found.get(2)).or(found.get(4)).unwrap().as_str();
            if let Some((_, value)) = BUILT_IN.iter().find(|(built_in, _)| *built_in == name) {
                return (*value).to_owned();
            }
            match self.chosen.get(name) {
                Some(chosen) => chosen
                    .text(found.get(3).map(|format| format.as_str()))
                    .unwrap_or_else(|error| {
                        wrong = Some(error);
                        String::new()
                    }),
                // A group of label_replace.
                None if name.bytes().all(|byte| byte.is_ascii_digit()) => whole,
                None => {
                    wrong = Some(format!("{whole} is no variable of this dashboard"));
                    whole
                }
            }
        });
        let filled = filled.into_owned();
        wrong.map_or(Ok(filled), |error| Err(format!("{error}: {text}")))
    }
}

pub(crate) fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// All panels, those within rows too.
pub(crate) fn panels(dashboard: &Value) -> Vec<&Value> {
    let mut panels = Vec::new();
    for panel in list(&dashboard["panels"]) {
        panels.push(panel);
        panels.extend(list(&panel["panels"]));
    }
    panels
}
