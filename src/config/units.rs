//! Humane units in the configuration file: `30m`, `64MiB`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A time span, written as humantime reads it: `15s`, `1h 30m`, `7d`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(Duration);

impl Span {
    pub const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }
    pub const fn millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }
    pub const fn get(self) -> Duration {
        self.0
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for Span {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        humantime::parse_duration(text.trim())
            .map(Self)
            .map_err(|error| format!("{text:?} is not a time span such as 30s, 15m or 1d: {error}"))
    }
}

/// A size in bytes, written `64MiB`, `1GB` or as a bare number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(u64);

impl Size {
    pub const fn kib(kib: u64) -> Self {
        Self(kib << 10)
    }
    pub const fn mib(mib: u64) -> Self {
        Self(mib << 20)
    }
    pub const fn gib(gib: u64) -> Self {
        Self(gib << 30)
    }
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

const SIZE_UNITS: [(&str, u64); 9] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("B", 1),
];

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = SIZE_UNITS[..4]
            .iter()
            .rev()
            .find(|(_, factor)| self.0 > 0 && self.0.is_multiple_of(*factor));
        match exact {
            Some((unit, factor)) => write!(f, "{}{unit}", self.0 / factor),
            None => write!(f, "{}B", self.0),
        }
    }
}

impl fmt::Debug for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for Size {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || format!("{text:?} is not a size such as 64MiB, 1GB or 1048576");
        let trimmed = text.trim();
        let digits = trimmed.find(|c: char| !c.is_ascii_digit()).unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(digits);
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let unit = unit.trim();
        let factor = if unit.is_empty() {
            1
        } else {
            SIZE_UNITS
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case(unit))
                .map(|(_, factor)| *factor)
                .ok_or_else(wrong)?
        };
        number.checked_mul(factor).map(Self).ok_or_else(wrong)
    }
}

macro_rules! as_text {
    ($type:ty) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
as_text!(Span);
as_text!(Size);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in
            [("64MiB", 64 << 20), ("1 GB", 1_000_000_000), ("42", 42), ("7kib", 7168)]
        {
            assert_eq!(text.parse::<Size>().map(Size::bytes), Ok(bytes), "{text}");
        }
        for text in ["", "MiB", "1.5GiB", "-1", "99999999999TiB", "3 parsecs"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
        assert_eq!(Size::mib(64).to_string(), "64MiB");
        assert_eq!(Size(1000).to_string(), "1000B");
    }

    #[test]
    fn spans() {
        assert_eq!("15m".parse(), Ok(Span::seconds(900)));
        assert!("soon".parse::<Span>().is_err());
    }
}
