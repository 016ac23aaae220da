//! Lists of keys and values in one variable, as W3C Baggage writes them:
//! `key1=value1,key2=value2`, with `%XX` for what would be misread.

use percent_encoding::percent_decode_str;

/// The entries, decoded; or the number of the first that is none, from 1.
pub(super) fn attributes(text: &str) -> Result<Vec<(String, String)>, usize> {
    entries(text)
        .map(|(number, entry)| {
            // The `=` of a key or a value is to be written as %3D.
            let (key, value) = entry.split_once('=').ok_or(number)?;
            if key.trim().is_empty() || value.contains('=') {
                return Err(number);
            }
            let key = decoded(key.trim()).ok_or(number)?;
            Ok((key, decoded(value.trim()).ok_or(number)?))
        })
        .collect()
}

/// Headers, each by itself: entry by entry, or its number where it is none.
/// A value may hold `=` (base64 ends in it), and stays as it is where it is
/// not percent-encoded.
pub(super) fn headers(text: &str) -> impl Iterator<Item = Result<(String, String), usize>> {
    entries(text).map(|(number, entry)| {
        let (key, value) = entry.split_once('=').ok_or(number)?;
        let value = value.trim();
        let value = decoded(value).unwrap_or_else(|| value.to_owned());
        Ok((key.trim().to_owned(), value))
    })
}

/// With their numbers; empty ones (a comma at the end) are none.
fn entries(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split(',').enumerate().filter_map(|(place, entry)| {
        let entry = entry.trim();
        (!entry.is_empty()).then_some((place + 1, entry))
    })
}

/// `None` where a `%` is not followed by two hexadecimal digits, or the whole
/// is not UTF-8 afterwards.
fn decoded(text: &str) -> Option<String> {
    let sound = text.split('%').skip(1).all(|after| {
        let digits = after.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    });
    let decoded = sound.then(|| percent_decode_str(text).decode_utf8().ok())??;
    Some(decoded.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn attributes_are_decoded() {
        assert_eq!(
            attributes(" team=data%2Cplatform , deployment.environment.name=prod,"),
            Ok(pairs(&[("team", "data,platform"), ("deployment.environment.name", "prod")]))
        );
        assert_eq!(attributes("a%3Db=%C3%A4%3D"), Ok(pairs(&[("a=b", "ä=")])));
        assert_eq!(attributes("a="), Ok(pairs(&[("a", "")])));
    }

    #[test]
    fn one_bad_attribute_spoils_the_list() {
        for (text, number) in
            [("a=1,b", 2), ("a=%zz", 1), ("a=1,b=%FF", 2), ("=1", 1), ("a=b=c", 1), ("a=1%2", 1)]
        {
            assert_eq!(attributes(text), Err(number), "{text}");
        }
    }

    #[test]
    fn headers_keep_what_is_not_encoded() {
        let read: Vec<_> =
            headers("authorization=Basic%20dXNlcg==, x-key = 100%, nothing,,api-key=a b").collect();
        let expected = [
            Ok(("authorization", "Basic dXNlcg==")),
            Ok(("x-key", "100%")),
            Err(3),
            Ok(("api-key", "a b")),
        ];
        let expected: Vec<_> = expected
            .into_iter()
            .map(|entry| entry.map(|(key, value)| (key.to_owned(), value.to_owned())))
            .collect();
        assert_eq!(read, expected);
    }
}
