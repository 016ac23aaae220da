//! The binary as a person uses it, on recorded runs.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use common::recorded;
use serde_json::Value;

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_spark-exporter")).args(arguments).output().unwrap()
}

fn diagnose(path: &Path, more: &[&str]) -> (i32, String, String) {
    let mut arguments = vec!["diagnose", path.to_str().unwrap()];
    arguments.extend(more);
    let output = run(&arguments);
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

fn json(path: &Path) -> Value {
    let (_, out, _) = diagnose(path, &["--format", "json"]);
    serde_json::from_str(&out).unwrap()
}

#[test]
fn exit_status_says_what_was_found() {
    let (status, out, _) = diagnose(&recorded("healthy/4.3.0"), &[]);
    assert_eq!(status, 0, "{out}");
    let (status, out, _) = diagnose(&recorded("hot_key/4.3.0"), &[]);
    assert_eq!(status, 1, "{out}");
    assert!(out.contains("data_skew, cause hot_key"), "{out}");
    let (status, ..) = diagnose(&recorded("hot_key/4.3.0"), &["--fail-on", "never"]);
    assert_eq!(status, 0);
    let (status, _, error) = diagnose(Path::new("no/such/log"), &[]);
    assert_eq!(status, 2);
    assert!(error.contains("no/such/log"), "{error}");
}

#[test]
fn the_json_keeps_to_its_schema() {
    let schema = std::fs::read_to_string("docs/diagnose.schema.json").unwrap();
    let schema = jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap();
    let mut checked = 0;
    for workload in std::fs::read_dir("examples/logs").unwrap() {
        for version in std::fs::read_dir(workload.unwrap().path()).unwrap() {
            let path = version.unwrap().path();
            let document = json(&path);
            let errors: Vec<String> = schema
                .iter_errors(&document)
                .map(|error| format!("{}: {error}", error.instance_path()))
                .collect();
            assert!(errors.is_empty(), "{}: {errors:#?}", path.display());
            checked += document["applications"].as_array().unwrap().len();
        }
    }
    assert!(checked >= 30, "only {checked} recorded runs");
    // The schema can refuse: a null where a number belongs, a word too many.
    let mut wrong = json(&recorded("hot_key/4.3.0"));
    wrong["applications"][0]["stages"][0]["tasks"] = Value::Null;
    assert!(!schema.is_valid(&wrong));
}

#[test]
fn numbers_in_the_json_are_those_of_the_run() {
    let document = json(&recorded("hot_key/4.3.0"));
    let application = &document["applications"][0];
    assert_eq!(application["spark_version"], "4.3.0");
    assert_eq!(application["source"], "event_log");
    let finding = &application["findings"][0];
    let duration = application["duration_seconds"].as_f64().unwrap();
    let saved = finding["impact"]["wall_seconds"].as_f64().unwrap();
    assert!(saved > 1.0 && saved < duration, "{saved} of {duration}");
    let stage = application["stages"]
        .as_array()
        .unwrap()
        .iter()
        .find(|stage| stage["stage_id"] == finding["subject"]["stage_id"])
        .expect("the finding's stage is listed");
    let run_time = &stage["run_time_seconds"];
    assert!(run_time["max"].as_f64() >= run_time["p95"].as_f64());
    assert!(run_time["sum"].as_f64().unwrap() >= run_time["max"].as_f64().unwrap());
}

#[test]
fn colours_only_where_asked_for() {
    let (_, plain, _) = diagnose(&recorded("hot_key/4.3.0"), &[]);
    assert!(!plain.contains('\x1b'), "no terminal, no colours");
    let (_, coloured, _) = diagnose(&recorded("hot_key/4.3.0"), &["--color", "always"]);
    assert!(coloured.contains("\x1b["));
}

/// A copy of a plain recorded log, changed line by line.
fn edited(folder: &Path, change: impl Fn(&str) -> String) -> PathBuf {
    let log = common::plain_log("executor_idle_removed/4.3.0");
    let path = folder.join("app-edited");
    let text: String = log.lines().map(|line| change(line) + "\n").collect();
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_hostile_name_steers_nobody_s_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let name = format!("say \\\"hi\\\"\\n\\u001b[31m😀{}", "x".repeat(10_000));
    let path = edited(folder.path(), |line| {
        let Some((before, rest)) = line.split_once("\"App Name\":\"") else {
            return line.to_owned();
        };
        let (_, after) = rest.split_once('"').unwrap();
        format!("{before}\"App Name\":\"{name}\"{after}")
    });
    let (_, out, _) = diagnose(&path, &[]);
    assert!(out.starts_with("say \"hi\"  [31m😀xxx"), "{}", &out[..80]);
    assert!(!out.contains('\x1b'));
    let document = json(&path);
    let name = document["applications"][0]["app_name"].as_str().unwrap();
    assert!(name.len() > 10_000, "the JSON has the name as it is");
}

#[test]
fn a_cut_log_is_read_as_far_as_it_goes_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let log = common::plain_log("executor_idle_removed/4.3.0");
    let path = folder.path().join("app-cut");
    std::fs::write(&path, &log[..log.len() - 40]).unwrap();
    let (status, out, _) = diagnose(&path, &[]);
    assert_ne!(status, 2);
    assert!(out.contains("log_truncated") || out.contains("bad_lines"), "{out}");
}

