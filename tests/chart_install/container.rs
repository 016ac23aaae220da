//! The container of the chart's pod without a kubelet: its volumes become
//! folders, and the real program runs with the arguments that were rendered,
//! every path moved below one folder.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::common::kubernetes::objects::objects;
use crate::common::real::Program;

/// Where a pod's files lie.
pub(crate) struct Container {
    folder: tempfile::TempDir,
    /// Where they are mounted; longer ones first.
    mounts: Vec<String>,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    /// As it was rendered.
    container: Value,
}

impl Container {
    /// Of the pod that a Deployment or StatefulSet among these objects makes
    /// (the last one of many). `secrets` are files by `NAME/KEY`, beside those
    /// of the objects themselves.
    pub(crate) fn new(objects: &[Value], secrets: &[(&str, String)]) -> Self {
        let owner = objects
            .iter()
            .find(|object| object["kind"] == "Deployment" || object["kind"] == "StatefulSet")
            .unwrap();
        let pod = &owner["spec"]["template"]["spec"];
        let container = &pod["containers"][0];
        let folder = tempfile::tempdir().unwrap();
        let mut mounts = Vec::new();
        for mount in container["volumeMounts"].as_array().unwrap() {
            let path = mount["mountPath"].as_str().unwrap();
            let place = folder.path().join(path.trim_start_matches('/'));
            std::fs::create_dir_all(&place).unwrap();
            let named = |volume: &&Value| volume["name"] == mount["name"];
            let volume = pod["volumes"].as_array().unwrap().iter().find(named);
            // A claim of a StatefulSet is no volume of its template.
            if let Some(volume) = volume {
                fill(&place, volume, objects, secrets);
            }
            mounts.push(path.to_owned());
        }
        mounts.sort_by_key(|path| std::cmp::Reverse(path.len()));
        let name = format!(
            "{}-{}",
            owner["metadata"]["name"].as_str().unwrap(),
            owner["spec"]["replicas"].as_u64().unwrap() - 1
        );
        let environment = container["env"].as_array().into_iter().flatten().map(|entry| {
            let field = entry["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.name";
            let value = if field { &name } else { entry["value"].as_str().unwrap() };
            (entry["name"].as_str().unwrap().to_owned(), value.to_owned())
        });
        let environment: Vec<(String, String)> = environment.collect();
        let arguments = container["args"].as_array().unwrap().iter().map(|argument| {
            let mut argument = argument.as_str().unwrap().to_owned();
            for (name, value) in &environment {
                argument = argument.replace(&format!("$({name})"), value);
            }
            argument
        });
        let arguments = arguments.collect();
        let container = container.clone();
        Self { folder, mounts, arguments, environment, container }.moved()
    }

    /// Paths in arguments and files are those below the folder.
    fn moved(mut self) -> Self {
        let arguments = self.arguments.iter().map(|argument| self.below(argument)).collect();
        self.arguments = arguments;
        for file in crate::common::places::files_below(self.folder.path()) {
            if let Ok(text) = std::fs::read_to_string(&file) {
                std::fs::write(&file, self.below(&text)).unwrap();
            }
        }
        self
    }

    fn below(&self, text: &str) -> String {
        let mounts: Vec<String> = self.mounts.iter().map(|path| regex::escape(path)).collect();
        let pattern = regex::Regex::new(&mounts.join("|")).unwrap();
        let root = self.folder.path().to_str().unwrap();
        let moved = |found: &regex::Captures<'_>| format!("{root}{}", &found[0]);
        pattern.replace_all(text, moved).into_owned()
    }

    /// Where this path of the container is.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path.trim_start_matches('/'))
    }

    /// The configuration, which finds its API server by this kubeconfig file
    /// instead of by the environment of a pod.
    pub(crate) fn reaches_by(&self, kubeconfig: &Path) {
        let file = self.path("/etc/spark-exporter/config.yml");
        let mut config = objects(&std::fs::read_to_string(&file).unwrap()).remove(0);
        for cluster in config["clusters"].as_array_mut().into_iter().flatten() {
            if let Some(kubernetes) = cluster["kubernetes"].as_object_mut() {
                kubernetes.insert("kubeconfig_file".to_owned(), kubeconfig.to_str().into());
            }
        }
        std::fs::write(&file, config.to_string()).unwrap();
    }

    /// The program as the container runs it, but for its port, and the port.
    pub(crate) fn run(&self) -> (Program, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spark-exporter"));
        command.envs(self.environment.clone());
        for argument in &self.arguments {
            let port = argument.starts_with("--web.listen-address=:");
            command.arg(if port { "--web.listen-address=127.0.0.1:0" } else { argument });
        }
        let program = Program::start(command, "the container", true);
        let address = program.wait_for(Duration::from_mins(1), |line| {
            let (_, rest) = line.split_once("address=")?;
            Some(rest.split_whitespace().next()?.trim_matches('"').to_owned())
        });
        (program, address)
    }

    /// The command that the kubelet would run in the container, which listens
    /// at this address.
    pub(crate) fn probe(&self, probe: &str, address: &str) -> Command {
        let words = self.container[probe]["exec"]["command"].as_array();
        let mut words = words.unwrap_or_else(|| panic!("{probe} is no command")).iter();
        assert_eq!(words.next().unwrap(), "spark-exporter", "the image's program");
        let port = self.container["ports"][0]["containerPort"].to_string();
        let mut command = Command::new(env!("CARGO_BIN_EXE_spark-exporter"));
        for word in words {
            let word = self.below(word.as_str().unwrap());
            command.arg(word.replace(&format!("127.0.0.1:{port}"), address));
        }
        command
    }
}

/// Puts into a folder what the volume holds.
fn fill(place: &Path, volume: &Value, objects: &[Value], secrets: &[(&str, String)]) {
    let sources = match volume["projected"]["sources"].as_array() {
        Some(sources) => sources.clone(),
        None => vec![volume.clone()],
    };
    for source in sources {
        for (kind, key, name) in
            [("ConfigMap", "configMap", "name"), ("Secret", "secret", "secretName")]
        {
            let Some(wanted) = source.get(key) else { continue };
            // A projection calls a Secret's name `name` too.
            let name = wanted[name].as_str().or(wanted["name"].as_str()).unwrap();
            let own = objects
                .iter()
                .find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
            let data = own.iter().flat_map(|own| {
                let data = ["data", "stringData"].map(|data| own[data].as_object());
                data.into_iter().flatten().flatten()
            });
            let own = data.map(|(key, value)| (key.clone(), value.as_str().unwrap().to_owned()));
            let given = secrets.iter().filter_map(|(path, value)| {
                let key = path.strip_prefix(name)?.strip_prefix('/')?;
                Some((key.to_owned(), value.clone()))
            });
            let files: Vec<(String, String)> = own.chain(given).collect();
            let items = wanted["items"].as_array();
            for (key, value) in files {
                let target = match items {
                    None => Some(key.as_str()),
                    Some(items) => items
                        .iter()
                        .find(|item| item["key"] == key.as_str())
                        .map(|item| item["path"].as_str().unwrap()),
                };
                if let Some(target) = target {
                    std::fs::write(place.join(target), value).unwrap();
                }
            }
        }
    }
}
