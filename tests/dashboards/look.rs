//! How things look and what they are called: the same everywhere, and as the
//! program says.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use spark_exporter::diagnose::{Rule, Severity, TimePart, about};
use spark_exporter::model::State;

use crate::read::{all, having, text};

/// Word -> what it becomes, of every value mapping of all dashboards.
fn mappings() -> Vec<(String, BTreeMap<String, Value>)> {
    let mut found = Vec::new();
    for dashboard in all() {
        for panel in dashboard.panels() {
            let mut lists = Vec::new();
            having(&panel["fieldConfig"], "mappings", &mut lists);
            // Overrides have them under `value`, by their id.
            let mut properties = Vec::new();
            having(&panel["fieldConfig"], "properties", &mut properties);
            let of_overrides = properties.iter().flat_map(|list| list.as_array().unwrap());
            lists.extend(
                of_overrides.filter(|one| one["id"] == "mappings").map(|one| &one["value"]),
            );
            for mapping in lists.iter().flat_map(|list| list.as_array().unwrap()) {
                assert_eq!(mapping["type"], "value");
                let options = mapping["options"].as_object().unwrap();
                let options =
                    options.iter().map(|(word, what)| (word.clone(), what.clone())).collect();
                found.push((dashboard.place(panel), options));
            }
        }
    }
    found
}

/// One colour for a severity, wherever it stands, and none of them for another.
#[test]
fn colours_are_the_severities() {
    let severities: BTreeSet<&str> =
        Severity::ALL.iter().map(|severity| severity.as_str()).collect();
    let mut colours: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut tables = 0;
    for (place, options) in mappings() {
        // Tables are sorted by ranks, which become their words.
        let words: BTreeSet<&str> = options.values().map(|what| text(&what["text"])).collect();
        if words.is_disjoint(&severities) {
            continue;
        }
        tables += 1;
        assert_eq!(words, severities, "{place}: every severity and nothing else");
        let mut ranks: Vec<(&String, &str)> =
            options.iter().map(|(rank, what)| (rank, text(&what["text"]))).collect();
        ranks.sort();
        let in_order: Vec<&str> = ranks.into_iter().map(|(_, word)| word).collect();
        assert_eq!(in_order, Severity::ALL.map(Severity::as_str), "{place}");
        for what in options.values() {
            let word = text(&what["text"]).to_owned();
            colours.entry(word).or_default().insert(text(&what["color"]).to_owned());
        }
    }
    assert!(tables >= 4, "{tables}");
    let expected = [("critical", "red"), ("info", "blue"), ("warning", "orange")]
        .map(|(word, colour)| (word.to_owned(), BTreeSet::from([colour.to_owned()])));
    assert_eq!(colours, expected.into());
}

#[test]
fn every_state_of_a_run_has_its_colour() {
    let states: BTreeSet<&str> = State::ALL.iter().map(|state| state.as_str()).collect();
    let mut colours: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (place, options) in
        mappings().into_iter().filter(|(_, options)| options.contains_key("lost"))
    {
        let words: BTreeSet<&str> = options.keys().map(String::as_str).collect();
        assert_eq!(words, states, "{place}");
        for (word, what) in options {
            colours.entry(word).or_default().insert(text(&what["color"]).to_owned());
        }
    }
    assert!(colours.values().all(|of_one| of_one.len() == 1), "{colours:?}");
    let of = |word: &str| colours[word].first().unwrap().clone();
    assert_eq!([of("failed"), of("lost")], ["red", "red"].map(str::to_owned));
    assert_eq!(of("succeeded"), "green");
    assert_ne!(of("unknown"), of("succeeded"), "nothing tells how it ended: no green");
}

/// The dashboards say of a rule what the program says.
#[test]
fn rules_are_explained_in_the_program_s_words() {
    let mut seen = 0;
    for (place, options) in mappings() {
        if !options.contains_key(Rule::ALL[0].as_str()) {
            continue;
        }
        seen += 1;
        assert_eq!(options.len(), Rule::ALL.len(), "{place}");
        for rule in Rule::ALL {
            let shown = text(&options[rule.as_str()]["text"]);
            let meaning = about(rule).meaning.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(meaning.starts_with(shown), "{place}: {shown}\n{meaning}");
            assert!(shown.ends_with('.') && shown.len() >= 20, "{place}: {shown}");
        }
    }
    assert!(seen >= 3, "{seen}");
}

/// Each part of the time has a colour of its own.
#[test]
fn parts_of_the_time_have_colours() {
    let dashboards = all();
    let application = dashboards.iter().find(|dashboard| dashboard.name == "application").unwrap();
    let panels = application.panels();
    let panel = panels.iter().find(|panel| panel["title"] == "Where the time went").unwrap();
    let mut colours = BTreeSet::new();
    let mut parts = BTreeSet::new();
    for (part, properties) in crate::read::overrides(panel) {
        parts.insert(part);
        colours.insert(text(&properties[0].1["fixedColor"]).to_owned());
    }
    let expected: BTreeSet<&str> = TimePart::ALL.iter().map(|part| part.as_str()).collect();
    assert_eq!(parts, expected);
    assert_eq!(colours.len(), expected.len());
}
