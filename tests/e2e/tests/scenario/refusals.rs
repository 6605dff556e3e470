//! What a client of any language sees of a refusal: the code, `ErrorInfo`, `BadRequest`, `RetryInfo`.

use anyhow::Result;
use memfleet_e2e::Node;
use memfleet_rpc::proto;
use memfleet_rpc::proto::memory_client::MemoryClient;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::conversation::fresh;

async fn connected(node: &Node) -> Result<MemoryClient<Channel>> {
    Ok(MemoryClient::connect(node.url()).await?)
}

fn reason(status: &Status) -> String {
    let info = status.get_details_error_info().unwrap();
    assert_eq!(info.domain, "memfleet");
    info.reason
}

fn fields(status: &Status) -> Vec<String> {
    let request = status.get_details_bad_request().unwrap();
    let fields = request.field_violations.into_iter();
    fields
        .map(|violation| {
            assert!(!violation.description.is_empty());
            violation.field
        })
        .collect()
}

fn turn(text: &str) -> proto::NewTurn {
    proto::NewTurn {
        session: "s".to_owned(),
        text: text.to_owned(),
        ..Default::default()
    }
}

fn request(space: &str, turns: Vec<proto::NewTurn>) -> proto::RememberRequest {
    proto::RememberRequest {
        space: space.to_owned(),
        turns,
        idempotency_key: String::new(),
    }
}

#[tokio::test]
async fn every_wrong_field_of_a_write_is_named_at_once() -> Result<()> {
    let fresh = fresh().await?;
    let mut client = connected(&fresh.node).await?;
    let wrong = vec![
        turn("fine"),
        proto::NewTurn {
            session: String::new(),
            replaces: "not an id".to_owned(),
            ..turn(" ")
        },
        turn(&"x".repeat(65_537)),
    ];
    let status = client.remember(request("", wrong)).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert_eq!(reason(&status), "INVALID_FIELD");
    let mut fields = fields(&status);
    fields.sort();
    let expected = [
        "space",
        "turns[1].replaces",
        "turns[1].session",
        "turns[1].text",
        "turns[2].text",
    ];
    assert_eq!(fields, expected);
    assert_eq!(
        fresh.node.printed(&["spaces", "--json"])?,
        "",
        "nothing was taken"
    );
    Ok(())
}

#[tokio::test]
async fn every_wrong_field_of_a_search_is_named_at_once() -> Result<()> {
    let fresh = fresh().await?;
    let mut client = connected(&fresh.node).await?;
    let request = proto::RecallRequest {
        k: 1_001,
        neighbours: 11,
        wait_for: vec!["not a token".to_owned()],
        ..Default::default()
    };
    let status = client.recall(request).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert_eq!(reason(&status), "INVALID_FIELD");
    let mut fields = fields(&status);
    fields.sort();
    assert_eq!(
        fields,
        ["k", "neighbours", "query", "spaces", "wait_for[0]"]
    );
    Ok(())
}

#[tokio::test]
async fn a_space_that_does_not_exist_is_not_found() -> Result<()> {
    let fresh = fresh().await?;
    let mut client = connected(&fresh.node).await?;
    let request = proto::RecallRequest {
        query: "anything".to_owned(),
        spaces: vec!["nowhere".to_owned()],
        ..Default::default()
    };
    let status = client.recall(request).await.unwrap_err();
    assert_eq!(
        (status.code(), reason(&status).as_str()),
        (Code::NotFound, "NOT_FOUND")
    );
    assert!(status.message().contains("`nowhere`"), "{status}");
    let command = fresh
        .node
        .run(&["recall", "anything", "--space", "nowhere"])?;
    assert_eq!(command.status.code(), Some(3));
    Ok(())
}

#[tokio::test]
async fn a_conflict_tells_both_hashes() -> Result<()> {
    let fresh = fresh().await?;
    let mut client = connected(&fresh.node).await?;
    let keyed = |text: &str| proto::RememberRequest {
        idempotency_key: "k".to_owned(),
        ..request("ada", vec![turn(text)])
    };
    client.remember(keyed("one")).await?;
    let status = client.remember(keyed("another")).await.unwrap_err();
    assert_eq!(status.code(), Code::AlreadyExists);
    let info = status.get_details_error_info().unwrap();
    assert_ne!(info.metadata["stored_hash"], info.metadata["given_hash"]);
    Ok(())
}

#[tokio::test]
async fn a_full_queue_says_when_to_come_back() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let bound = [("MEMFLEET_INGESTION__MAX_QUEUED_TURNS", "1")];
    let node = Node::launch(&directory.path().join("memory.db"), &bound)?;
    let mut client = connected(&node).await?;
    // Enough that most of it still waits when the next one comes.
    let many = (0..500).map(|n| turn(&format!("This is turn number {n} of many")));
    client.remember(request("ada", many.collect())).await?;
    let one = request("ada", vec![turn("one")]);
    let status = client.remember(one).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert_eq!(reason(&status), "QUEUE_FULL");
    let retry = status.get_details_retry_info().unwrap().retry_delay;
    assert!(retry.is_some_and(|wait| !wait.is_zero()));
    Ok(())
}

#[tokio::test]
async fn a_wrong_line_of_an_import_is_named() -> Result<()> {
    let fresh = fresh().await?;
    let file = fresh.store.with_file_name("broken.jsonl");
    let space = r#"{"record":"space","name":"ada","settings":{"language":null,"time_zone":"UTC","retention_days":null}}"#;
    std::fs::write(&file, format!("{space}\n{{\"record\":\"turn\"}}\n"))?;
    let output = fresh.node.run(&["import", file.to_str().unwrap()])?;
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr)?;
    assert!(error.contains("line 2"), "{error}");
    Ok(())
}
