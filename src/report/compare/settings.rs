//! Which settings differ, and which of their values may be shown: values of
//! properties are text of users, and hold passwords now and then.

use std::collections::BTreeSet;

use super::{Setting, Values};
use crate::diagnose::settings;
use crate::model::Configuration;
use crate::report::privacy::redacted;

/// The settings of both that differ, by key.
pub(super) fn differing(a: &Configuration, b: &Configuration, values: Values) -> Vec<Setting> {
    let keys: BTreeSet<&str> = a.iter().chain(b.iter()).map(|(key, _)| key).collect();
    keys.into_iter()
        .filter(|key| !settings::is_noise(key) && a.get(key) != b.get(key))
        .map(|key| {
            let (in_a, in_b) = (a.get(key), b.get(key));
            let shown =
                [in_a, in_b].into_iter().flatten().all(|value| is_shown(key, value, values));
            let value = |value: Option<&str>| value.filter(|_| shown).map(str::to_owned);
            Setting {
                key: key.to_owned(),
                a: value(in_a),
                b: value(in_b),
                in_a: in_a.is_some(),
                in_b: in_b.is_some(),
                shown,
            }
        })
        .collect()
}

fn is_shown(key: &str, value: &str, values: Values) -> bool {
    match values {
        Values::Safe => settings::is_plain(key, value),
        // Spark redacts by key, and secrets slip through: in options of JVMs
        // and URLs.
        Values::All => {
            let written = format!("{key}={value}");
            redacted(&written) == written
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Configuration {
        Configuration::new(pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())))
    }

    #[test]
    fn values_of_a_short_list_only() {
        let a = of(&[
            ("spark.app.id", "1"),
            ("spark.sql.shuffle.partitions", "200"),
            ("spark.executor.memory", "4g"),
            (
                "spark.executor.extraJavaOptions",
                "-Xmx1g -Djavax.net.ssl.trustStorePassword=hunter2",
            ),
            ("spark.hadoop.fs.s3a.access.key", "hunter2"),
            ("spark.jars", "/home/me/a.jar"),
            ("spark.same", "hunter2"),
        ]);
        let b = of(&[
            ("spark.app.id", "2"),
            ("spark.sql.shuffle.partitions", "64"),
            ("spark.jars", "/home/me/b.jar"),
            ("spark.jdbc", "postgres://me:hunter2@host/x"),
            ("spark.same", "hunter2"),
        ]);
        let safe = differing(&a, &b, Values::Safe);
        let shown: Vec<(&str, Option<&str>, Option<&str>)> = safe
            .iter()
            .filter(|setting| setting.shown)
            .map(|setting| (&*setting.key, setting.a.as_deref(), setting.b.as_deref()))
            .collect();
        assert_eq!(
            shown,
            [
                ("spark.executor.memory", Some("4g"), None),
                ("spark.sql.shuffle.partitions", Some("200"), Some("64")),
            ]
        );
        assert_eq!(safe.len(), 6);
        let all = differing(&a, &b, Values::All);
        let jars = all.iter().find(|setting| setting.key == "spark.jars").expect("it differs");
        assert_eq!(jars.b.as_deref(), Some("/home/me/b.jar"));
        let access = all.iter().find(|setting| setting.key.ends_with("access.key"));
        assert!(access.is_some_and(|setting| !setting.shown && setting.in_a));
        assert!(!format!("{safe:?}{all:?}").contains("hunter2"));
    }
}
