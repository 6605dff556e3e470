//! Knowledge over the wire: a fact changes, is listed with its past, undone and corrected;
//! what is so now is found and answered with.

use anyhow::{Result, ensure};
use futures::TryStreamExt;
use memfleet_domain::FaultKind;
use memfleet_domain::derivation::{ChangeKind, Derivation};
use memfleet_domain::ids::{BatchId, DerivationId};
use memfleet_domain::time::{AsOf, TimeRange};
use memfleet_e2e::call;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::knowledge_api::{
    Correction, EntityRequest, EpisodeQuery, FactQuery, KnowledgeService, NarrativeQuery,
    PathsQuery, ProfileLine, ProfileQuery, TimelineOf, TimelineQuery, UpdateRequest,
};
use memfleet_ports::memory::{AnswerMode, AnswerPart, AnswerRequest, Memory, PageRequest};
use memfleet_ports::retriever::Hit;
use memfleet_rpc::Client;

use crate::conversation::{recall, remember, said, space};
use crate::system::fresh;

const WHERE: &str = "Where does Noor live?";

const ROME: &str = "I live in Rome.";
pub const OSLO: &str = "I moved out of Rome and now live in Oslo.";

/// Noor lives in Rome on the 8th of May, and moves to Oslo on the 20th; the token of the last
/// write.
pub async fn moved(client: &Client) -> Result<BatchId> {
    let home = vec![said("monday", "Noor", 8, ROME)];
    let told = remember(client, "noor", home).await?;
    // A fleet stores writes in any order: who waits for the last one has not waited for those
    // before it.
    statements(client, told, false).await?;
    let news = vec![said("later", "Noor", 20, OSLO)];
    remember(client, "noor", news).await
}

/// All statements; a read waits for what the agents make of the write.
pub async fn statements(client: &Client, token: BatchId, ended: bool) -> Result<Vec<Derivation>> {
    let query = FactQuery {
        space: space("noor"),
        about: None,
        attribute: None,
        turns: Vec::new(),
        as_of: AsOf::default(),
        ended,
        wait_for: vec![token],
    };
    let facts = client
        .facts(&call(), &query, PageRequest::default())
        .await?;
    Ok(facts.items)
}

/// Parts of an answer. It is asked for again where the reader of turns takes longer than it may, as
/// on a busy machine.
pub async fn answered(client: &Client, request: AnswerRequest) -> Result<Vec<AnswerPart>> {
    let is_late = |part: &AnswerPart| match part {
        AnswerPart::End(end) => end.degraded.iter().any(|it| it.contains("deadline passed")),
        _ => false,
    };
    let mut parts = Vec::new();
    for _ in 0..20 {
        let answer = client.answer(&call(), request.clone()).await?;
        parts = answer.try_collect().await?;
        if !parts.iter().any(is_late) {
            break;
        }
    }
    Ok(parts)
}

/// The statement with these words, where there is one.
pub fn saying<'f>(facts: &'f [Derivation], words: &str) -> Option<&'f Derivation> {
    facts
        .iter()
        .find(|fact| fact.body.found_by().contains(words))
}

#[tokio::test]
async fn a_fact_that_changed_keeps_its_past_and_the_change_can_be_undone() -> Result<()> {
    let fresh = fresh().await?;
    let client = &fresh.client;
    let token = moved(client).await?;
    let now = statements(client, token, false).await?;
    assert!(saying(&now, ROME).is_none(), "{now:?}");
    assert!(saying(&now, OSLO).is_some(), "{now:?}");
    let all = statements(client, token, true).await?;
    let rome = saying(&all, ROME).unwrap();
    let newer = all.iter().find(|fact| rome.succeeded_by == Some(fact.id));
    assert_eq!(rome.valid.end, newer.unwrap().valid.start);
    let changes = client
        .changes(&call(), &space("noor"), None, PageRequest::default())
        .await?;
    let update = changes
        .items
        .iter()
        .find(|recorded| recorded.change.kind == ChangeKind::Updated)
        .unwrap();
    client
        .revert(&call(), &space("noor"), update.change.id)
        .await?;
    let now = statements(client, token, false).await?;
    assert!(
        saying(&now, ROME).is_some(),
        "both hold until somebody decides"
    );
    Ok(())
}

