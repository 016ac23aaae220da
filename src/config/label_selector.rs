//! Label selectors of Kubernetes, checked when the configuration is read: a
//! wrong one would otherwise be refused by the API server, again and again,
//! while nothing is found.
//!
//! The grammar is that of `kubectl get -l`: requirements with commas between,
//! each `key`, `!key`, `key=value`, `key==value`, `key!=value`,
//! `key in (a,b)`, `key notin (a,b)`, `key>1` or `key<1`.

/// The longest name of a label, and the longest value.
const LONGEST: usize = 63;
/// The longest prefix of a name (`app.kubernetes.io` in
/// `app.kubernetes.io/name`).
const LONGEST_PREFIX: usize = 253;

/// Why a text is no label selector.
pub(super) fn check(selector: &str) -> Result<(), String> {
    if selector.trim().is_empty() {
        return Err("is empty: leave it out to select everything".to_owned());
    }
    requirements(selector)?.into_iter().try_for_each(requirement)
}

/// Why a text is no name of a label or annotation.
pub(super) fn check_key(key: &str) -> Result<(), String> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if let Some(prefix) = prefix
        && (prefix.len() > LONGEST_PREFIX || !prefix.split('.').all(is_dns_label))
    {
        return Err(format!("{prefix:?}, before the slash of {key:?}, is not a DNS name"));
    }
    if name.is_empty() || !is_name(name) {
        return Err(format!(
            "{key:?} is not the name of a label: up to {LONGEST} letters, digits, '-', '_' and \
             '.', a letter or digit at both ends, perhaps after a DNS name and a slash"
        ));
    }
    Ok(())
}

/// Whether a text can be a part of a DNS name, as a namespace is.
pub(super) fn is_dns_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=LONGEST).contains(&text.len())
        && text.bytes().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// Cut at the commas that are not inside parentheses.
fn requirements(selector: &str) -> Result<Vec<&str>, String> {
    let mut parts = Vec::new();
    let (mut begin, mut inside) = (0, false);
    for (at, character) in selector.char_indices() {
        match character {
            '(' if inside => return Err("has a '(' inside parentheses".to_owned()),
            ')' if !inside => return Err("has a ')' without a '(' before it".to_owned()),
            '(' | ')' => inside = character == '(',
            ',' if !inside => {
                parts.push(&selector[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    if inside {
        return Err("has a '(' without a ')' after it".to_owned());
    }
    parts.push(&selector[begin..]);
    Ok(parts)
}

fn requirement(text: &str) -> Result<(), String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("has two commas without anything between, or one at an end".to_owned());
    }
    if let Some(list) = text.strip_suffix(')') {
        return set(text, list);
    }
    for operator in ["!=", "==", "="] {
        if let Some((key, value)) = text.split_once(operator) {
            check_key(key.trim())?;
            return check_value(value.trim());
        }
    }
    if let Some((key, number)) = text.split_once(['<', '>']) {
        check_key(key.trim())?;
        let number = number.trim();
        let parsed: Result<i64, _> = number.parse();
        return parsed.map(drop).map_err(|_| format!("compares with {number:?}, not a number"));
    }
    check_key(text.strip_prefix('!').unwrap_or(text).trim())
}

/// `key in (a,b)`, `key notin (a,b)`; `list` without the last parenthesis.
fn set(text: &str, list: &str) -> Result<(), String> {
    let unknown =
        || format!("has {text:?}: write `key in (a,b)` or `key notin (a,b)` where values are many");
    let (head, values) = list.split_once('(').ok_or_else(unknown)?;
    let mut words = head.split_whitespace();
    let (Some(key), Some("in" | "notin"), None) = (words.next(), words.next(), words.next()) else {
        return Err(unknown());
    };
    check_key(key)?;
    values.split(',').try_for_each(|value| check_value(value.trim()))
}

fn check_value(value: &str) -> Result<(), String> {
    if value.is_empty() || is_name(value) {
        return Ok(());
    }
    Err(format!(
        "has the value {value:?}: a label's value has up to {LONGEST} letters, digits, '-', '_' \
         and '.', a letter or digit at both ends"
    ))
}

fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    bytes.len() <= LONGEST
        && bytes.iter().all(inner)
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kubectl_takes() {
        for selector in [
            "team=etl",
            "team = etl , tier!=test",
            "app.kubernetes.io/part-of==spark",
            "team",
            "!team",
            "team in (etl, ml),tier notin (test,)",
            "priority>3,priority<9",
            "empty=",
        ] {
            assert_eq!(check(selector), Ok(()), "{selector}");
        }
    }

    #[test]
    fn what_the_api_server_would_refuse() {
        for (selector, part) in [
            ("", "empty"),
            ("team=etl,", "comma"),
            ("team=e t l", "e t l"),
            ("=etl", "not the name"),
            ("-team=etl", "not the name"),
            ("Team.Example/x=1", "not a DNS name"),
            ("team in etl", "not the name"),
            ("team on (etl)", "write `key in (a,b)`"),
            ("team in (etl", "without a ')'"),
            ("team in etl)", "without a '('"),
            ("team in ((etl))", "inside"),
            ("priority>high", "not a number"),
        ] {
            let error = check(selector).unwrap_err();
            assert!(error.contains(part), "{selector}: {error}");
        }
        assert!(check(&format!("team={}", "x".repeat(64))).is_err());
    }
}
