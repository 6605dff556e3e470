//! Layers, errors and suggestions on a small configuration.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::*;
use crate::config::{ByteSize, HumanDuration, Secret, leaves, to_toml};

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    server: Server,
    model: Model,
    labels: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Server {
    port: u16,
    workers: Option<usize>,
    max_size: ByteSize,
    timeout: HumanDuration,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Model {
    name: String,
    api_key: Option<Secret>,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            port: 9460,
            workers: None,
            max_size: ByteSize::mebibytes(4),
            timeout: HumanDuration::seconds(30),
        }
    }
}

impl Validate for Settings {
    fn problems(&self) -> Vec<Problem> {
        let short = self.server.timeout < HumanDuration::milliseconds(10);
        short
            .then(|| Problem::new("server.timeout", "must be at least 10ms"))
            .into_iter()
            .collect()
    }
}

fn variables(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(FILE_NAME);
    fs::write(&path, text).unwrap();
    (directory, path)
}

fn findings(loader: &Loader) -> Vec<Finding> {
    loader.load::<Settings>().unwrap_err().findings
}

#[test]
fn later_layers_win_key_by_key() {
    let (_directory, path) = file("[server]\nport = 1\nworkers = 1\nmax_size = \"1MiB\"\n");
    let loaded = Loader::defaults_only()
        .file(Some(path.clone()))
        .environment(variables(&[
            ("MEMFLEET_SERVER__PORT", "2"),
            ("MEMFLEET_SERVER__WORKERS", "2"),
            ("HOME", "x"),
        ]))
        .flags(&serde_json::json!({"server": {"port": 3, "workers": null}}))
        .load::<Settings>()
        .unwrap();
    let server = &loaded.config.server;
    assert_eq!(
        (server.port, server.workers, server.max_size),
        (3, Some(2), ByteSize::mebibytes(1))
    );
    assert_eq!(server.timeout, HumanDuration::seconds(30));
    assert_eq!(loaded.file, Some(path));
}

#[test]
fn every_problem_is_reported_at_once_with_its_place() {
    let (_directory, path) =
        file("[server]\nport = \"x\"\ntimeot = \"1s\"\n\n[modle]\nname = \"m\"\n");
    let loader = Loader::defaults_only()
        .file(Some(path.clone()))
        .environment(variables(&[
            ("MEMFLEET_SERVER__MAX_SIZE", "64"),
            ("MEMFLEET_SERVER__TIMEOUT", "1ms"),
        ]));
    let error = loader.load::<Settings>().unwrap_err();
    let report = error.to_string();
    let place = path.display();
    for expected in [
        "the configuration has 5 problems:".to_owned(),
        format!("server.port ({place}:2): invalid type"),
        format!("server.timeot ({place}:3): unknown key; did you mean `server.timeout`?"),
        format!("modle ({place}:5): unknown key; did you mean `model`?"),
        "server.max_size (environment variable MEMFLEET_SERVER__MAX_SIZE): ".to_owned(),
        "the default is \"4MiB\"".to_owned(),
        "server.timeout (environment variable MEMFLEET_SERVER__TIMEOUT): must be at least 10ms"
            .to_owned(),
    ] {
        assert!(
            report.contains(&expected),
            "{expected:?} is missing in:\n{report}"
        );
    }
}

#[test]
fn a_key_in_the_wrong_section_is_found() {
    let loader = Loader::defaults_only().environment(variables(&[("MEMFLEET_PORT", "1")]));
    assert_eq!(
        findings(&loader)[0].fix.as_deref(),
        Some("did you mean `server.port`?")
    );
}

#[test]
fn an_unknown_key_like_no_other_lists_what_there_is() {
    let loader = Loader::defaults_only().environment(variables(&[("MEMFLEET_MODEL__ZZZ", "1")]));
    assert_eq!(
        findings(&loader)[0].fix.as_deref(),
        Some("known here: model.name, model.api_key")
    );
}

#[test]
fn a_reserved_variable_is_left_alone() {
    let loader = Loader::defaults_only()
        .environment(variables(&[("MEMFLEET_CONFIG", "x")]))
        .reserve("MEMFLEET_CONFIG");
    assert!(loader.load::<Settings>().is_ok());
}