#[tokio::test]
async fn what_changed_is_marked_and_answers_nothing() -> Result<()> {
    let fresh = fresh().await?;
    let client = &fresh.client;
    let token = moved(client).await?;
    statements(client, token, false).await?;
    let request = recall("noor", WHERE, TurnFilter::default(), &[token]);
    let hits = client.recall(&call(), request.clone()).await?.hits;
    let place = |text: &str| {
        let is_it = |hit: &Hit| hit.turn.accepted.content.text == text;
        hits.iter().position(is_it).unwrap()
    };
    let (oslo, rome) = (place(OSLO), place(ROME));
    ensure!(oslo < rome, "{hits:?}");
    assert!(hits[oslo].outdated.is_none());
    assert!(hits[rome].outdated.is_some(), "{:?}", hits[rome]);
    let request = AnswerRequest {
        query: request.query,
        wait_for: request.wait_for,
        mode: AnswerMode::Auto,
    };
    let parts = answered(client, request).await?;
    let AnswerPart::Text(text) = &parts[0] else {
        anyhow::bail!("{parts:?}");
    };
    ensure!(text.contains("Oslo"), "{parts:?}");
    let is_text = |part: &&AnswerPart| matches!(part, AnswerPart::Text(_));
    assert_eq!(parts.iter().filter(is_text).count(), 1, "{parts:?}");
    Ok(())
}

#[tokio::test]
async fn a_correction_outranks_what_is_said_later() -> Result<()> {
    let fresh = fresh().await?;
    let client = &fresh.client;
    let token = moved(client).await?;
    let now = statements(client, token, false).await?;
    let correction = UpdateRequest {
        space: space("noor"),
        id: saying(&now, OSLO).unwrap().id,
        version: None,
        correction: Correction::Says {
            text: Some("I live in Bergen.".to_owned()),
            value: None,
            valid: None,
        },
    };
    client.update(&call(), correction).await?;
    let again = vec![said("later", "Noor", 21, "I live in Oslo, by the way.")];
    let token = remember(client, "noor", again).await?;
    let now = statements(client, token, false).await?;
    assert!(saying(&now, "I live in Bergen.").is_some(), "{now:?}");
    Ok(())
}

#[tokio::test]
async fn what_was_never_true_had_ended_nothing() -> Result<()> {
    let fresh = fresh().await?;
    let client = &fresh.client;
    let token = moved(client).await?;
    let all = statements(client, token, true).await?;
    let withdrawn = UpdateRequest {
        space: space("noor"),
        id: saying(&all, ROME).unwrap().succeeded_by.unwrap(),
        version: None,
        correction: Correction::Withdrawn,
    };
    client.update(&call(), withdrawn).await?;
    let now = statements(client, token, false).await?;
    assert!(saying(&now, ROME).is_some(), "{now:?}");
    let request = recall("noor", WHERE, TurnFilter::default(), &[token]);
    let hits = client.recall(&call(), request).await?.hits;
    let told = |hit: &&Hit| hit.turn.accepted.content.text == ROME;
    let rome = hits.iter().find(told).unwrap();
    assert!(rome.outdated.is_none(), "{rome:?}");
    Ok(())
}

