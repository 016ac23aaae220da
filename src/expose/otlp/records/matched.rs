//! Which finding of a reading is which of those that something was said of.

use std::collections::BTreeMap;

use crate::diagnose::Finding;
use crate::store::SentFinding;

/// Findings of a reading beside what was said before.
#[derive(Debug)]
pub(super) struct Matched<'a> {
    /// Each finding, what was said of it, and what would be said now.
    pub(super) found: Vec<(&'a Finding, Option<&'a SentFinding>, SentFinding)>,
    /// Said, and not found any more.
    pub(super) missing: Vec<&'a SentFinding>,
}

/// The few of one rule and subject.
#[derive(Debug, Default)]
struct Group<'a> {
    /// By their place in the reading.
    found: Vec<usize>,
    said: Vec<&'a SentFinding>,
}

impl<'a> Matched<'a> {
    pub(super) fn of(findings: &'a [Finding], said: &'a [SentFinding]) -> Self {
        let now: Vec<SentFinding> = findings.iter().map(as_said).collect();
        let mut groups: BTreeMap<(&str, &str), Group<'a>> = BTreeMap::new();
        for (index, finding) in now.iter().enumerate() {
            groups.entry((&finding.rule, &finding.subject)).or_default().found.push(index);
        }
        for known in said {
            groups.entry((&known.rule, &known.subject)).or_default().said.push(known);
        }
        let mut known_of: Vec<Option<&'a SentFinding>> = vec![None; findings.len()];
        let mut place_of = vec![0; findings.len()];
        let mut missing = Vec::new();
        for mut group in groups.into_values() {
            // The most alike first; those that differ in all, in their order.
            let alike: [fn(&SentFinding, &SentFinding) -> bool; 3] = [
                |one, other| one.cause == other.cause && one.severity == other.severity,
                |one, other| one.cause == other.cause,
                |_, _| true,
            ];
            for is_alike in alike {
                group.found.retain(|index| {
                    let place = group.said.iter().position(|known| is_alike(&now[*index], known));
                    known_of[*index] = place.map(|place| group.said.remove(place));
                    known_of[*index].is_none()
                });
            }
            let first = group.found.first().map(|index| &now[*index]);
            let mut taken: Vec<u32> = Vec::new();
            if let Some(first) = first {
                let same = |known: &&SentFinding| {
                    known.rule == first.rule && known.subject == first.subject
                };
                taken.extend(said.iter().filter(same).map(|known| known.place));
            }
            for index in group.found {
                // One of so many is free.
                let most = taken.len() as u32;
                let place = (0..=most).find(|place| !taken.contains(place)).unwrap_or(most);
                taken.push(place);
                place_of[index] = place;
            }
            missing.extend(group.said);
        }
        // As they were said.
        missing.sort_by_key(|known| said.iter().position(|one| std::ptr::eq(one, *known)));
        let found = findings
            .iter()
            .zip(now)
            .enumerate()
            .map(|(index, (finding, mut new))| {
                new.place = known_of[index].map_or(place_of[index], |known| known.place);
                (finding, known_of[index], new)
            })
            .collect();
        Self { found, missing }
    }
}

fn as_said(finding: &Finding) -> SentFinding {
    SentFinding {
        rule: finding.rule.as_str().to_owned(),
        cause: finding.cause.map(|cause| cause.as_str().to_owned()),
        severity: finding.severity.as_str().to_owned(),
        subject: serde_json::to_string(&finding.subject).unwrap_or_default(),
        place: 0,
    }
}