#[test]
fn what_is_no_log_is_said_to_be_none() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    std::fs::write(&page, "<html><body>Sign in</body></html>\n").unwrap();
    let (status, _, error) = diagnose(&page, &[]);
    assert_eq!(status, 2);
    assert!(error.contains("no Spark event log"), "{error}");
    let (status, _, error) = diagnose(folder.path().join("..").as_path(), &["--app-id", "none"]);
    assert_eq!(status, 2, "{error}");
    let empty = tempfile::tempdir().unwrap();
    let (status, _, error) = diagnose(empty.path(), &[]);
    assert_eq!(status, 2);
    assert!(error.contains("holds no event log"), "{error}");
}

#[test]
fn check_config_says_what_a_file_means_or_where_it_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.yml");
    let check = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let output = run(&["check-config", file.to_str().unwrap()]);
        (
            output.status.code().unwrap(),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (status, out, _) = check("clusters:\n- name: a\n  urls: ['http://x:4040']\n");
    assert_eq!(status, 0);
    assert!(out.contains("cluster \"a\""), "{out}");
    let (status, _, error) = check("clusters:\n- nmae: a\n");
    assert_eq!(status, 2);
    assert!(error.contains("line 2") && error.contains("did you mean `name`"), "{error}");
    let (status, _, error) = check("clusters:\n- name: a\n  urls: ['http://me:hunter2@x:4040']\n");
    assert_eq!(status, 2);
    assert!(!error.contains("hunter2"), "{error}");
    let (status, out, _) = check(
        "clusters:\n- name: a\n  event_log_dirs: [/mnt/logs, 'webhdfs://nn:9870/logs']\n  \
         webhdfs: {user: spark}\n",
    );
    assert_eq!(status, 0);
    assert!(
        out.contains("2 places of event logs") && out.contains("/mnt/logs (a directory)"),
        "{out}"
    );
    assert!(out.contains("webhdfs://nn:9870/logs (WebHDFS, as user spark"), "{out}");
    let (status, _, error) = check(
        "clusters:\n- name: a\n  event_log_dirs: [/x]\n  \
         object_store: {options: {aws_secret_access_key: hunter2}}\n",
    );
    assert_eq!(status, 2);
    assert!(error.contains("secret_files") && !error.contains("hunter2"), "{error}");
    let output = run(&["check-config", "no/such/file"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn check_config_says_what_is_sent_where_by_otlp() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.yml");
    let check = |text: &str, variables: &[(&str, &str)]| {
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_spark-exporter"));
        command.args(["check-config", file.to_str().unwrap()]);
        let output = command.envs(variables.iter().copied()).output().unwrap();
        let texts = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        assert!(!texts.iter().any(|text| text.contains("hunter2")), "{texts:?}");
        (output.status.code().unwrap(), texts)
    };
    let (status, [out, _]) = check(
        "otlp:\n  endpoint: https://c:4317\n  protocol: grpc\n  compression: gzip\n  \
         headers: {authorization: hunter2}\n  header_files: {x-key: /hunter}\n  \
         tls_config: {ca_file: /ca.pem}\n  traces: {sampling: {ratio: 0.1}}\n",
        &[("OTEL_LOGS_EXPORTER", "none"), ("OTEL_EXPORTER_OTLP_TIMEOUT", "hunter2")],
    );
    assert_eq!(status, 0, "{out}");
    let to = "https://c:4317 (grpc, gzip, with authorization, x-key, TLS, trusting /ca.pem)";
    assert!(out.contains(&format!("OTLP: metrics every 1m, cumulative, to {to}")), "{out}");
    assert!(out.contains("OTLP: 10% of runs, all that did not end well, up to 1day"), "{out}");
    assert!(!out.contains("as logs"), "{out}");
    assert!(out.contains("environment: OTEL_EXPORTER_OTLP_TIMEOUT is not"), "{out}");
    let (status, [_, error]) = check("otlp: {endpoint: 'http://me:hunter2@c'}\n", &[]);
    assert_eq!(status, 2);
    assert!(error.contains("otlp.endpoint holds credentials"), "{error}");
}

#[test]
fn flags_of_otlp_stand_for_keys_of_the_file() {
    for (arguments, part) in [
        (["--otlp.endpoint", "http://me:hunter2@c"], "otlp.endpoint holds credentials"),
        (["--otlp.endpoint", "hunter2:4317"], "otlp.endpoint does not start with http://"),
        (["--otlp.protocol", "hunter2"], "--otlp.protocol is http/protobuf or grpc"),
    ] {
        let output = run(&[&["--event-log.dir", "/tmp"], &arguments[..]].concat());
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(part) && !error.contains("hunter2"), "{error}");
    }
}

#[test]
fn check_config_says_what_names_become_and_by_which_rule() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.yml");
    let check = |text: &str, names: &[&str]| {
        std::fs::write(&file, text).unwrap();
        let mut arguments = vec!["check-config", file.to_str().unwrap()];
        arguments.extend(names.iter().flat_map(|name| ["--app-name", name]));
        let output = run(&arguments);
        let text = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8(text).unwrap())
    };
    let (status, out) = check(
        "names:\n  rules:\n  - {pattern: '(.+)-run\\d+', replacement: '$1'}\n\
         prices: {core_hour: 0.04, gib_hour: 0.005, currency: EUR}\n",
        &["etl-run7", "etl-2026-11-29", "step-2", "", "load password=hunter2"],
    );
    assert_eq!(status, 0, "{out}");
    for line in [
        "names: rule 1: \"(.+)-run\\\\d+\" becomes \"$1\"",
        "prices: 0.04 EUR for a core-hour, 0.005 EUR for a GiB-hour",
        "app_name \"etl-run7\" becomes \"etl\": by rule 1, \"(.+)-run\\\\d+\"",
        "app_name \"etl-2026-11-29\" becomes \"etl\": by the default rules",
        "app_name \"step-2\" becomes \"step-2\": no rule fits",
        "app_name \"\" becomes \"_unnamed\": since it is empty",
        "becomes \"load password=<redacted>\"",
    ] {
        assert!(out.contains(line), "{line} in {out}");
    }
    assert!(!out.contains("hunter2"), "{out}");

    let (status, out) = check(
        "clusters: [{name: east, event_log_dirs: [/e]}, {name: west, event_log_dirs: [/w]}]\n\
         names:\n  expected:\n  - {app_name: etl, spark_cluster: east, within: 26h}\n\
         \x20 - {app_name: e.*, within: never}\n",
        &["etl-2026-11-29", "other"],
    );
    assert_eq!(status, 0, "{out}");
    let (_, told) = out.split_once("becomes \"etl\"").expect("its name");
    let (told, other) = told.split_once("app_name").expect("the next");
    assert!(told.contains("in cluster east: has to succeed every 1day 2h"), "{told}");
    assert!(told.contains("in cluster west: nothing is expected of it"), "{told}");
    assert!(!other.contains("in cluster"), "{other}");

    let (status, out) = check("names: {default_rules: false}\n", &["etl-2026-11-29"]);
    assert_eq!(status, 0);
    assert!(out.contains("applications' names stay as they are"), "{out}");
    assert!(out.contains("becomes \"etl-2026-11-29\": no rule fits"), "{out}");

    let (status, out) = check("names:\n  rules:\n  - {pattern: 'a(', replacement: b}\n", &[]);
    assert_eq!(status, 2);
    assert!(out.contains("line 3") && out.contains("not a regular expression"), "{out}");
    let (status, out) = check("prices: {core_hour: 1}\n", &[]);
    assert_eq!(status, 2);
    assert!(out.contains("prices.currency is missing"), "{out}");
}

