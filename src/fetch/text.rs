//! A glance at a body that is not what was asked for: enough to recognise a
//! login page, too little to fill a log or to smuggle anything into it.

/// Characters of a foreign body that an error shows.
const SHOWN: usize = 120;

/// The first words of a body: the title of an HTML page, or its text without
/// tags; control characters and runs of blanks become one blank.
pub(crate) fn glance(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let words = title(&text).map_or_else(|| without_tags(&text), str::to_owned);
    let mut shown = String::new();
    let mut count = 0;
    for word in words.split(|c: char| c.is_whitespace() || is_unprintable(c)) {
        if word.is_empty() {
            continue;
        }
        if count >= SHOWN {
            shown.push('…');
            return shown;
        }
        if count > 0 {
            shown.push(' ');
            count += 1;
        }
        for c in word.chars() {
            if count >= SHOWN {
                shown.push('…');
                return shown;
            }
            shown.push(c);
            count += 1;
        }
    }
    shown
}

/// Control characters, and those that turn the direction of the text around
/// or are invisible: they could forge a log line.
fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

fn title(text: &str) -> Option<&str> {
    let lower = text.to_ascii_lowercase();
    let open = lower.find("<title")?;
    let start = open + lower[open..].find('>')? + 1;
    let end = start + lower[start..].find("</title")?;
    let title = text.get(start..end)?.trim();
    (!title.is_empty()).then_some(title)
}

fn without_tags(text: &str) -> String {
    let mut in_tag = false;
    let mut kept = String::new();
    for c in text.chars() {
        match c {
            '<' => in_tag = true,
            '>' if in_tag => {
                in_tag = false;
                kept.push(' ');
            }
            _ if in_tag => {}
            _ => kept.push(c),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_title_of_a_page_says_most() {
        let page = b"<!DOCTYPE html>\n<html><head><TITLE>Sign in\n to\x1b[31m Okta</TITLE>";
        assert_eq!(glance(page), "Sign in to [31m Okta");
        assert_eq!(glance(b"<p>no <b>such</b>\r\napp</p>"), "no such app");
    }

    proptest! {
        #[test]
        fn is_one_short_printable_line(body in proptest::collection::vec(any::<u8>(), 0..600)) {
            let shown = glance(&body);
            prop_assert!(shown.chars().count() <= SHOWN + 1);
            prop_assert!(!shown.chars().any(is_unprintable));
        }

        #[test]
        fn any_text_is_one_short_printable_line(body in "\\PC{0,300}") {
            prop_assert!(glance(body.as_bytes()).chars().count() <= SHOWN + 1);
        }
    }
}
