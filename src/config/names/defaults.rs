//! The default rules: what of a name is of one run only (a date, a time, an
//! id) goes, with the separators around it; what may tell jobs apart stays.
//!
//! Where both are possible, the name stays as it is: a job that falls apart
//! into a name for each run has no baseline, two jobs under one name have a
//! wrong one. So a short number stays (`step-3`, `region-12`), and so does a
//! word that happens to be hexadecimal (`deadbeef`, `cafe2026`).
//!
//! Patterns are matched on a shadow of the name, in lower case and with `-`
//! for `_`: of the same length, so that places in one are places in the other.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// Stands where something was taken out, until separators are tidied.
const GONE: char = '\0';

/// What stands between parts of a name.
const SEPARATORS: [char; 16] =
    ['-', '_', '.', ',', ':', ';', '/', '\\', '|', '+', '=', '@', '~', '&', '*', '#'];

const BRACKETS: [(char, char); 6] =
    [('(', ')'), ('[', ']'), ('{', '}'), ('<', '>'), ('"', '"'), ('\'', '\'')];

/// Numbers of at least so many digits anywhere are moments (seconds,
/// milliseconds, nanoseconds since the epoch) or ids.
const LONG_NUMBER: usize = 10;
/// A hash of at least so many digits is none of the words that are spelt with
/// a to f and have a number at their end.
const LONG_HASH: usize = 12;

/// Words before a trailing number that say it is no number of a run.
const NAMING_WORDS: [&str; 23] = [
    "top",
    "zip",
    "tenant",
    "customer",
    "client",
    "account",
    "shop",
    "store",
    "site",
    "shard",
    "part",
    "partition",
    "step",
    "stage",
    "phase",
    "query",
    "version",
    "release",
    "port",
    "form",
    "iso",
    "zone",
    "region",
];

struct Patterns {
    /// Ids that Spark and resource managers give, and UUIDs.
    ids: Regex,
    /// The same where the name is nothing else.
    only_id: Regex,
    /// Dates with times and what announces them (`dt=`, `scheduled__`).
    dates: Regex,
    /// Hexadecimal words, and numbers, also with a fraction.
    hex: Regex,
    /// `run-17`, `#17`: the number goes.
    run_numbers: Regex,
    /// A number at the end, before a file's ending too.
    trailing: Regex,
}

static PATTERNS: LazyLock<Patterns> = LazyLock::new(Patterns::new);

