use memfleet_domain::access::KeyHash;
use memfleet_domain::ids::TenantId;
use memfleet_runtime::config::{Loader, leaves};

use super::*;

#[test]
fn defaults_are_usable_as_they_are() {
    assert_eq!(Config::default().problems(), []);
}

#[test]
fn an_entry_reads_back_as_it_was_written() {
    let entry = KeyEntry {
        tenant: TenantId::new("acme: the second").unwrap(),
        hash: KeyHash::of("key"),
    };
    assert_eq!(entry.to_string().parse(), Ok(entry));
    for wrong in ["acme", "acme:", ":abc", "acme:abc"] {
        assert!(wrong.parse::<KeyEntry>().is_err(), "{wrong}");
    }
}

#[test]
fn a_public_address_without_keys_is_refused() {
    let mut config = Config::default();
    config.server.address = "0.0.0.0:9460".parse().unwrap();
    assert_eq!(config.problems()[0].key, "server.address");
    config.auth.keys = vec![format!("acme:{}", KeyHash::of("key"))];
    config.server.plaintext = true;
    assert_eq!(config.problems(), []);
}

const DOCUMENT: &str = include_str!("../../../../docs/configuration.md");

#[test]
fn the_document_names_every_key_with_its_default_and_no_other() {
    let row = |(key, default): (String, String)| match default.as_str() {
        "none" => format!("| `{key}` | none |"),
        value => format!("| `{key}` | `{value}` |"),
    };
    let rows = leaves(&Config::default())
        .into_iter()
        .map(row)
        .collect::<Vec<_>>();
    let missing = rows
        .iter()
        .filter(|row| !DOCUMENT.contains(*row))
        .collect::<Vec<_>>();
    assert_eq!(missing, Vec::<&String>::new());
    assert_eq!(DOCUMENT.matches("\n| `").count(), rows.len());
}

#[test]
fn the_sample_of_the_document_is_accepted() {
    let sample = DOCUMENT
        .split("```toml")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("memfleet.toml");
    std::fs::write(&file, sample).unwrap();
    let loaded = Loader::defaults_only()
        .file(Some(file))
        .load::<Config>()
        .unwrap();
    assert_eq!(loaded.config.server.address.port(), 9460);
}

#[test]
fn an_address_without_a_file_or_with_parameters_is_refused_with_the_fix() {
    for (url, fix) in [
        ("sqlite:", "`sqlite:` and a path"),
        ("sqlite::memory:", "give its path"),
        ("sqlite://:memory:", "give its path"),
        ("sqlite:memory.db?mode=ro", "leave out `?`"),
        ("sqlite:?mode=memory", "leave out `?`"),
    ] {
        let mut config = Config::default();
        config.store.url = url.into();
        let problems = config.problems();
        assert_eq!(problems[0].key, "store.url", "{url}");
        assert!(problems[0].message.contains(fix), "{url}: {problems:?}");
    }
}

#[test]
fn what_is_wrong_with_assembly_is_named_by_its_key() {
    let mut config = Config::default();
    config.assembly.tokenizers = ["llama: /a", "llama: /b", "cl100k_base: /c", "/d"]
        .map(str::to_owned)
        .to_vec();
    let policy = &mut config.assembly.policy;
    policy.budget.percent_of_window = Some(101.0);
    policy.format.redactions = Some(vec!["(".to_owned()]);
    policy.format.template = Some("ours".to_owned());
    let problems = config.problems();
    let keys: Vec<_> = problems.iter().map(|it| it.key.as_str()).collect();
    let expected = [
        "assembly.tokenizers[1]",
        "assembly.tokenizers[2]",
        "assembly.tokenizers[3]",
        "assembly.policy.budget.percent_of_window",
        "assembly.policy.format.redactions[0]",
        "assembly.policy.format.template",
    ];
    assert_eq!(keys, expected);
    assert!(problems[0].message.contains("`llama` a second time"));
}

#[test]
fn a_policy_may_be_set_key_by_key_in_every_layer() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("memfleet.toml");
    let text = "[assembly.policy]\nbudget.max_tokens = 400\ntools.rounds = 1\n";
    std::fs::write(&file, text).unwrap();
    let load = |variables: &[(&str, &str)]| {
        let variables = variables.iter();
        let variables = variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let loader = Loader::defaults_only().file(Some(file.clone()));
        loader
            .environment(variables.collect::<Vec<_>>())
            .load::<Config>()
    };
    let loaded = load(&[
        ("MEMFLEET_ASSEMBLY__POLICY__TOOLS__ROUNDS", "2"),
        (
            "MEMFLEET_ASSEMBLY__POLICY__PLACING__STRATEGIES",
            "['system']",
        ),
    ]);
    let policy = loaded.unwrap().config.assembly.policy;
    assert_eq!(policy.budget.max_tokens, Some(400));
    assert_eq!(policy.tools.rounds, Some(2));
    assert_eq!(policy.placing.strategies.unwrap().len(), 1);
    assert_eq!(policy.gating.mode, None);
    for (variable, told) in [
        (
            "MEMFLEET_ASSEMBLY__POLICY__BUDGET__MAX_TOKEN",
            "unknown key",
        ),
        (
            "MEMFLEET_ASSEMBLY__POLICY__GATING__MODE",
            "assembly.policy.gating.mode",
        ),
        (
            "MEMFLEET_ASSEMBLY__POLICY__TOOLS__ROUNDS",
            "allowed is 0 to 32",
        ),
    ] {
        let error = load(&[(variable, "33")]).unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
}

