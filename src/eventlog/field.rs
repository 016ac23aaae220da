//! Fields of Spark's JSON that take what comes.
//!
//! Listeners of third parties, forks and old releases write numbers as text,
//! `null` where nothing is known, and now and then an object where a word is
//! expected. One odd field must not cost the whole event, so these types never
//! fail: what they cannot use is absent.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A whole number, or nothing. Numbers beyond `i64` become its ends, which no
/// check lets pass as plausible.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Number(Option<i64>);

impl Number {
    pub(super) fn get(self) -> Option<i64> {
        self.0
    }

    /// An id: stage, attempt, job, resource profile.
    pub(super) fn id(self) -> Option<u32> {
        u32::try_from(self.0?).ok()
    }

    /// A number that is never negative.
    pub(super) fn count(self) -> Option<u64> {
        u64::try_from(self.0?).ok()
    }
}

/// A decimal number, or nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Decimal(pub(super) Option<f64>);

/// A yes or no; nothing is no.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Flag(pub(super) bool);

/// A text, or nothing. Borrowed from the line unless it has escapes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Text<'a>(Option<Cow<'a, str>>);

impl Text<'_> {
    /// The text; an empty one is none.
    pub(super) fn get(&self) -> Option<&str> {
        self.0.as_deref().filter(|text| !text.is_empty())
    }
}

/// The values of a JSON object by key: Spark's properties. Releases before
/// 1.4 wrote lists of pairs, which are read as well.
#[derive(Debug, Default)]
pub(super) struct Properties(pub(super) Vec<(String, String)>);

/// Uses up a list or an object that stands where a plain value should.
macro_rules! drain {
    () => {
        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
            while items.next_element::<IgnoredAny>()?.is_some() {}
            Ok(Self::Value::default())
        }
        fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
            while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok(Self::Value::default())
        }
    };
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Take;
        impl<'de> Visitor<'de> for Take {
            type Value = Number;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }
            fn visit_i64<E>(self, value: i64) -> Result<Number, E> {
                Ok(Number(Some(value)))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Number, E> {
                Ok(Number(Some(i64::try_from(value).unwrap_or(i64::MAX))))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Number, E> {
                // `as` stops at the ends of i64.
                Ok(Number((!value.is_nan()).then_some(value as i64)))
            }
            fn visit_str<E>(self, value: &str) -> Result<Number, E> {
                Ok(Number(value.trim().parse().ok()))
            }
            fn visit_bool<E>(self, _: bool) -> Result<Number, E> {
                Ok(Number(None))
            }
            fn visit_unit<E>(self) -> Result<Number, E> {
                Ok(Number(None))
            }
            drain!();
        }
        deserializer.deserialize_any(Take)
    }
}

impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Take;
        impl<'de> Visitor<'de> for Take {
            type Value = Decimal;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }
            fn visit_i64<E>(self, value: i64) -> Result<Decimal, E> {
                Ok(Decimal(Some(value as f64)))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Decimal, E> {
                Ok(Decimal(Some(value as f64)))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Decimal, E> {
                Ok(Decimal(value.is_finite().then_some(value)))
            }
            fn visit_str<E>(self, value: &str) -> Result<Decimal, E> {
                Ok(Decimal(value.trim().parse().ok().filter(|value: &f64| value.is_finite())))
            }
            fn visit_bool<E>(self, _: bool) -> Result<Decimal, E> {
                Ok(Decimal(None))
            }
            fn visit_unit<E>(self) -> Result<Decimal, E> {
                Ok(Decimal(None))
            }
            drain!();
        }
        deserializer.deserialize_any(Take)
    }
}

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Take;
        impl<'de> Visitor<'de> for Take {
            type Value = Flag;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true or false")
            }
            fn visit_bool<E>(self, value: bool) -> Result<Flag, E> {
                Ok(Flag(value))
            }
            fn visit_i64<E>(self, _: i64) -> Result<Flag, E> {
                Ok(Flag(false))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Flag, E> {
                Ok(Flag(value == 1))
            }
            fn visit_f64<E>(self, _: f64) -> Result<Flag, E> {
                Ok(Flag(false))
            }
            fn visit_str<E>(self, value: &str) -> Result<Flag, E> {
                Ok(Flag(value == "true"))
            }
            fn visit_unit<E>(self) -> Result<Flag, E> {
                Ok(Flag(false))
            }
            drain!();
        }
        deserializer.deserialize_any(Take)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Take;
        impl<'de> Visitor<'de> for Take {
            type Value = Text<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }
            fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Some(Cow::Borrowed(value))))
            }
            fn visit_str<E>(self, value: &str) -> Result<Text<'de>, E> {
                Ok(Text(Some(Cow::Owned(value.to_owned()))))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Text<'de>, E> {
                Ok(Text(Some(Cow::Owned(value.to_string()))))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Text<'de>, E> {
                Ok(Text(Some(Cow::Owned(value.to_string()))))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Text<'de>, E> {
                Ok(Text(Some(Cow::Owned(value.to_string()))))
            }
            fn visit_bool<E>(self, value: bool) -> Result<Text<'de>, E> {
                Ok(Text(Some(Cow::Owned(value.to_string()))))
            }
            fn visit_unit<E>(self) -> Result<Text<'de>, E> {
                Ok(Text(None))
            }
            drain!();
        }
        deserializer.deserialize_any(Take)
    }
}

