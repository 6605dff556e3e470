//! Statements in their own words, over the wire: what the reader of turns keeps of any language.

use anyhow::Result;
use memfleet_domain::derivation::Origin;
use memfleet_domain::statement::{StatementKind, StatementOwner};
use memfleet_domain::time::AsOf;
use memfleet_e2e::call;
use memfleet_ports::knowledge_api::{FactQuery, KnowledgeService, ProfileQuery};
use memfleet_ports::memory::PageRequest;

use crate::conversation::{remember, said, space};
use crate::system::fresh;

#[tokio::test]
async fn statements_of_any_language_are_facts_in_their_own_words() -> Result<()> {
    let system = fresh().await?;
    let client = &system.client;
    let told = ["I live in Rome.", "我住在上海，养了两只猫。", "Danke!"];
    let turns = told.map(|text| said("monday", "Noor", 8, text)).to_vec();
    let token = remember(client, "noor", turns).await?;
    let query = FactQuery {
        space: space("noor"),
        about: Some("Noor".to_owned()),
        attribute: None,
        turns: Vec::new(),
        as_of: AsOf::default(),
        ended: false,
        wait_for: vec![token],
    };
    let facts = client
        .facts(&call(), &query, PageRequest::default())
        .await?
        .items;
    let texts: Vec<_> = facts.iter().map(|fact| fact.body.found_by()).collect();
    assert_eq!(texts[0], "I live in Rome.", "{texts:?}");
    assert!(
        texts.iter().any(|text| text.starts_with("我住在上海")),
        "{texts:?}"
    );
    assert!(
        !texts.iter().any(|text| text.contains("Danke")),
        "{texts:?}"
    );
    let home = facts[0].fact().unwrap();
    let labels = home.statement.unwrap();
    assert_eq!(
        (labels.kind, labels.owner),
        (StatementKind::State, StatementOwner::Speaker)
    );
    assert!(matches!(&facts[0].origin, Origin::Extracted(by) if by.starts_with("reader-")));
    let query = ProfileQuery {
        space: space("noor"),
        about: "Noor".to_owned(),
        as_of: AsOf::default(),
        wait_for: vec![token],
    };
    let lines = client
        .profile(&call(), &query, PageRequest::default())
        .await?;
    let first = &lines.page.items[0];
    assert_eq!(
        (&*first.evidence.quote, first.evidence.speaker.as_str()),
        ("I live in Rome.", "Noor")
    );
    Ok(())
}