#[tokio::test]
async fn narratives_are_there_for_who_waits() -> Result<()> {
    let fresh = fresh().await?;
    let token = moved(&fresh.client).await?;
    let query = NarrativeQuery {
        space: space("noor"),
        as_of: AsOf::default(),
        wait_for: vec![token],
    };
    let (client, call) = (&fresh.client, call());
    let page = PageRequest::default();
    let narratives = client.narratives(&call, &query, page.clone()).await?;
    ensure!(!narratives.items.is_empty(), "a story was told");
    let mut told = Vec::new();
    for narrative in &narratives.items {
        let story = client
            .narrative(&call, &query, narrative.id, page.clone())
            .await?;
        assert_eq!(story.narrative.id, narrative.id);
        told.extend(story.fragments.items.into_iter().flat_map(|it| it.turns));
    }
    told.sort_unstable();
    ensure!(
        told.is_sorted_by(|one, next| one < next),
        "each turn in one fragment: {told:?}"
    );
    let printed = fresh.printed(&["narratives", "--space", "noor", "--tree"])?;
    ensure!(printed.contains("live in"), "{printed}");
    let story = narratives.items[0].id.to_string();
    let block = fresh.printed(&["assemble", "--space", "noor", "--narrative", &story])?;
    ensure!(block.contains("live in"), "{block}");
    let unknown = DerivationId::from_bytes([7; 16]);
    let fault = client
        .narrative(&call, &query, unknown, page)
        .await
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::NotFound);
    Ok(())
}

#[tokio::test]
async fn a_profile_tells_what_is_so_and_a_timeline_what_came_when() -> Result<()> {
    let fresh = fresh().await?;
    let token = moved(&fresh.client).await?;
    let (client, call) = (&fresh.client, call());
    let query = ProfileQuery {
        space: space("noor"),
        about: "noor".to_owned(),
        as_of: AsOf::default(),
        wait_for: vec![token],
    };
    let page = PageRequest::default();
    let profile = client.profile(&call, &query, page.clone()).await?;
    let profile = profile.page.items;
    let is_oslo = |line: &&ProfileLine| line.evidence.quote.contains("Oslo");
    let oslo = profile.iter().find(is_oslo).unwrap();
    assert_eq!(oslo.evidence.speaker.as_str(), "Noor");
    ensure!(
        profile.iter().all(|line| line.evidence.quote != ROME),
        "{profile:?}"
    );
    for of in [
        TimelineOf::Space,
        TimelineOf::About("Noor".to_owned()),
        TimelineOf::Topic("Where does Noor live?".to_owned()),
    ] {
        let query = TimelineQuery {
            space: space("noor"),
            of,
            begins: TimeRange::default(),
            known_at: None,
            wait_for: vec![token],
        };
        let told = client.timeline(&call, &query, page.clone()).await?;
        let told = told.page.items;
        let place = |words: &str| {
            let mut texts = told.iter().map(|it| it.body.found_by());
            texts.position(|text| text.contains(words))
        };
        let (rome, oslo) = (place(ROME), place(OSLO));
        ensure!(rome.is_some() && rome < oslo, "{query:?}: {told:?}");
    }
    let printed = fresh.printed(&["profile", "Noor", "--space", "noor"])?;
    ensure!(printed.contains(OSLO), "{printed}");
    let printed = fresh.printed(&["timeline", "--space", "noor", "--about", "Noor"])?;
    ensure!(printed.find("Rome") < printed.find("Oslo"), "{printed}");
    Ok(())
}

#[tokio::test]
async fn the_graph_says_who_is_connected_to_what() -> Result<()> {
    let fresh = fresh().await?;
    let token = moved(&fresh.client).await?;
    let (client, call) = (&fresh.client, call());
    let request = EntityRequest {
        space: space("noor"),
        entity: "noor".to_owned(),
        at: None,
        wait_for: vec![token],
    };
    let page = PageRequest::default();
    let found = client.neighbours(&call, &request, page).await?;
    assert_eq!(found.entity.name, "noor");
    let homes = found.edges.items.iter();
    let homes = homes.filter(|it| it.triplet.predicate == "mentions");
    let homes: Vec<_> = homes.map(|it| it.object.name.as_str()).collect();
    ensure!(
        homes.contains(&"Rome") && homes.contains(&"Oslo"),
        "{homes:?}"
    );
    let query = PathsQuery {
        from: EntityRequest {
            entity: "Rome".to_owned(),
            ..request
        },
        to: "Oslo".to_owned(),
        hops: 2,
        limit: 10,
    };
    let paths = client.paths(&call, &query).await?.paths;
    assert_eq!(paths.first().map(Vec::len), Some(2));
    let printed = fresh.printed(&["graph", "Noor", "--space", "noor"])?;
    ensure!(printed.contains("mentions"), "{printed}");
    let drawn = fresh.printed(&["graph", "Noor", "--space", "noor", "--format", "svg"])?;
    ensure!(
        drawn.starts_with("<svg") && drawn.contains("Oslo"),
        "{drawn}"
    );
    Ok(())
}