#[test]
fn a_tokenizer_that_cannot_be_read_ends_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tokenizer.json");
    let mut config = Config::default();
    config.assembly.tokenizers = vec![format!("llama: {}", file.display())];
    let error = config.assembly.tokenizers().unwrap_err().to_string();
    assert!(
        error.starts_with("assembly.tokenizers[0]: tokenizer `llama` cannot be read"),
        "{error}"
    );
    let tokenizer = r#"{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null, "decoder": null,
        "model": {"type": "WordLevel", "vocab": {"[UNK]": 0}, "unk_token": "[UNK]"}}"#;
    std::fs::write(&file, tokenizer).unwrap();
    let tokenizers = config.assembly.tokenizers().unwrap();
    assert_eq!(tokenizers.get("llama").unwrap().count("two words"), 2);
}

#[test]
fn every_problem_is_named() {
    let mut config = Config::default();
    config.store.url = "mysql:x".into();
    config.auth.keys = vec!["acme".to_owned()];
    config.retrieval.candidates = 1;
    let keys = config
        .problems()
        .into_iter()
        .map(|problem| problem.key)
        .collect::<Vec<_>>();
    assert_eq!(keys, ["store.url", "auth.keys[0]", "retrieval.candidates"]);
}

#[test]
fn adapters_go_together() {
    let mut config = Config::default();
    config.store.url = "postgres://memfleet@db/memfleet".into();
    assert_eq!(config.problems()[0].key, "queue.url");
    config.queue.url = "nats://nats:4222".into();
    assert_eq!(config.problems(), []);
    config.store.migrate = true;
    assert_eq!(config.problems()[0].key, "store.migrate");
    config.store.owner_url = Some("postgres://owner@db/memfleet".into());
    config.peers.embedder = "embedder:9460".to_owned();
    assert_eq!(config.problems()[0].key, "peers.embedder");
}

#[test]
fn facts_are_statements_where_the_reader_reads() {
    let mut config = Config::default();
    assert!(config.has_reader());
    config.model.multilingual = String::new();
    assert!(!config.has_reader());
    config.model.name = ReaderModel::BASE.to_owned();
    assert!(config.has_reader());
}

#[test]
fn removed_keys_are_named_with_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("memfleet.toml");
    std::fs::write(
        &path,
        "[constructor]\nfacts = \"rules\"\n[retrieval]\nanswers = \"facts\"\n",
    )
    .unwrap();
    let facts = ("MEMFLEET_CONSTRUCTOR__FACTS", "statements");
    let variables = [(facts.0.to_owned(), facts.1.to_owned())];
    let file = Loader::defaults_only().file(Some(path));
    let loaders = [file, Loader::defaults_only().environment(variables)];
    let found = loaders.iter().flat_map(|loader| {
        let findings = loader.load::<Config>().unwrap_err().findings.into_iter();
        findings.map(|it| format!("{}: {}; {}", it.key, it.message, it.fix.unwrap()))
    });
    let found: Vec<String> = found.collect();
    let remedies: Vec<String> = Config::REMOVED_KEYS
        .iter()
        .map(|(key, fix)| format!("{key}: no longer a key; {fix}"))
        .collect();
    assert_eq!(found, [&remedies[..], &remedies[..1]].concat());
}

#[test]
fn amp_127_what_protects_an_address_depends_on_the_role() {
    let mut config = Config::default();
    config.server.address = "0.0.0.0:9460".parse().unwrap();
    config.internal.token = Some("sixteen letters!".to_owned().into());
    let in_the_clear = config.exposed(&[Role::Retriever]).unwrap();
    assert!(
        in_the_clear.message.contains("server.plaintext"),
        "{in_the_clear:?}"
    );
    config.server.plaintext = true;
    assert_eq!(config.exposed(&[Role::Retriever]), None);
    let outside = config.exposed(&Role::ALL).unwrap();
    assert!(outside.message.contains("auth.keys"), "{outside:?}");
    config.server.insecure = true;
    assert_eq!(config.exposed(&Role::ALL), None);
}

#[test]
fn certificates_of_callers_protect_a_role_and_a_certificate_alone_does_not() {
    let mut config = Config::default();
    config.server.address = "0.0.0.0:9460".parse().unwrap();
    config.tls.certificate = Some("certificate.pem".into());
    assert_eq!(config.problems()[0].key, "tls.key");
    config.tls.key = Some("key.pem".into());
    assert!(config.exposed(&[Role::Embedder]).is_some());
    config.tls.client_ca = Some("authority.pem".into());
    assert_eq!(config.exposed(&[Role::Embedder]), None);
    assert!(config.exposed(&[Role::Gateway]).is_some());
}

#[test]
fn tokens_need_an_audience_and_keys_that_nobody_can_change_on_the_way() {
    let mut config = Config::default();
    config.auth.jwt.issuer = Some("http://issuer.example".to_owned());
    let keys: Vec<_> = config
        .problems()
        .into_iter()
        .map(|problem| problem.key)
        .collect();
    assert_eq!(keys, ["auth.jwt.issuer", "auth.jwt.audience"]);
    for (url, problems) in [
        ("http://127.0.0.1:8080/realm", 1),
        ("http://127.0.0.1.issuer.example", 2),
        ("issuer.example", 2),
    ] {
        config.auth.jwt.issuer = Some(url.to_owned());
        assert_eq!(config.problems().len(), problems, "{url}");
    }
    config.auth.jwt.issuer = Some("https://issuer.example".to_owned());
    config.auth.jwt.audience = Some("memfleet".to_owned());
    assert_eq!(config.problems(), []);
    config.server.address = "0.0.0.0:9460".parse().unwrap();
    config.server.plaintext = true;
    assert_eq!(config.problems(), [], "tokens protect an address");
}
