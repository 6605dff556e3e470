//! Examples of gate 2 that a tenant brings: they decide for it alone, once they are embedded, and again after each change.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use memfleet_domain::Fault;
use memfleet_domain::assembly::{Gate, GateOutcome, Reason};
use memfleet_domain::embedding::{EmbeddingSpace, PassageVectors, QueryVectors};
use memfleet_domain::ids::SettingName;
use memfleet_domain::space::SpaceSettings;
use memfleet_gateway::Gateway;
use memfleet_gateway::settings::SettingsCache;
use memfleet_ports::assembly::{Assembled, Assembly, GateEntry};
use memfleet_ports::context::Context;
use memfleet_ports::embedder::Embedder;
use memfleet_ports::memory::Memory;
use memfleet_ports::policies::{NewDocument, Policies};
use memfleet_ports::settings::{SettingKey, SettingKind};
use memfleet_ports::testing::WordEmbedder;

use super::{kettle, prompted, user};
use crate::roles::{self, Node, acme, call_of, request, space};

const QUESTION: &str = "capital of Peru";

/// Examples with one of each class, and a decision that any text passes by.
fn examples(memory: &str, none: &str) -> String {
    format!(
        r#"
memory = ["{memory}"]
none = ["{none}"]
[decision]
neighbours = 1
margin = 0.1
likeness = 0.4
fewest_words = 1
most_foreign = 1.0
personal = []
"#
    )
}

fn key(name: &str) -> SettingKey {
    SettingKey {
        kind: SettingKind::Exemplars,
        space: None,
        name: SettingName::new(name).unwrap(),
    }
}

async fn put(gateway: &Gateway, context: &Context, name: &str, body: &str) -> Result<u32, Fault> {
    let SettingKey { kind, name, .. } = key(name);
    let body = body.to_owned();
    let document = NewDocument {
        kind,
        name,
        body,
        expected: None,
    };
    gateway.put_document(context, document).await
}

/// Assembles for the question.
async fn asked(gateway: &Gateway, context: &Context) -> Assembled {
    let mut request = prompted(vec![user(QUESTION)]);
    request.policy.gating.mode = None;
    // Not every tenant has the space.
    request.policy.failure.policy = None;
    gateway.assemble(context, request).await.unwrap()
}

/// What gate 2 says of the question.
async fn gate(gateway: &Gateway, context: &Context) -> GateEntry {
    let answer = asked(gateway, context).await;
    let mut gates = answer.gates.into_iter();
    gates.find(|gate| gate.gate == Gate::Routing).unwrap()
}

/// The same once what the first asking began is done.
async fn gate_after(gateway: &Gateway, context: &Context) -> GateEntry {
    gate(gateway, context).await;
    while !gateway.routing.is_idle() {
        tokio::task::yield_now().await;
    }
    gate(gateway, context).await
}

fn outcome(said: &GateEntry) -> (GateOutcome, Reason, &str) {
    (said.outcome, said.reason, said.version.as_str())
}

const ABSTAIN: (GateOutcome, Reason, &str) = (GateOutcome::Abstain, Reason::NoVectors, "");

#[tokio::test]
async fn amp_056_a_tenants_examples_decide_for_it_alone_and_abstain_until_they_are_embedded() {
    let node = kettle().await;
    let globex = call_of("globex", Duration::from_mins(1));
    let gateway = &node.gateway;
    let none = examples("where is my kettle", QUESTION);
    assert_eq!(put(gateway, &acme(), "default", &none).await, Ok(1));

    assert_eq!(outcome(&gate(gateway, &acme()).await), ABSTAIN);
    let said = gate_after(gateway, &acme()).await;
    let skip = (GateOutcome::Skip, Reason::NeedsNoMemory);
    assert_eq!(outcome(&said), (skip.0, skip.1, "default 1"));
    let answer = asked(gateway, &acme()).await;
    assert_eq!(answer.reason, Some(Reason::NeedsNoMemory));
    assert_eq!(answer.versions["exemplars"], "default 1");

    // Of examples that are embedded nothing is embedded again but the query.
    let before = node.embedder.texts();
    gate(gateway, &acme()).await;
    assert_eq!(node.embedder.texts(), before + 1);

    // The same document of another tenant is that tenant's, and embedded for it.
    let told = request("ada", vec![roles::said("The weather is fine")]);
    gateway.remember(&globex, told).await.unwrap();
    node.settle().await;
    assert_eq!(outcome(&gate_after(gateway, &globex).await).2, "1");
    assert_eq!(put(gateway, &globex, "default", &none).await, Ok(1));
    assert_eq!(outcome(&gate(gateway, &globex).await), ABSTAIN);

    // A change works at once here, and never by the examples before it.
    let memory = examples(QUESTION, "the weather is fine");
    assert_eq!(put(gateway, &acme(), "default", &memory).await, Ok(2));
    assert_eq!(outcome(&gate(gateway, &acme()).await), ABSTAIN);
    let said = gate_after(gateway, &acme()).await;
    let pass = (GateOutcome::Pass, Reason::NeedsMemory, "default 2");
    assert_eq!(outcome(&said), pass);

    let caller = acme();
    let removed = gateway.remove_document(&caller, key("default"), None);
    removed.await.unwrap();
    assert_eq!(outcome(&gate_after(gateway, &acme()).await).2, "1");
}