#[tokio::test]
async fn names_of_one_person_are_read_together() -> Result<()> {
    let fresh = fresh().await?;
    let (client, call) = (&fresh.client, call());
    let told = vec![
        said("monday", "Noor", 8, ROME),
        said("tuesday", "Eleanor", 9, "I work in Oslo."),
    ];
    let token = remember(client, "noor", told).await?;
    statements(client, token, false).await?;
    let request = EntityRequest {
        space: space("noor"),
        entity: "Eleanor".to_owned(),
        at: None,
        wait_for: vec![token],
    };
    let found = client.entity(&call, &request).await?;
    assert_eq!(found.names.len(), 0);
    let printed = fresh.printed(&["entity", "merge", "Noor", "Eleanor", "--space", "noor"])?;
    ensure!(printed.contains("also eleanor"), "{printed}");
    let profile = fresh.printed(&["profile", "Eleanor", "--space", "noor"])?;
    ensure!(
        profile.contains("Rome") && profile.contains("Oslo"),
        "{profile}"
    );
    let printed = fresh.printed(&["entity", "split", "Eleanor", "--space", "noor"])?;
    ensure!(printed.contains("is not noor"), "{printed}");
    let printed = fresh.printed(&["entity", "show", "Eleanor", "--space", "noor"])?;
    assert_eq!(printed.trim(), "eleanor");
    let profile = fresh.printed(&["profile", "Noor", "--space", "noor"])?;
    ensure!(
        profile.contains("Rome") && !profile.contains("Oslo"),
        "{profile}"
    );
    Ok(())
}

#[tokio::test]
async fn episodes_are_there_for_who_waits() -> Result<()> {
    let fresh = fresh().await?;
    let token = moved(&fresh.client).await?;
    let query = EpisodeQuery {
        space: space("noor"),
        turns: Vec::new(),
        as_of: AsOf::default(),
        wait_for: vec![token],
    };
    let page = PageRequest::default();
    let episodes = fresh.client.episodes(&call(), &query, page).await?;
    // Of the write that is waited for; a fleet may still be at the one before it.
    let told = episodes.items.iter().filter_map(Derivation::episode);
    let mut told = told.map(|episode| episode.summary.as_str());
    assert!(told.any(|summary| summary.contains("Oslo")), "{episodes:?}");
    Ok(())
}

#[tokio::test]
async fn an_answer_right_after_a_write_rests_on_the_facts_in_it() -> Result<()> {
    let fresh = fresh().await?;
    let client = &fresh.client;
    // The agents of a fleet that begins may look for work before they hear of it.
    let told = remember(client, "noor", vec![said("s", "Noor", 8, ROME)]).await?;
    statements(client, told, false).await?;
    for round in 0..8 {
        let name = format!("at-once-{round}");
        let told = vec![said("monday", "Noor", 8, ROME)];
        let token = remember(client, &name, told).await?;
        let request = recall(&name, WHERE, TurnFilter::default(), &[token]);
        let request = AnswerRequest {
            query: request.query,
            wait_for: request.wait_for,
            mode: AnswerMode::Rules,
        };
        let parts = answered(client, request).await?;
        let [AnswerPart::Text(text), .., AnswerPart::End(end)] = &parts[..] else {
            panic!("round {round}: {parts:?}")
        };
        ensure!(text.contains("Rome"), "round {round}: {text}");
        ensure!(end.degraded.is_empty(), "{:?}", end.degraded);
        let query = FactQuery {
            space: space(&name),
            about: None,
            attribute: None,
            turns: Vec::new(),
            as_of: AsOf::default(),
            ended: false,
            wait_for: Vec::new(),
        };
        let page = PageRequest::default();
        let facts = client.facts(&call(), &query, page).await?;
        ensure!(!facts.items.is_empty(), "round {round}: not read");
    }
    Ok(())
}
