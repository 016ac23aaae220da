//! The application's configuration: what rules may ask of it.
//!
//! Values are kept for rules, never exported: Spark redacts by a pattern that
//! secrets slip through.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::TraceContext;

/// Spark properties, JVM facts and resource profiles of a run.
#[derive(Clone, Default, PartialEq)]
pub struct Configuration {
    properties: BTreeMap<String, String>,
    pub java_version: Option<String>,
    /// `sun.java.command`: the main class and its arguments.
    pub java_command: Option<String>,
    pub resource_profiles: Vec<ResourceProfile>,
    /// Of the driver's system properties.
    pub trace_context: Option<TraceContext>,
}

/// Values stay out of logs and test output: keys only.
impl fmt::Debug for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Configuration")
            .field("keys", &self.properties.keys())
            .field("java_version", &self.java_version)
            .field("resource_profiles", &self.resource_profiles)
            .finish_non_exhaustive()
    }
}

/// What one executor and one task of a stage ask for.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceProfile {
    pub id: u32,
    pub executor_cores: Option<u32>,
    pub executor_memory_bytes: Option<u64>,
    /// Beside the heap: what the container may have more. `None` where Spark
    /// works it out itself (the larger of 384 MiB and a tenth of the heap).
    pub executor_overhead_bytes: Option<u64>,
    /// For the Python workers of an executor, inside its container.
    pub executor_python_memory_bytes: Option<u64>,
    /// `spark.memory.offHeap.size`, where it is on.
    pub executor_off_heap_bytes: Option<u64>,
    /// Cores per task; fractions are possible in 4.x.
    pub task_cpus: f64,
}

impl Configuration {
    pub fn new(properties: impl IntoIterator<Item = (String, String)>) -> Self {
        Self { properties: properties.into_iter().collect(), ..Self::default() }
    }

    pub fn get(&self, key: &str) -> Option<&str> {
        self.properties.get(key).map(String::as_str)
    }

    /// Keys and values, ascending by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.properties.iter().map(|(key, value)| (&**key, &**value))
    }

    pub fn is_empty(&self) -> bool {
        self.properties.is_empty()
    }

    pub fn set(&mut self, key: impl Into<String>, value: impl Into<String>) {
        self.properties.insert(key.into(), value.into());
    }

    /// `true`/`false` of a property, or `default` where it is not set or is
    /// neither.
    pub fn flag(&self, key: &str, default: bool) -> bool {
        match self.get(key).map(str::trim) {
            Some(value) if value.eq_ignore_ascii_case("true") => true,
            Some(value) if value.eq_ignore_ascii_case("false") => false,
            _ => default,
        }
    }

    /// A time property in Spark's notation (`10s`, `500ms`, `2min`); a bare
    /// number has the unit `bare`, which differs from property to property.
    pub fn time(&self, key: &str, bare: Duration) -> Option<Duration> {
        let text = self.get(key)?.trim().to_ascii_lowercase();
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let number: u32 = number.parse().ok()?;
        let unit = match unit.trim() {
            "" => bare,
            "us" => Duration::from_micros(1),
            "ms" => Duration::from_millis(1),
            "s" => Duration::from_secs(1),
            "m" | "min" => Duration::from_mins(1),
            "h" => Duration::from_hours(1),
            "d" => Duration::from_hours(24),
            _ => return None,
        };
        unit.checked_mul(number)
    }

    /// A size property in Spark's notation (`512m`, `4g`, `1024`), in bytes; a
    /// bare number has the unit `bare`, in bytes. `None` where it is not set,
    /// negative or not a size.
    pub fn bytes(&self, key: &str, bare: u64) -> Option<u64> {
        size(self.get(key)?, bare)
    }

    /// Cores that one task of a stage with this resource profile takes; at
    /// least a thousandth, so that it can be divided by.
    pub fn task_cpus(&self, resource_profile_id: u32) -> f64 {
        self.resource_profiles
            .iter()
            .find(|profile| profile.id == resource_profile_id)
            .map(|profile| profile.task_cpus)
            .or_else(|| self.get("spark.task.cpus")?.trim().parse().ok())
            .filter(|cpus: &f64| cpus.is_finite())
            .unwrap_or(1.0)
            .max(0.001)
    }

    /// Whether executors run a collector whose cycles do not stop the
    /// program (ZGC, Shenandoah). Spark adds those cycles up all the same.
    pub fn concurrent_gc(&self) -> bool {
        ["spark.executor.extraJavaOptions", "spark.executor.defaultJavaOptions"]
            .iter()
            .filter_map(|key| self.get(key))
            .any(|options| options.contains("+UseZGC") || options.contains("+UseShenandoahGC"))
    }
}

/// A size as Spark writes it: `512m`, `4g`, `10MB`, `1024b`; binary units.
pub(crate) fn size(text: &str, bare: u64) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = match unit.trim() {
        "" => bare,
        "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        "t" | "tb" | "tib" => 1 << 40,
        "p" | "pb" | "pib" => 1 << 50,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_spark_s_notation() {
        let mut configuration = Configuration::default();
        for (text, expected) in [
            ("3s", Some(Duration::from_secs(3))),
            ("500ms", Some(Duration::from_millis(500))),
            ("2min", Some(Duration::from_mins(2))),
            ("7", Some(Duration::from_secs(7))),
            ("fast", None),
            ("-1", None),
        ] {
            configuration.set("spark.locality.wait", text);
            let bare = Duration::from_secs(1);
            assert_eq!(configuration.time("spark.locality.wait", bare), expected, "{text}");
        }
    }

    #[test]
    fn sizes_in_spark_s_notation() {
        let mut configuration = Configuration::default();
        for (text, expected) in [
            ("10MB", Some(10 << 20)),
            ("4g", Some(4 << 30)),
            ("512", Some(512 << 20)),
            ("10485760b", Some(10 << 20)),
            ("-1", None),
            ("large", None),
        ] {
            configuration.set("spark.driver.memory", text);
            assert_eq!(configuration.bytes("spark.driver.memory", 1 << 20), expected, "{text}");
        }
    }

    #[test]
    fn debug_output_has_no_values() {
        let configuration =
            Configuration::new([("spark.my.token".to_owned(), "hunter2".to_owned())]);
        assert!(!format!("{configuration:?}").contains("hunter2"));
    }
}
