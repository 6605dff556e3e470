//! Export and import with the command line: the lines that come back are those that went.

use std::time::Duration;

use anyhow::{Result, ensure};
use memfleet_domain::FaultKind;
use memfleet_domain::derivation::{ChangeKind, Derivation};
use memfleet_domain::ids::{BatchId, SessionId};
use memfleet_domain::policy::Policy;
use memfleet_domain::space::SpaceSettings;
use memfleet_domain::time::AsOf;
use memfleet_domain::turn::Media;
use memfleet_e2e::{Tenant, call};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::knowledge_api::{
    Correction, FactQuery, KnowledgeService, MergeRequest, UpdateRequest,
};
use memfleet_ports::memory::{Memory, PageRequest};
use memfleet_ports::policies::Policies;
use memfleet_ports::refresher::ForgetRequest;
use memfleet_rpc::Client;

use crate::conversation::{recall, remember, said, space, turns};
use crate::knowing::{OSLO, moved, saying, statements};
use crate::system::fresh;

/// The conversation in a space with settings, with a picture, an edit, and more turns than an import takes at once.
pub async fn fill(client: &Client) -> Result<()> {
    let settings = SpaceSettings {
        language: Some("en".to_owned()),
        time_zone: "Europe/Oslo".parse().unwrap(),
        retention_days: Some(36_000),
        retention_turns: Some(100_000),
        retention_superseded_days: Some(300),
    };
    client.put_space(&call(), &space("noor"), settings).await?;
    let mut turns = turns();
    turns[0].content.media.push(Media {
        uri: "https://example.org/biscuit.jpg".into(),
        mime_type: "image/jpeg".into(),
        caption: "a greyhound on a \"red\" sofa ☂".into(),
    });
    turns[1].external_id = None;
    turns[2].event_time = None;
    remember(client, "noor", turns).await?;
    let many = (0..300).map(|n| said(["tuesday", "long"][n % 2], "Sam", 21, &format!("Line {n}")));
    let token = remember(client, "noor", many.collect()).await?;
    let asked = recall("noor", "Line 7", TurnFilter::default(), &[token]);
    let old = client.recall(&call(), asked).await?.hits[0]
        .turn
        .accepted
        .clone();
    let mut edit = said("long", "Sam", 22, "The corrected line");
    edit.replaces = Some(old.id);
    let token = remember(client, "noor", vec![edit]).await?;
    let asked = recall("noor", "corrected", TurnFilter::default(), &[token]);
    client.recall(&call(), asked).await?;
    Ok(())
}

/// Exports from one tenant and imports to another that has nothing yet; both exports.
pub fn sent(from: &Tenant, there: &Tenant) -> Result<(String, String)> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("noor.jsonl");
    let file = file.to_str().unwrap();
    let lines = from.printed(&["export", "noor"])?;
    from.printed(&["export", "noor", "--output", file])?;
    assert_eq!(std::fs::read_to_string(file)?, lines);
    let report = there.printed(&["import", file, "--json"])?;
    let stored = format!("\"stored\":{}", lines.lines().count() - 1);
    assert!(report.replace(' ', "").contains(&stored), "{report}");
    let arrived = there.printed(&["export", "noor"])?;
    let again = there.printed(&["import", file, "--json"])?;
    assert!(again.replace(' ', "").contains("\"stored\":0"), "{again}");
    assert_eq!(there.printed(&["export", "noor"])?, arrived);
    Ok((lines, arrived))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_space_arrives_elsewhere_line_by_line() -> Result<()> {
    let here = fresh().await?;
    fill(&here.client).await?;
    let (lines, arrived) = sent(&here, &*fresh().await?)?;
    assert_eq!(lines.lines().count(), 309);
    assert!(
        lines.lines().eq(arrived.lines()),
        "{}",
        difference(&lines, &arrived)
    );
    Ok(())
}