#[tokio::test]
async fn amp_057_a_small_space_is_skipped_as_a_large_one_is() {
    let node = Node::new().await;
    let gateway = &node.gateway;
    let none = examples("where is my kettle", QUESTION);
    put(gateway, &acme(), "default", &none).await.unwrap();
    node.told("ada", vec![roles::said("My kettle broke")]).await;
    let said = gate_after(gateway, &acme()).await;
    assert_eq!(said.outcome, GateOutcome::Skip);
    let answer = asked(gateway, &acme()).await;
    assert_eq!(answer.reason, Some(Reason::NeedsNoMemory));
}

#[tokio::test]
async fn examples_of_the_language_of_a_space_stand_over_those_for_all_others() {
    let node = kettle().await;
    let gateway = &node.gateway;
    let body = examples("where is my kettle", QUESTION);
    for name in ["default", "de"] {
        put(gateway, &acme(), name, &body).await.unwrap();
    }
    assert_eq!(
        outcome(&gate_after(gateway, &acme()).await).2,
        "default 1",
        "of an English space"
    );
    let settings = SpaceSettings {
        language: Some("de".to_owned()),
        ..SpaceSettings::default()
    };
    let (caller, ada) = (acme(), space("ada"));
    let german = gateway.put_space(&caller, &ada, settings);
    german.await.unwrap();
    assert_eq!(outcome(&gate_after(gateway, &acme()).await).2, "de 1");
}

#[tokio::test]
async fn other_gateways_follow_within_three_seconds() {
    let node = kettle().await;
    let other = Gateway {
        settings: Arc::new(SettingsCache::new(node.store.clone())),
        routing: Arc::default(),
        ..node.gateway.clone()
    };
    assert_eq!(outcome(&gate_after(&other, &acme()).await).2, "1");
    let body = examples("where is my kettle", QUESTION);
    put(&node.gateway, &acme(), "default", &body).await.unwrap();
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(3)).await;
    tokio::time::resume();
    assert_eq!(outcome(&gate_after(&other, &acme()).await).2, "default 1");
}

/// The same embedder after its model was changed.
struct OtherModel(Arc<WordEmbedder>);

#[async_trait]
impl Embedder for OtherModel {
    async fn space(&self) -> Result<EmbeddingSpace, Fault> {
        let space = self.0.space().await?;
        let revision = "2".to_owned();
        Ok(EmbeddingSpace { revision, ..space })
    }

    async fn embed_passages(&self, texts: Vec<String>) -> Result<Vec<PassageVectors>, Fault> {
        self.0.embed_passages(texts).await
    }

    async fn embed_query(&self, text: String) -> Result<QueryVectors, Fault> {
        self.0.embed_query(text).await
    }
}

#[tokio::test]
async fn amp_056_examples_are_embedded_again_when_the_model_changes() {
    let node = kettle().await;
    let body = examples("where is my kettle", QUESTION);
    put(&node.gateway, &acme(), "default", &body).await.unwrap();
    gate_after(&node.gateway, &acme()).await;
    let changed = Gateway {
        embedder: Arc::new(OtherModel(node.embedder.clone())),
        ..node.gateway.clone()
    };
    let said = gate(&changed, &acme()).await;
    let other = (GateOutcome::Abstain, Reason::OtherEmbeddingSpace);
    assert_eq!((said.outcome, said.reason), other);
    let said = gate_after(&changed, &acme()).await;
    assert_eq!(
        outcome(&said),
        (GateOutcome::Skip, Reason::NeedsNoMemory, "default 1")
    );
}

#[tokio::test]
async fn examples_whose_model_is_away_are_embedded_when_it_is_back() {
    let node = kettle().await;
    let gateway = &node.gateway;
    let body = examples("where is my kettle", QUESTION);
    put(gateway, &acme(), "default", &body).await.unwrap();
    node.embedder.set_down(true);
    assert_eq!(outcome(&gate(gateway, &acme()).await), ABSTAIN);
    node.embedder.set_down(false);
    let said = gate_after(gateway, &acme()).await;
    assert_eq!(outcome(&said).2, "default 1");
}

#[tokio::test]
async fn amp_056_examples_are_checked_before_they_are_kept() {
    let Node { gateway, .. } = &Node::new().await;
    let fine = examples("a word", "another word");
    for (name, body, field, told) in [
        ("de-AT", fine.clone(), "name", "must be `default` or"),
        ("zh", fine.clone(), "name", "`und` stands for every other"),
        ("de", "[[".to_owned(), "body", "line 1 cannot be read"),
        ("de", examples("a", "A"), "body", "line 2 already"),
        ("de", examples("?!", "a"), "body", "line 2, `memory`: the"),
        (
            "de",
            examples("a", &"x".repeat(501)),
            "body",
            "line 3, `none`: the example has 501 bytes, 500 are allowed",
        ),
        (
            "de",
            fine.replace("margin = 0.1", "margin = 3"),
            "body",
            "`decision.margin` must be in 0 to 2",
        ),
    ] {
        let refused = put(gateway, &acme(), name, &body).await.unwrap_err();
        let problem = &refused.fields[0];
        assert_eq!(problem.field, field, "{body}");
        assert!(problem.description.contains(told), "{problem:?}");
    }
    assert_eq!(put(gateway, &acme(), "de", &fine).await, Ok(1));
}
