//! JSON out of a body: small answers whole, arrays element by element.
//!
//! `/stages` and `/jobs` of a busy driver are megabytes of pretty-printed
//! text of which a poll wants a few elements: they go through the visitor one
//! by one and never exist as a whole.

use std::fmt;
use std::io::Read;
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// What became of an array.
#[derive(Debug)]
pub struct Elements<S> {
    /// What the visitor made.
    pub state: S,
    /// Elements that were JSON but not of the expected shape: skipped, so
    /// that one bad element costs only itself.
    pub skipped: u64,
}

pub(crate) fn whole<T: DeserializeOwned>(reader: impl Read) -> serde_json::Result<T> {
    let mut deserializer = serde_json::Deserializer::from_reader(reader);
    let value = T::deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

pub(crate) fn each<T, S>(
    reader: impl Read,
    state: S,
    visit: impl FnMut(&mut S, T),
) -> serde_json::Result<Elements<S>>
where
    T: DeserializeOwned,
{
    let mut deserializer = serde_json::Deserializer::from_reader(reader);
    let each = Each { elements: Elements { state, skipped: 0 }, visit, element: PhantomData };
    let elements = each.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(elements)
}

struct Each<T, S, F> {
    elements: Elements<S>,
    visit: F,
    element: PhantomData<T>,
}

impl<'de, T, S, F> DeserializeSeed<'de> for Each<T, S, F>
where
    T: DeserializeOwned,
    F: FnMut(&mut S, T),
{
    type Value = Elements<S>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T, S, F> Visitor<'de> for Each<T, S, F>
where
    T: DeserializeOwned,
    F: FnMut(&mut S, T),
{
    type Value = Elements<S>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut array: A) -> Result<Self::Value, A::Error> {
        // The element's own text first: a fault in its shape then does not
        // stop the parser in the middle of the array.
        while let Some(text) = array.next_element::<Box<RawValue>>()? {
            match serde_json::from_str(text.get()) {
                Ok(element) => (self.visit)(&mut self.elements.state, element),
                Err(_) => self.elements.skipped += 1,
            }
        }
        Ok(self.elements)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    struct A {
        a: u32,
    }

    #[test]
    fn a_bad_element_costs_only_itself() {
        let json = br#"[{"a": 1}, {"a": "x"}, 7, {"a": 2, "b": []}]"#;
        let elements =
            each(&json[..], Vec::new(), |all, element: A| all.push(element.a)).expect("an array");
        assert_eq!((elements.state, elements.skipped), (vec![1, 2], 2));
    }

    #[test]
    fn an_array_that_ends_in_the_middle_is_an_error() {
        for json in ["[1, 2", "[1, 2] x", "{}", ""] {
            assert!(each(json.as_bytes(), (), |(), _: u32| ()).is_err(), "{json}");
        }
    }
}
