//! What of a run may be shown to whom, in one place.
//!
//! Texts of users (SQL, plan arguments, tables, paths, descriptions, error
//! messages, values of properties) are shown only where somebody asked for
//! them ([`Texts::Shown`]). Even then, and in every text that is always shown,
//! what looks like a secret is cut out first ([`redacted`]): people put
//! passwords into URLs and tokens into descriptions.

use std::borrow::Cow;

use crate::texts::CallSite;

/// Whether a report shows texts of users. Literals in them may be secrets, so
/// by default it does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Texts {
    Hidden,
    Shown,
}

impl Texts {
    pub fn are_shown(self) -> bool {
        self == Self::Shown
    }
}

/// What stands for a secret.
const GONE: &str = "<redacted>";

/// Ends of the words that announce a secret, in lower case without
/// separators.
const SECRET_ENDS: [&str; 14] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "secretkey",
    "accountkey",
    "sharedkey",
    "privatekey",
    "credential",
    "credentials",
    "signature",
];

/// Short ones, which are ends of harmless words too.
const SECRET_WORDS: [&str; 5] = ["pwd", "pass", "sig", "sas", "authorization"];

/// The text without what looks like a secret: the user part of URLs, values
/// after words such as `password=` or `X-Amz-Signature=`, bearer and basic
/// credentials, ids of AWS keys, JSON web tokens, private keys.
pub fn redacted(text: &str) -> Cow<'_, str> {
    let text = without_private_keys(text);
    let mut out = String::with_capacity(text.len());
    let mut rest = &*text;
    let mut expect = Expect::Nothing;
    let mut quote = None;
    while let Some(first) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix(GONE) {
            out.push_str(GONE);
            (rest, expect) = (after, Expect::Nothing);
            continue;
        }
        let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(length);
        if expect == Expect::Secret && !is_before_secret(first) && !is_scheme(word) {
            out.push_str(GONE);
            (rest, expect) = (end_of_secret(rest, quote), Expect::Nothing);
        } else if length == 0 || word == "-" {
            let (mark, after) = rest.split_at(first.len_utf8());
            expect = expect.after(first);
            quote = Some(first);
            out.push_str(mark);
            rest = after;
        } else if is_secret(word) {
            out.push_str(GONE);
            (rest, expect) = (after, Expect::Nothing);
        } else if let Some(host) = after_userinfo(after, &out) {
            out.push_str(GONE);
            out.push('@');
            (rest, expect) = (host, Expect::Nothing);
        } else {
            // The scheme of credentials stands before them.
            if !(expect == Expect::Secret && is_scheme(word)) {
                expect = Expect::of(word);
            }
            out.push_str(word);
            rest = after;
        }
    }
    if out == *text { text } else { Cow::Owned(out) }
}

/// What the next word is, by what stood before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    Nothing,
    /// A word that announces a secret stood there: `=`, `:`, `->` or a quote
    /// makes the next one a secret.
    Separator,
    /// `Bearer`: the word after a blank is one.
    Blank,
    Secret,
}

impl Expect {
    fn of(word: &str) -> Self {
        let plain: String =
            word.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
        let last = word.rsplit(['.', '_', '-']).next().unwrap_or_default().to_lowercase();
        if plain == "bearer" {
            Self::Blank
        } else if SECRET_ENDS.iter().any(|end| plain.ends_with(end))
            || SECRET_WORDS.contains(&&*last)
        {
            Self::Separator
        } else {
            Self::Nothing
        }
    }

    fn after(self, mark: char) -> Self {
        match (self, mark) {
            (Self::Separator, '=' | ':' | '>' | '\'' | '"') | (Self::Blank, ' ') => Self::Secret,
            (Self::Separator, ' ' | '-' | '(' | '`' | '\\') => Self::Separator,
            (Self::Secret, _) if is_before_secret(mark) => Self::Secret,
            _ => Self::Nothing,
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '+' | '%' | '~')
}

/// What may stand between the word that announces a secret and the secret.
fn is_before_secret(c: char) -> bool {
    matches!(c, ' ' | '=' | ':' | '"' | '\'' | '(' | '{' | '`' | '\\' | '>')
}

fn is_scheme(word: &str) -> bool {
    ["bearer", "basic", "digest", "negotiate"].contains(&word.to_ascii_lowercase().as_str())
}

/// To the end of a secret: the quote that opened it (`quote` is the mark
/// before it), or else a blank, a quote or what separates values.
fn end_of_secret(rest: &str, quote: Option<char>) -> &str {
    let closing = match quote {
        Some('"') => Some('"'),
        Some('\'') => Some('\''),
        Some('{') => Some('}'),
        _ => None,
    };
    let closed = closing.and_then(|quote| rest.find(quote));
    let ends = |c: char| c.is_whitespace() || "\"'&,;)]}<>`\\".contains(c);
    let end = closed.or_else(|| rest.find(ends)).unwrap_or(rest.len());
    rest.get(end..).unwrap_or_default()
}

/// Where the text before is the scheme of a URL and what comes next a user
/// part: what follows its `@`.
fn after_userinfo<'a>(after: &'a str, before: &str) -> Option<&'a str> {
    if !before.ends_with("://") {
        return None;
    }
    let ends = |c: char| c.is_whitespace() || "/\"'?#<>),".contains(c);
    let authority = after.get(..after.find(ends).unwrap_or(after.len()))?;
    after.get(authority.rfind('@')? + 1..)
}