/// An update is undone, a fact corrected, two names are one, and the space has a policy and a hold.
async fn decide(client: &Client) -> Result<()> {
    let token = moved(client).await?;
    let facts = statements(client, token, true).await?;
    let changes = client
        .changes(&call(), &space("noor"), None, PageRequest::default())
        .await?;
    let mut changes = changes.items.iter();
    let update = changes.find(|recorded| recorded.change.kind == ChangeKind::Updated);
    client
        .revert(&call(), &space("noor"), update.unwrap().change.id)
        .await?;
    let merge = MergeRequest {
        space: space("noor"),
        entity: "Rome".into(),
        other: "Oslo".into(),
    };
    // Both names stand in the graph once it has the facts.
    while let Err(fault) = client.merge(&call(), &merge).await {
        ensure!(fault.kind == FaultKind::NotFound, "{fault}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let request = UpdateRequest {
        space: space("noor"),
        id: saying(&facts, OSLO).unwrap().id,
        version: None,
        correction: Correction::Says {
            text: Some("I live in Bergen.".into()),
            value: None,
            valid: None,
        },
    };
    client.update(&call(), request).await?;
    let mut policy = Policy::default();
    policy.budget.max_tokens = Some(700);
    client
        .put_policy(&call(), Some(space("noor")), policy, None)
        .await?;
    client
        .set_legal_hold(&call(), &space("noor"), true, "case 7".into())
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_callers_decided_arrives_line_by_line_and_stays() -> Result<()> {
    let (here, there) = (fresh().await?, fresh().await?);
    decide(&here.client).await?;
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("noor.jsonl");
    let file = file.to_str().unwrap();
    let lines = here.printed(&["export", "noor"])?;
    std::fs::write(file, &lines)?;
    let count = |record: &str| lines.matches(&format!("{{\"record\":\"{record}\"")).count();
    assert_eq!((count("rules"), count("turn"), count("decided")), (1, 2, 3));
    let report = there.printed(&["import", file, "--json"])?;
    assert!(
        report.replace(' ', "").contains("\"decided\":3"),
        "{report}"
    );
    let arrived = there.printed(&["export", "noor"])?;
    assert!(
        lines.lines().eq(arrived.lines()),
        "{}",
        difference(&lines, &arrived)
    );
    // Agents have read the turns by then, and find nothing to change.
    let query = FactQuery {
        space: space("noor"),
        about: None,
        attribute: None,
        turns: Vec::new(),
        as_of: AsOf::default(),
        ended: true,
        wait_for: Vec::new(),
    };
    for _ in 0..100 {
        let call = call();
        let facts = there.client.facts(&call, &query, PageRequest::default());
        if facts.await?.items.len() == 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let later = there.printed(&["export", "noor"])?;
    assert!(
        lines.lines().eq(later.lines()),
        "{}",
        difference(&lines, &later)
    );
    Ok(())
}

/// Facts about a person, ended ones too.
async fn facts_about(client: &Client, who: &str, token: BatchId) -> Result<Vec<Derivation>> {
    let query = FactQuery {
        space: space("noor"),
        about: Some(who.to_owned()),
        attribute: None,
        turns: Vec::new(),
        as_of: AsOf::default(),
        ended: true,
        wait_for: vec![token],
    };
    let facts = client
        .facts(&call(), &query, PageRequest::default())
        .await?;
    Ok(facts.items)
}

/// A forget took the version that a newer fact had caused, and both facts of one turn were corrected.
async fn decide_with_gaps(client: &Client) -> Result<()> {
    let token = moved(client).await?;
    statements(client, token, true).await?;
    let changes = client
        .changes(&call(), &space("noor"), None, PageRequest::default())
        .await?;
    let mut changes = changes.items.iter();
    let update = changes.find(|recorded| recorded.change.kind == ChangeKind::Updated);
    client
        .revert(&call(), &space("noor"), update.unwrap().change.id)
        .await?;
    let request = ForgetRequest {
        space: space("noor"),
        filter: TurnFilter {
            sessions: vec![SessionId::new("later")?],
            ..TurnFilter::default()
        },
        everything: false,
        dry_run: false,
    };
    client.forget(&call(), request).await?;
    let told = vec![said(
        "sam",
        "Sam",
        22,
        "I live in Bergen. I work at Initech.",
    )];
    let token = remember(client, "noor", told).await?;
    let facts = facts_about(client, "Sam", token).await?;
    ensure!(
        facts.len() == 2 && facts[0].change == facts[1].change,
        "{facts:?}"
    );
    for fact in facts {
        let text = match fact.body.found_by().contains("Bergen") {
            true => "I live in Narvik.",
            false => "I work at Globex.",
        };
        let request = UpdateRequest {
            space: space("noor"),
            id: fact.id,
            version: None,
            correction: Correction::Says {
                text: Some(text.into()),
                value: None,
                valid: None,
            },
        };
        client.update(&call(), request).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn histories_with_gaps_arrive_and_a_broken_one_ends_no_import() -> Result<()> {
    let (here, there, third) = (fresh().await?, fresh().await?, fresh().await?);
    decide_with_gaps(&here.client).await?;
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("noor.jsonl");
    let file = file.to_str().unwrap();
    let lines = here.printed(&["export", "noor"])?;
    assert_eq!(lines.matches("{\"record\":\"decided\"").count(), 3);
    let has = |line: &str, number: u32| line.contains(&format!("\"version\":{number},"));
    assert!(
        lines.lines().any(|line| has(line, 3) && !has(line, 2)),
        "{lines}"
    );
    std::fs::write(file, &lines)?;
    there.printed(&["import", file])?;
    let arrived = there.printed(&["export", "noor"])?;
    assert!(
        lines.lines().eq(arrived.lines()),
        "{}",
        difference(&lines, &arrived)
    );
    // One history says nothing that can be, and another space comes behind it.
    let other = vec![said("monday", "Sam", 8, "How old is the dog?")];
    let token = remember(&here.client, "sam", other).await?;
    let asked = recall("sam", "dog", TurnFilter::default(), &[token]);
    here.client.recall(&call(), asked).await?;
    let (before, decided) = lines.split_once("{\"record\":\"decided\"").unwrap();
    let decided = decided.replacen("\"version\":1,", "\"version\":0,", 1);
    let behind = here.printed(&["export", "sam"])?;
    let broken = format!("{before}{{\"record\":\"decided\"{decided}{behind}");
    std::fs::write(file, broken)?;
    let report = third.printed(&["import", file, "--json"])?;
    let report = report.replace(' ', "");
    assert!(report.contains("\"decided\":2"), "{report}");
    assert_eq!(report.matches("hasaversionofsomethingelse").count(), 1);
    assert_eq!(third.printed(&["export", "sam"])?, behind);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_space_with_gaps_arrives_with_its_gaps() -> Result<()> {
    let here = fresh().await?;
    fill(&here.client).await?;
    let tuesday = TurnFilter {
        sessions: vec![SessionId::new("tuesday")?],
        ..TurnFilter::default()
    };
    let page = memfleet_ports::memory::PageRequest::default();
    let listed = here
        .client
        .list(&call(), &space("noor"), &tuesday, page, &[])
        .await?;
    let ids = listed.items.iter().map(|turn| turn.accepted.id);
    let request = ForgetRequest {
        space: space("noor"),
        filter: TurnFilter {
            // The first turn of the session is among them.
            turns: ids.step_by(3).collect(),
            ..TurnFilter::default()
        },
        everything: false,
        dry_run: false,
    };
    here.client.forget(&call(), request).await?;
    let (lines, arrived) = sent(&here, &*fresh().await?)?;
    assert!(lines.contains("\"position\":2,"));
    assert!(
        lines.lines().eq(arrived.lines()),
        "{}",
        difference(&lines, &arrived)
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_is_waited_for_though_some_of_its_turns_were_forgotten_there() -> Result<()> {
    let (here, there) = (fresh().await?, fresh().await?);
    fill(&here.client).await?;
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("noor.jsonl");
    let file = file.to_str().unwrap();
    here.printed(&["export", "noor", "--output", file])?;
    // The first turn comes under the same id, and is forgotten, before the whole file does.
    let lines = std::fs::read_to_string(file)?;
    let first = lines.split_inclusive('\n').take(2).collect::<String>();
    let part = directory.path().join("first.jsonl");
    std::fs::write(&part, first)?;
    there.printed(&["import", part.to_str().unwrap()])?;
    let page = memfleet_ports::memory::PageRequest::default();
    let all = TurnFilter::default();
    let listed = there
        .client
        .list(&call(), &space("noor"), &all, page, &[])
        .await?;
    let request = ForgetRequest {
        space: space("noor"),
        filter: TurnFilter {
            turns: vec![listed.items[0].accepted.id],
            ..TurnFilter::default()
        },
        everything: false,
        dry_run: false,
    };
    there.client.forget(&call(), request).await?;
    let report = there.printed(&["import", file, "--json"])?;
    let report: serde_json::Value = serde_json::from_str(&report)?;
    let counts = ["stored", "accepted", "skipped", "forgotten"].map(|key| &report[key]);
    assert_eq!(counts, [307, 0, 0, 1], "{report}");
    Ok(())
}

/// The first line that differs, as it went and as it came.
pub fn difference(went: &str, came: &str) -> String {
    let pairs = went.lines().zip(came.lines());
    let first = pairs.into_iter().find(|(went, came)| went != came);
    first.map_or_else(
        || "one has more lines".to_owned(),
        |(went, came)| format!("{went}\n{came}"),
    )
}