#[test]
fn a_location_with_a_secret_is_refused_and_not_repeated() {
    for location in ["s3://key:hunter2@bucket/x", "abfss://c@a.dfs.core.windows.net/x?sig=hunter2"]
    {
        let output = run(&["--event-log.dir", location]);
        assert_eq!(output.status.code(), Some(2));
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains("--event-log.dir") && error.contains("object_store"), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[test]
fn the_address_of_a_server_with_a_secret_is_refused_and_not_repeated() {
    let url = "http://me:hunter2@history:18080";
    for arguments in [&["--spark.url", url][..], &["diagnose", url]] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains("basic_auth"), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}

/// `make test` runs this file without features, too.
#[cfg(not(feature = "s3"))]
#[test]
fn a_store_that_is_not_built_in_is_said_at_the_start() {
    let output = run(&["--event-log.dir", "s3://bucket/x"]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("--features s3"), "{error}");
}

#[test]
fn without_a_source_it_says_how_to_give_one() {
    let output = run(&[]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("--spark.url"), "{error}");
}

#[test]
fn bad_flags_are_refused() {
    for arguments in [
        &["--spark.url", "ftp://x"][..],
        &["--spark.url", "http://x", "--retention", "soon"],
        &["--spark.url", "http://x", "--log.level", "loud"],
        &["--spark.url", "http://x", "--web.listen-address", "nowhere"],
        &["--config.file", "no/such/file"],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!output.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn an_address_in_use_is_an_error_with_a_hint() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = run(&["--spark.url", "http://127.0.0.1:1", "--web.listen-address", &address]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains(&address) && error.contains("--web.listen-address"), "{error}");
}

fn diagnose_all(sources: &[&str], more: &[&str]) -> (i32, String, String) {
    let mut arguments = vec!["diagnose"];
    arguments.extend(sources);
    arguments.extend(more);
    let output = run(&arguments);
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

/// A saved zip gives what the log in it gives, but for where it was.
#[test]
fn a_zip_saved_from_a_history_server_is_diagnosed() {
    let (status, zip, error) = diagnose(Path::new("tests/fixtures/zip/rolling-3.5.9.zip"), &[]);
    assert_ne!(status, 2, "{error}");
    assert_eq!(error, "");
    let folder = "tests/fixtures/eventlog/3.5.9/eventlog_v2_app-20261130032031-0000";
    let (_, log, _) = diagnose(Path::new(folder), &[]);
    assert_eq!(zip, log);

    // Of two attempts both, each with its line at the end.
    let (_, out, error) = diagnose(Path::new("tests/fixtures/zip/attempts-4.3.0.zip"), &[]);
    assert_eq!(error, "");
    assert!(out.contains("2 applications, worst first:"), "{out}");
    assert!(out.contains("attempts-4.3.0.zip!/local-1796009084799_2.zstd]"), "{out}");

    // Whatever its name, alone; among others by its name.
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("download");
    std::fs::copy("tests/fixtures/zip/single-4.3.0.zip", &saved).unwrap();
    assert!(diagnose(&saved, &[]).1.starts_with("small (local-1796009084799)"));
    std::fs::rename(&saved, folder.path().join("a.ZIP")).unwrap();
    std::fs::copy(
        "tests/fixtures/eventlog/4.3.0/local-1796009084799.zstd",
        folder.path().join("b"),
    )
    .unwrap();
    let (_, out, error) = diagnose(folder.path(), &[]);
    assert_eq!((out.matches("small (local-1796009084799)").count(), error.as_str()), (4, ""));

    // Cut, it says so; the rest is read.
    let whole = std::fs::read("tests/fixtures/zip/single-4.3.0.zip").unwrap();
    std::fs::write(folder.path().join("a.ZIP"), &whole[..9_000]).unwrap();
    let (status, out, error) = diagnose(folder.path(), &[]);
    assert_eq!((status, out.matches("small (local-1796009084799)").count()), (2, 1));
    assert!(error.contains("a.ZIP") && error.contains("the zip is cut"), "{error}");
}

/// Several sources of any kind, in the order given, however long each takes.
#[test]
fn many_at_once_come_in_the_order_given() {
    let hot_key = recorded("hot_key/4.3.0");
    let spill = recorded("spill/3.5.9");
    let sources = [
        hot_key.to_str().unwrap(),
        "tests/fixtures/zip/single-4.3.0.zip",
        "no/such/log",
        spill.to_str().unwrap(),
    ];
    let (status, out, error) = diagnose_all(&sources, &[]);
    assert_eq!(status, 2, "one could not be read");
    assert!(error.starts_with("spark-exporter: cannot read no/such/log"), "{error}");
    assert_eq!(error.lines().count(), 1, "no progress where there is no terminal: {error}");
    assert!(!error.contains('\x1b') && !error.contains('\r'));
    let at = |what: &str| out.find(what).unwrap_or_else(|| panic!("{what}: {out}"));
    let places =
        [at("orders-by-customer ("), at("\nsmall ("), at("\nledger-sort ("), at("3 applications,")];
    assert!(places.is_sorted(), "{places:?}");
    let table: Vec<&str> = out[places[3]..].lines().skip(1).collect();
    assert_eq!(table.len(), 3, "{out}");
    assert!(table[0].contains("CRITICAL") || table[0].contains("WARNING"), "worst first: {out}");
    assert!(table.iter().any(|line| line.contains("hot_key/4.3.0") && line.contains("40 s")));

    let (_, out, _) = diagnose_all(&sources, &["--format", "json"]);
    let document: Value = serde_json::from_str(&out).unwrap();
    let names: Vec<&str> = document["applications"]
        .as_array()
        .unwrap()
        .iter()
        .map(|application| application["app_name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["orders-by-customer", "small", "ledger-sort"]);
}

#[test]
fn of_a_directory_the_latest_can_be_chosen() {
    let folder = tempfile::tempdir().unwrap();
    let log = common::plain_log("executor_idle_removed/4.3.0");
    for number in 0..5_u64 {
        let path = folder.path().join(format!("app-{number}"));
        let text = log.replace("app-20261130", &format!("app-{number}-20261130"));
        std::fs::write(&path, text).unwrap();
        let modified = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000 * number);
        std::fs::File::open(&path).unwrap().set_modified(modified).unwrap();
    }
    let ids = |more: &[&str]| {
        let arguments = [&["--format", "json"], more].concat();
        let (_, out, error) = diagnose(folder.path(), &arguments);
        assert_eq!(error, "");
        let document: Value = serde_json::from_str(&out).unwrap();
        let all = document["applications"].as_array().unwrap().clone();
        all.iter().map(|one| one["app_id"].as_str().unwrap()[..5].to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&[]), ["app-0", "app-1", "app-2", "app-3", "app-4"]);
    assert_eq!(ids(&["--latest", "2"]), ["app-4", "app-3"]);
}

#[test]
fn a_log_that_is_still_written_is_read_and_said_to_be() {
    let folder = tempfile::tempdir().unwrap();
    let log = common::plain_log("executor_idle_removed/4.3.0");
    let going: Vec<&str> = log.lines().filter(|line| !line.contains("ApplicationEnd")).collect();
    let path = folder.path().join("app-going.inprogress");
    std::fs::write(&path, going.join("\n")).unwrap();
    let (status, out, error) = diagnose(&path, &[]);
    assert_ne!(status, 2);
    assert!(out.contains(", running, "), "{out}");
    assert!(error.contains("is still being written"), "{error}");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let recorded = recorded("many_stages/4.3.0");
    for format in ["text", "json"] {
        let command = format!(
            "{} diagnose {p} {p} {p} --format {format} --fail-on never | head -c 10 >/dev/null; \
             echo ${{PIPESTATUS[0]}}",
            env!("CARGO_BIN_EXE_spark-exporter"),
            p = recorded.display()
        );
        let output = Command::new("bash").args(["-c", &command]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "0\n", "{output:?}");
        assert!(output.stderr.is_empty(), "{output:?}");
    }
}