#[test]
fn the_links_of_kubernetes_are_no_keys() {
    let links = [
        ("MEMFLEET_SERVICE_HOST", "10.0.0.1"),
        ("MEMFLEET_SERVICE_PORT", "9460"),
        ("MEMFLEET_SERVICE_PORT_GRPC", "9460"),
        ("MEMFLEET_PORT", "tcp://10.0.0.1:9460"),
        ("MEMFLEET_GATEWAY_PORT_9460_TCP_ADDR", "10.0.0.1"),
    ];
    let loader = Loader::defaults_only().environment(variables(&links));
    assert!(loader.load::<Settings>().is_ok());
}

#[test]
fn digits_in_a_variable_are_a_text_where_a_text_is_asked_for() {
    let loader = Loader::defaults_only().environment(variables(&[
        ("MEMFLEET_MODEL__NAME", "007"),
        ("MEMFLEET_MODEL__API_KEY", "12345"),
    ]));
    let model = loader.load::<Settings>().unwrap().config.model;
    assert_eq!(
        (model.name.as_str(), model.api_key.unwrap().expose()),
        ("007", "12345")
    );
}

#[test]
fn a_missing_explicit_file_is_an_error_and_a_missing_searched_one_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("absent.toml");
    let explicit = Loader::defaults_only().file(Some(missing.clone()));
    assert_eq!(
        findings(&explicit)[0].to_string(),
        format!(
            "{}: the file does not exist; check the path",
            missing.display()
        )
    );
    let searched = Loader {
        search: vec![missing],
        ..Loader::defaults_only()
    };
    assert_eq!(searched.load::<Settings>().unwrap().file, None);
}

#[test]
fn broken_toml_names_its_line_and_other_layers_are_still_checked() {
    let (_directory, path) = file("[server]\nport = = 1\n");
    let loader = Loader::defaults_only()
        .file(Some(path.clone()))
        .environment(variables(&[("MEMFLEET_X", "1")]));
    let found = findings(&loader);
    assert_eq!(found[0].source, Source::File { path, line: 2 });
    assert_eq!(found.len(), 2);
}

#[test]
fn tables_of_names_that_users_choose_are_taken_whole() {
    let (_directory, path) = file("[labels]\nteam = \"core\"\n");
    let labels = Loader::defaults_only()
        .file(Some(path))
        .load::<Settings>()
        .unwrap()
        .config
        .labels;
    assert_eq!(labels["team"], "core");
}

#[test]
fn the_effective_configuration_reads_back_and_hides_secrets() {
    let mut settings = Settings::default();
    settings.model.api_key = Some(Secret::from("hunter2".to_owned()));
    let text = to_toml(&settings);
    assert!(!text.contains("hunter2"), "{text}");
    assert!(text.contains("********"), "{text}");
    let (_directory, path) = file(&to_toml(&Settings::default()));
    assert!(
        Loader::defaults_only()
            .file(Some(path))
            .load::<Settings>()
            .is_ok()
    );
}

#[test]
fn leaves_name_every_key_with_its_default() {
    let pairs: Vec<_> = leaves(&Settings::default());
    let pairs: Vec<_> = pairs
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    assert_eq!(
        pairs,
        [
            ("server.port", "9460"),
            ("server.workers", "none"),
            ("server.max_size", "\"4MiB\""),
            ("server.timeout", "\"30s\""),
            ("model.name", "\"\""),
            ("model.api_key", "none"),
            ("labels", "{}"),
        ]
    );
}

#[test]
fn a_value_may_stand_in_a_file_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let key = directory.path().join("key");
    fs::write(&key, "s3cret\n").unwrap();
    let key = key.display().to_string();
    let loader = Loader::defaults_only().environment(variables(&[
        ("MEMFLEET_MODEL__API_KEY_FILE", &key),
        ("MEMFLEET_MODEL__NAME_FILE", &key),
    ]));
    let model = loader.load::<Settings>().unwrap().config.model;
    assert_eq!(model.api_key.unwrap().expose(), "s3cret");
    assert_eq!(model.name, "s3cret");
}

#[test]
fn a_file_that_is_missing_or_stands_for_no_text_is_reported() {
    let missing = Loader::defaults_only()
        .environment(variables(&[("MEMFLEET_MODEL__API_KEY_FILE", "/no/such")]));
    let found = findings(&missing);
    assert_eq!(found[0].key, "model.api_key_file");
    assert!(found[0].message.contains("/no/such"), "{found:?}");
    let number = Loader::defaults_only()
        .environment(variables(&[("MEMFLEET_SERVER__PORT_FILE", "/no/such")]));
    assert_eq!(findings(&number)[0].message, "unknown key");
}