impl Patterns {
    fn new() -> Self {
        // Constant text, and a test compiles it.
        #[expect(clippy::expect_used, reason = "constant patterns that every test compiles")]
        let regex = |text: &str| Regex::new(text).expect("a regular expression");
        let uuid = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
        let (year, month, day) =
            ("(?:19|20)[0-9]{2}", "(?:0[1-9]|1[0-2])", "(?:0[1-9]|[12][0-9]|3[01])");
        let (month1, day1) = ("(?:1[0-2]|0?[1-9])", "(?:3[01]|[12][0-9]|0?[1-9])");
        let name = "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|\
                    aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)";
        let weekday = "(?:mon|tue|wed|thu|fri|sat|sun)(?:day|s?day|nesday|rsday|urday)?,? ";
        let time = "(?:[01][0-9]|2[0-3])(?:[-:.h ]?[0-5][0-9](?:[-:.m ]?[0-5][0-9](?:[.,-]?[0-9]{1,9})?)?)?\
                    (?: ?z)?(?: ?(?:utc|gmt))?(?: ?[-+][0-9]{2}[-:]?[0-9]{2})?";
        let clock = "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:[.,][0-9]{1,9})?";
        let compact = format!("20[0-9]{{2}}{month}{day}");
        // One separator throughout: `2.13-2026` is no date.
        let year_first = ["-", r"\.", "/", " "].map(|s| format!("{year}{s}{month1}{s}{day1}"));
        let year_last = ["-", r"\.", "/"]
            .map(|s| format!("{day1}{s}{month1}{s}{year}|{month1}{s}{day1}{s}{year}"));
        let dated = format!(
            "{}|{}|(?:{weekday})?(?:(?:{day}[-./ ]?)?{name}[-./ ]{{0,2}}{year}|\
             {year}[-./ ]?{name}(?:[-./ ]?{day})?|{name}[-. ]{day1}(?:, ?| |-){year})|\
             {weekday}{name} {{1,2}}{day1} {clock}(?: [a-z]{{2,4}})? {year}",
            year_first.join("|"),
            year_last.join("|"),
        );
        let before_time = "(?:t|[-. /:]{1,2}t?)";
        // Digits run together only where the date's do.
        let moment =
            format!("(?:{compact}(?:{before_time}?{time})?|(?:{dated})(?:{before_time}{time})?)");
        // Without a day: a month, a week, a quarter, a day of the year.
        let period = format!(
            "{year}[-./]?w[0-5][0-9](?:-?[1-7])?|{year}[-./]?q[1-4]|{year}[-./]{month}|\
             20[1-5][0-9]{month}|{year}-[0-3][0-9]{{2}}"
        );
        let key = "(?:(?:run|logical|execution|exec|process|processing|business|batch|load|partition|\
                   event|start|end|report|snapshot|cob|ingest)-?)?(?:dt|ds|date|day|ts|time|timestamp)|\
                   as-?of|cob|hour|minute|month|year|week";
        let id_key = "(?:session|run|batch|query|request|trace|execution|exec|correlation)-?id";
        let airflow = "(?:scheduled|manual|backfill|dataset-triggered|asset-triggered|\
                       asset-materialization|operator-triggered)";
        Self {
            ids: regex(&format!(
                r"\b{{start-half}}(?:(?:{id_key}) ?[=:] ?(?:{uuid}|[0-9a-f]{{8,}}|[0-9]+)|{uuid}|app-[0-9]{{14}}-[0-9]{{4,}}|(?:application|appattempt|job|task)-[0-9]{{10,14}}-[0-9]{{4,}}(?:-[0-9]+)?)\b{{end-half}}"
            )),
            only_id: regex("^(?:local-[0-9]{13}|spark-[0-9a-f]{32}|spark-application-[0-9]{10,})$"),
            dates: regex(&format!(
                r"(?:\b{{start-half}}(?:(?:{airflow}--|(?:{key}) ?[=:] ?)?(?:{moment}|{period}|{clock})|(?:{key})=[0-9]{{1,4}})|[a-z](?<glued>{compact}(?:t?{time})?|20[0-9]{{2}}-{month}-{day}(?:[t-]{time})?))\b{{end-half}}"
            )),
            hex: regex(r"\b{start-half}(?:[0-9]{10,}\.[0-9]{1,9}|[0-9a-f]{8,})\b{end-half}"),
            run_numbers: regex(
                r"\b{start-half}(?:(?:run|attempt|retry|try|build|execution|session)(?:-?(?:id|no|nr|number))?(?:[-:=. ]|[-: ]#)(?<number>[0-9]+)|#[0-9]+)\b{end-half}",
            ),
            trailing: regex(
                r#"\b{start-half}(?<number>[0-9]{4,})(?:\.(?:py|jar|scala|sql|r|ipynb|json|ya?ml|sh))?[)\]}>"']*$"#,
            ),
        }
    }
}

/// The name without what is of one run only; `None` where it has nothing of
/// the sort. Empty where nothing else is in it. Stripping what was stripped
/// changes nothing.
pub(super) fn strip(name: &str) -> Option<String> {
    let mut stripped: Option<String> = None;
    // Each round takes characters out, so this ends.
    while let Some(shorter) = once(stripped.as_deref().unwrap_or(name)) {
        stripped = Some(shorter);
    }
    stripped
}

/// What goes, in a shadow of the name: ascending, without overlaps.
type Finder = fn(&str) -> Vec<Range<usize>>;

const FINDERS: [Finder; 5] = [ids, dates, hashes, run_numbers, trailing_number];

fn once(name: &str) -> Option<String> {
    if PATTERNS.only_id.is_match(&shadow(name)) {
        return Some(String::new());
    }
    // A NUL is a blank to whoever reads the label.
    let mut text = name.replace(GONE, " ");
    let mut found = false;
    for find in FINDERS {
        let ranges = find(&shadow(&text));
        found |= !ranges.is_empty();
        for range in ranges.into_iter().rev() {
            text.replace_range(range, "\0");
        }
    }
    found.then(|| tidy(&text))
}