/// A word that is a secret by its own shape.
fn is_secret(word: &str) -> bool {
    let aws = word.len() == 20
        && ["AKIA", "ASIA"].iter().any(|start| word.starts_with(start))
        && word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit());
    let jwt = word.starts_with("eyJ") && word.len() > 40 && word.matches('.').count() == 2;
    let known = ["ghp_", "gho_", "github_pat_", "xoxb-", "xoxp-", "dapi", "glpat-"]
        .iter()
        .any(|start| word.starts_with(start) && word.len() >= start.len() + 16);
    aws || jwt || known
}

/// PEM blocks, whose lines have no separators of their own.
fn without_private_keys(text: &str) -> Cow<'_, str> {
    const BEGIN: &str = "PRIVATE KEY-----";
    if !text.contains(BEGIN) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    // Each block ends in a line that says the words of its beginning again.
    while let Some((before, key)) = rest.split_once(BEGIN) {
        out.push_str(before);
        out.push_str(BEGIN);
        out.push_str(GONE);
        rest = key.find("-----END").map_or("", |end| &key[end..]);
        if let Some((end, after)) = rest.split_once(BEGIN) {
            out.push_str(end);
            out.push_str(BEGIN);
            rest = after;
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// A text that is always shown (names of applications, executors, hosts),
/// without secrets and control characters, on one line.
pub fn plain(text: &str) -> String {
    redacted(text).chars().map(|c| if steers(c) { ' ' } else { c }).collect()
}

/// The same, cut to so many characters.
pub fn cut(text: &str, most: usize) -> String {
    let mut cut: String = plain(text).chars().take(most).collect();
    if text.chars().nth(most).is_some() {
        cut.push('…');
    }
    cut
}

/// A text of users on one line, where it is shown.
pub(super) fn of_user(text: &str, texts: Texts, most: usize) -> Option<String> {
    (texts.are_shown() && !text.trim().is_empty()).then(|| cut(text.trim(), most))
}

/// A line break or a control character, or one that changes the direction of
/// what follows: none of them may reach a terminal or a page.
fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A stage's call site: `collect at orders.py:12`, without the folder of the
/// script. Anything else in its place is somebody's text (a description, on
/// Databricks the statement) and shown as such only.
pub fn call_site(name: &str, texts: Texts) -> Option<String> {
    if texts.are_shown() {
        return Some(cut(name, 200)).filter(|name| !name.trim().is_empty());
    }
    let CallSite { operation, file, line } = CallSite::of(name)?;
    Some(plain(&format!("{operation} at {file}:{line}")))
}

/// A plan node's name. Of scans and commands Spark puts table, path or query
/// into it: those are left out unless texts are shown.
pub fn node_name(name: &str, texts: Texts) -> String {
    if texts.are_shown() {
        return cut(name.trim(), 200);
    }
    let mut words = name.split_whitespace();
    let first = identifier(words.next().unwrap_or_default());
    let second = identifier(words.next().unwrap_or_default());
    let is_known = FORMATS.contains(&second)
        || second.ends_with("Command")
        || second.ends_with("Relation") && first == "Scan";
    if first == "WholeStageCodegen" {
        cut(name.trim(), 40)
    } else if is_known {
        format!("{first} {second}")
    } else {
        first.to_owned()
    }
}

/// Formats that Spark names in a scan.
const FORMATS: [&str; 14] = [
    "parquet",
    "orc",
    "csv",
    "json",
    "text",
    "avro",
    "binaryFile",
    "xml",
    "hive",
    "delta",
    "iceberg",
    "kafka",
    "ExistingRDD",
    "OneRowRelation",
];

fn identifier(word: &str) -> &str {
    let end = word.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    &word[..end.unwrap_or(word.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_cut_out() {
        for (text, expected) in [
            ("select 1", "select 1"),
            (
                "jdbc:postgresql://app:hunter2@db:5432/x?a=b",
                "jdbc:postgresql://<redacted>@db:5432/x?a=b",
            ),
            ("https://user@host/path", "https://<redacted>@host/path"),
            (
                "jdbc:sqlserver://db;user=a;password=hunter2;x=y",
                "jdbc:sqlserver://db;user=a;password=<redacted>;x=y",
            ),
            (
                "OPTIONS (password 'x y', dbtable 't')",
                "OPTIONS (password '<redacted>', dbtable 't')",
            ),
            ("Map(password -> hunter2, a -> b)", "Map(password -> <redacted>, a -> b)"),
            ("pwd=$ecret!&a=1", "pwd=<redacted>&a=1"),
            ("select password from users", "select password from users"),
            ("token: <redacted>, a", "token: <redacted>, a"),
            ("password = 'hunter2' and a = 1", "password = '<redacted>' and a = 1"),
            ("\"password\": \"hunter2\", \"a\": 1", "\"password\": \"<redacted>\", \"a\": 1"),
            ("Authorization: Bearer abc.def-ghi x", "Authorization: Bearer <redacted> x"),
            ("curl -H 'bearer abc.def'", "curl -H 'bearer <redacted>'"),
            (
                "s3://b/k?X-Amz-Credential=A/B&X-Amz-Signature=0af1&x=1",
                "s3://b/k?X-Amz-Credential=<redacted>&X-Amz-Signature=<redacted>&x=1",
            ),
            (
                "https://a.blob.core/x?sv=1&sig=ab%2Fcd%3D",
                "https://a.blob.core/x?sv=1&sig=<redacted>",
            ),
            ("key AKIAIOSFODNN7EXAMPLE is", "key <redacted> is"),
            ("fs.s3a.secret.key=wJalrXUtnFEMI/K7MDENG", "fs.s3a.secret.key=<redacted>"),
            ("spark.my.apiKey -> hunter2", "spark.my.apiKey -> <redacted>"),
            ("tokens=12 rows", "tokens=12 rows"),
        ] {
            assert_eq!(redacted(text), expected, "{text}");
        }
        let key = "a -----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- b";
        assert!(!redacted(key).contains("MIIE"), "{}", redacted(key));
        let two = redacted(&format!("{key} c {key}")).into_owned();
        assert!(!two.contains("MIIE") && two.matches(" b").count() == 2, "{two}");
        let jwt = format!("see eyJ{}.eyJ{}.{}", "a".repeat(20), "b".repeat(20), "c".repeat(20));
        assert_eq!(redacted(&jwt), "see <redacted>");
    }

    #[test]
    fn names_without_what_users_wrote() {
        let hidden = |name| node_name(name, Texts::Hidden);
        for (name, expected) in [
            ("Scan parquet spark_catalog.default.orders", "Scan parquet"),
            ("Scan parquet ", "Scan parquet"),
            ("BatchScan catalog.db.orders", "BatchScan"),
            ("Scan JDBCRelation((select * from t) x) [numPartitions=1]", "Scan JDBCRelation"),
            ("Scan ExistingRDD Delta Table State - s3://b/t", "Scan ExistingRDD"),
            ("WholeStageCodegen (3)", "WholeStageCodegen (3)"),
            (
                "Execute InsertIntoHadoopFsRelationCommand",
                "Execute InsertIntoHadoopFsRelationCommand",
            ),
            ("InMemoryTableScan", "InMemoryTableScan"),
            ("OverwriteByExpression noop-table", "OverwriteByExpression"),
        ] {
            assert_eq!(hidden(name), expected);
        }
        assert_eq!(node_name("Scan parquet db.t", Texts::Shown), "Scan parquet db.t");
        let site = |name| call_site(name, Texts::Hidden);
        assert_eq!(site("collect at /home/me/jobs/a.py:12").as_deref(), Some("collect at a.py:12"));
        assert_eq!(site("count at Orders.scala:17").as_deref(), Some("count at Orders.scala:17"));
        assert_eq!(site("main at <unknown>:0").as_deref(), Some("main at <unknown>:0"));
        assert_eq!(site("select 'x' from t where y at z:1"), None);
        assert_eq!(site("SELECT 1"), None);
    }

    #[test]
    fn nothing_steers_the_reader() {
        assert_eq!(plain("a\u{1b}[31m\u{202e}b\nc"), "a [31m b c");
    }

    proptest::proptest! {
        #[test]
        fn any_text_can_be_redacted(text in ".{0,200}") {
            let once = redacted(&text).into_owned();
            proptest::prop_assert_eq!(redacted(&once), once.as_str());
        }
    }
}
