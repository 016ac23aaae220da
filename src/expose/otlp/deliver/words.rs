//! What a back end writes into its answers, made fit for a log: it may repeat
//! what we sent it, credentials included.

use http::HeaderMap;
use prost::Message;

use crate::report::privacy::redacted;

/// Longer texts say nothing that their beginning does not.
const LENGTH: usize = 300;
/// A secret shorter than this is none, and would cut words of harmless texts
/// to pieces.
const LEAST_SECRET: usize = 4;

/// One line, cut, without what `headers` hold and what looks like a secret.
pub(super) fn plain(text: &str, headers: &HeaderMap) -> String {
    let mut text = text.to_owned();
    for value in headers.values().filter_map(|value| value.to_str().ok()) {
        // "Bearer x" whole, and "x" alone.
        for secret in [Some(value), value.rsplit(' ').next()].into_iter().flatten() {
            if secret.len() >= LEAST_SECRET {
                text = text.replace(secret, "<secret>");
            }
        }
    }
    let text = redacted(&text);
    let mut line = String::new();
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()) {
        if word.is_empty() {
            continue;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > LENGTH {
            let end = (0..=LENGTH).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
            line.truncate(end);
            line.push('…');
            break;
        }
    }
    line
}

/// What the body of an error says: OTLP's own way is a `google.rpc.Status`.
pub(super) fn of_error(content_type: &str, body: &[u8], headers: &HeaderMap) -> String {
    if content_type.starts_with("text/html") {
        return "an HTML page".to_owned();
    }
    if content_type.starts_with("application/x-protobuf") {
        let status = tonic_types::Status::decode(body).unwrap_or_default();
        return plain(&status.message, headers);
    }
    // The beginning is enough, and may be cut within a character.
    let start = &body[..body.len().min(4 * 1024)];
    plain(&String::from_utf8_lossy(start), headers)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn what_we_sent_is_not_repeated() {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", HeaderValue::from_static("Bearer hunter2"));
        headers.insert("x-key", HeaderValue::from_static("correct horse"));
        let text = plain("token hunter2 is\n\tnot  known; correct horse; horse", &headers);
        assert!(!text.contains("hunter2") && !text.contains("horse"), "{text}");
        assert!(text.contains("not known"), "{text}");
        assert!(plain(&"ä".repeat(500), &headers).len() < LENGTH + 10);
    }

    #[test]
    fn errors_in_protobuf_in_text_and_as_a_page() {
        let none = HeaderMap::new();
        let status =
            tonic_types::Status { message: "no such tenant".to_owned(), ..Default::default() };
        let body = status.encode_to_vec();
        assert_eq!(of_error("application/x-protobuf", &body, &none), "no such tenant");
        assert_eq!(
            of_error("text/plain", b"quota \xff exceeded\n", &none),
            "quota \u{fffd} exceeded"
        );
        assert_eq!(of_error("text/html; charset=utf-8", b"<html>", &none), "an HTML page");
    }
}
