//! A node with a language model behind its agents and no reader of turns: facts are found, what
//! changed is settled and looked at again, by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Result;
use memfleet_domain::derivation::{Conflict, Status};
use memfleet_e2e::{Node, call};
use memfleet_openai::testing::{Scripted, endpoint, serve};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::knowledge_api::KnowledgeService;
use memfleet_ports::memory::{Memory, PageRequest};
use memfleet_rpc::Client;
use serde_json::{Value, json};

use crate::conversation::{recall, remember, said, space};

/// What a prompt shows, by its handle.
fn shown(body: &Value) -> Vec<Value> {
    let text = body["messages"][1]["content"].as_str().unwrap();
    let lines = text.lines().map(serde_json::from_str);
    lines.filter_map(Result::ok).collect()
}

fn named(shown: &[Value], letter: char, word: &str) -> Option<Value> {
    let is_it = |line: &&Value| {
        let id = line["id"].as_str().unwrap_or_default();
        id.starts_with(letter) && line.to_string().contains(word)
    };
    shown.iter().find(is_it).map(|line| line["id"].clone())
}

/// The constructor finds both games, tennis takes the place of chess, and the refresher agrees.
fn reply(body: &Value) -> String {
    let shown = shown(body);
    if let Some(conflict) = named(&shown, 'X', "tennis") {
        let decision = json!({"conflict": conflict, "action": "update", "since": null});
        return json!({"decisions": [decision]}).to_string();
    }
    if named(&shown, 'N', "").is_none() {
        return json!({ "facts": facts(&shown) }).to_string();
    }
    let pair = named(&shown, 'N', "tennis").zip(named(&shown, 'F', "chess"));
    let found = pair.map(
        |(new, known)| json!({"new": new, "known": known, "relation": "change", "confidence": 0.9}),
    );
    json!({"conflicts": found.as_slice()}).to_string()
}

/// The game that the last turn names, where it names one.
fn facts(shown: &[Value]) -> Vec<Value> {
    let games = ["chess", "tennis"].into_iter();
    let named = games.filter_map(|game| Some((game, named(shown, 'T', game)?)));
    let facts = named.map(|(game, turn)| {
        json!({
            "turn": turn, "quote": format!("I play {game}."), "sentence": format!("Noor plays {game}."),
            "pattern": "S-V-O", "subject": "Noor", "verb": "play", "object": game, "complement": null,
            "negated": false, "correction": false, "from": null, "until": null, "related": [],
            "confidence": 0.9,
        })
    });
    facts.collect()
}

/// The conflict, once it is settled.
async fn settled(client: &Client) -> Result<Conflict> {
    loop {
        let page = client
            .conflicts(&call(), &space("noor"), &[], PageRequest::default())
            .await?;
        let conflicts = page.items.into_iter();
        let mut conflicts = conflicts.map(|listed| listed.conflict);
        if let Some(conflict) = conflicts.find(|conflict| conflict.status == Status::Settled) {
            return Ok(conflict);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn a_model_finds_facts_and_what_became_of_them() -> Result<()> {
    let reviewed = Arc::new(AtomicBool::new(false));
    let seen = reviewed.clone();
    let served = serve(endpoint(move |_, body| {
        let reply = reply(body);
        seen.fetch_or(reply.contains("decisions"), Ordering::SeqCst);
        Scripted::Says(reply)
    }))
    .await?;
    let directory = tempfile::tempdir()?;
    let store = directory.path().join("memory.db");
    let model = [
        ("MEMFLEET_LANGUAGE_MODEL__BASE_URL", served.url.as_str()),
        ("MEMFLEET_LANGUAGE_MODEL__MODEL", "small"),
        ("MEMFLEET_MODEL__MULTILINGUAL", ""),
    ];
    let node = Node::launch(&store, &model)?;
    let client = node.client().await?;
    let told = vec![said("monday", "Noor", 8, "I play chess.")];
    remember(&client, "noor", told).await?;
    let told = vec![said("later", "Noor", 20, "I play tennis.")];
    let token = remember(&client, "noor", told).await?;
    let read = recall("noor", "tennis", TurnFilter::default(), &[token]);
    client.recall(&call(), read).await?;
    let minute = Duration::from_mins(1);
    let conflict = tokio::time::timeout(minute, settled(&client)).await??;
    assert_eq!(conflict.judge, "small conflicts.v1");
    let looked = async {
        while !reviewed.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(minute, looked).await?;
    Ok(())
}