/// Of the same length: bytes of other characters stay as they are.
fn shadow(text: &str) -> String {
    text.chars().map(|c| if c == '_' { '-' } else { c.to_ascii_lowercase() }).collect()
}

fn ids(shadow: &str) -> Vec<Range<usize>> {
    PATTERNS.ids.find_iter(shadow).map(|found| found.range()).collect()
}

/// With the time and the zone that follow, and the words that announce it.
fn dates(shadow: &str) -> Vec<Range<usize>> {
    PATTERNS
        .dates
        .captures_iter(shadow)
        .filter_map(|found| found.name("glued").or_else(|| found.get(0)))
        .map(|found| found.range())
        .collect()
}

fn hashes(shadow: &str) -> Vec<Range<usize>> {
    PATTERNS
        .hex
        .find_iter(shadow)
        .filter(|found| is_hash(found.as_str()))
        .map(|found| found.range())
        .collect()
}

fn is_hash(word: &str) -> bool {
    let letters = word.bytes().filter(u8::is_ascii_alphabetic).count();
    // One with a point is long enough before it.
    if letters == 0 {
        return word.len() >= LONG_NUMBER;
    }
    let leading = word.bytes().take_while(u8::is_ascii_alphabetic).count();
    let is_word_with_number = leading == letters && leading >= 3 && word.len() < LONG_HASH;
    letters < word.len() && !is_word_with_number
}

fn run_numbers(shadow: &str) -> Vec<Range<usize>> {
    PATTERNS
        .run_numbers
        .captures_iter(shadow)
        .filter_map(|found| found.name("number").or_else(|| found.get(0)))
        .map(|found| found.range())
        .collect()
}

fn trailing_number(shadow: &str) -> Vec<Range<usize>> {
    let Some(number) = PATTERNS.trailing.captures(shadow).and_then(|found| found.name("number"))
    else {
        return Vec::new();
    };
    let before = shadow[..number.start()].trim_end_matches(|c: char| !c.is_alphanumeric());
    let word = before.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    if NAMING_WORDS.contains(&word) { Vec::new() } else { vec![number.range()] }
}

/// Closes the gaps: brackets and quotes around nothing go, and of separators
/// on both sides of a gap those behind it stay, at an end of the name or of
/// what stands in brackets none.
fn tidy(text: &str) -> String {
    let mut out: Vec<char> = Vec::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if c != GONE {
            out.push(c);
            continue;
        }
        let mut behind: Vec<char> = Vec::new();
        loop {
            while let Some(c) = rest.next_if(|c| *c == GONE || is_separator(*c)) {
                if c == GONE {
                    behind.clear();
                } else {
                    behind.push(c);
                }
            }
            let before = out.iter().rposition(|c| !is_separator(*c));
            let around = before.map(|place| out[place]).zip(rest.peek().copied());
            match (before, around) {
                (Some(place), Some(pair)) if BRACKETS.contains(&pair) => {
                    out.truncate(place);
                    rest.next();
                    behind.clear();
                }
                _ => break,
            }
        }
        let kept = out.iter().rposition(|c| !is_separator(*c)).map_or(0, |place| place + 1);
        let ahead = out.split_off(kept);
        let is_open = |c: &char| BRACKETS.iter().any(|(open, close)| open == c && open != close);
        let is_close = |c: &char| BRACKETS.iter().any(|(open, close)| close == c && open != close);
        let inside =
            out.last().is_some_and(|c| !is_open(c)) && rest.peek().is_some_and(|c| !is_close(c));
        if inside {
            out.append(if behind.is_empty() { ahead } else { behind }.as_mut());
        }
    }
    let tidied: String = out.into_iter().collect();
    if tidied.chars().any(char::is_alphanumeric) { tidied } else { String::new() }
}

fn is_separator(c: char) -> bool {
    c.is_whitespace() || SEPARATORS.contains(&c)
}

#[cfg(test)]
mod tests;