/// An object; anything else stands for one without fields.
#[derive(Debug, Default)]
pub(super) struct Object<T>(pub(super) T);

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Take<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de> + Default> Visitor<'de> for Take<T> {
            type Value = Object<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Object<T>, A::Error> {
                T::deserialize(de::value::MapAccessDeserializer::new(entries)).map(Object)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Object<T>, A::Error> {
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Object::default())
            }
            fn visit_bool<E>(self, _: bool) -> Result<Object<T>, E> {
                Ok(Object::default())
            }
            fn visit_i64<E>(self, _: i64) -> Result<Object<T>, E> {
                Ok(Object::default())
            }
            fn visit_u64<E>(self, _: u64) -> Result<Object<T>, E> {
                Ok(Object::default())
            }
            fn visit_f64<E>(self, _: f64) -> Result<Object<T>, E> {
                Ok(Object::default())
            }
            fn visit_str<E>(self, _: &str) -> Result<Object<T>, E> {
                Ok(Object::default())
            }
            fn visit_unit<E>(self) -> Result<Object<T>, E> {
                Ok(Object::default())
            }
        }
        deserializer.deserialize_any(Take(std::marker::PhantomData))
    }
}

impl<'de> Deserialize<'de> for Properties {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Take;
        impl<'de> Visitor<'de> for Take {
            type Value = Properties;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("properties")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Properties, A::Error> {
                let mut properties = Vec::new();
                while let Some((key, value)) = entries.next_entry::<String, Text<'de>>()? {
                    properties.push((key, value.get().unwrap_or_default().to_owned()));
                }
                Ok(Properties(properties))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Properties, A::Error> {
                let mut properties = Vec::new();
                while let Some(pair) = items.next_element::<Vec<Text<'de>>>()? {
                    if let [key, value] = pair.as_slice() {
                        let text = |field: &Text<'_>| field.get().unwrap_or_default().to_owned();
                        properties.push((text(key), text(value)));
                    }
                }
                Ok(Properties(properties))
            }
            fn visit_unit<E>(self) -> Result<Properties, E> {
                Ok(Properties::default())
            }
        }
        deserializer.deserialize_any(Take)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse<'a, T: Deserialize<'a>>(json: &'a str) -> T {
        serde_json::from_str(json).expect("never fails on valid JSON")
    }

    #[test]
    fn numbers_take_what_comes() {
        for (json, expected) in [
            ("7", Some(7)),
            ("-1", Some(-1)),
            ("\"42\"", Some(42)),
            ("1.9", Some(1)),
            ("99999999999999999999", Some(i64::MAX)),
            ("18446744073709551615", Some(i64::MAX)),
            ("null", None),
            ("true", None),
            ("\"many\"", None),
            ("{\"a\":[1]}", None),
            ("[1,2]", None),
        ] {
            assert_eq!(parse::<Number>(json).get(), expected, "{json}");
        }
        assert_eq!(parse::<Number>("-1").count(), None);
        assert_eq!(parse::<Number>("4294967296").id(), None);
    }

    #[test]
    fn texts_borrow_unless_escaped() {
        assert!(matches!(parse::<Text<'_>>("\"plain\""), Text(Some(Cow::Borrowed("plain")))));
        assert_eq!(parse::<Text<'_>>("\"a\\n\\u00e9\"").get(), Some("a\né"));
        assert_eq!(parse::<Text<'_>>("3").get(), Some("3"));
        assert_eq!(parse::<Text<'_>>("{}").get(), None);
        assert_eq!(parse::<Text<'_>>("\"\"").get(), None);
    }

    #[test]
    fn properties_as_object_and_as_pairs() {
        let expected = vec![("a".to_owned(), "1".to_owned())];
        assert_eq!(parse::<Properties>("{\"a\":\"1\"}").0, expected);
        assert_eq!(parse::<Properties>("[[\"a\",1]]").0, expected);
    }
}
