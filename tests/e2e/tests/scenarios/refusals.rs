//! What a client of any language sees of a refusal: the code, `ErrorInfo`, `BadRequest`, `RetryInfo`.

use anyhow::Result;
use memfleet_e2e::Tenant;
use memfleet_rpc::proto;
use memfleet_rpc::proto::memory_client::MemoryClient;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::system::fresh;

async fn connected(tenant: &Tenant) -> Result<MemoryClient<Channel>> {
    Ok(MemoryClient::connect(tenant.url().to_owned()).await?)
}

pub fn reason(status: &Status) -> String {
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

pub fn turn(text: &str) -> proto::NewTurn {
    proto::NewTurn {
        session: "s".to_owned(),
        text: text.to_owned(),
        ..Default::default()
    }
}

pub fn request(space: &str, turns: Vec<proto::NewTurn>) -> proto::RememberRequest {
    proto::RememberRequest {
        space: space.to_owned(),
        turns,
        idempotency_key: String::new(),
    }
}

#[tokio::test]
async fn every_wrong_field_of_a_write_is_named_at_once() -> Result<()> {
    let fresh = fresh().await?;
    let mut client = connected(&fresh).await?;
    let wrong = vec![
        turn("fine"),
        proto::NewTurn {
            session: String::new(),
            replaces: "not an id".to_owned(),
            ..turn(" ")
        },
        turn(&"x".repeat(65_537)),
    ];
    let status = client
        .remember(fresh.request(request("", wrong)))
        .await
        .unwrap_err();
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
        fresh.printed(&["spaces", "--json"])?,
        "",
        "nothing was taken"
    );
    Ok(())
}

#[tokio::test]
async fn every_wrong_field_of_a_search_is_named_at_once() -> Result<()> {
    let fresh = fresh().await?;
    let mut client = connected(&fresh).await?;
    let request = proto::RecallRequest {
        k: 1_001,
        neighbours: 11,
        wait_for: vec!["not a token".to_owned()],
        ..Default::default()
    };
    let status = client.recall(fresh.request(request)).await.unwrap_err();
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
    let mut client = connected(&fresh).await?;
    let request = proto::RecallRequest {
        query: "anything".to_owned(),
        spaces: vec!["nowhere".to_owned()],
        ..Default::default()
    };
    let status = client.recall(fresh.request(request)).await.unwrap_err();
    assert_eq!(
        (status.code(), reason(&status).as_str()),
        (Code::NotFound, "NOT_FOUND")
    );
    assert!(status.message().contains("`nowhere`"), "{status}");
    let command = fresh.run(&["recall", "anything", "--space", "nowhere"])?;
    assert_eq!(command.status.code(), Some(3));
    Ok(())
}

#[tokio::test]
async fn a_conflict_tells_both_hashes() -> Result<()> {
    let fresh = fresh().await?;
    let mut client = connected(&fresh).await?;
    let keyed = |text: &str| proto::RememberRequest {
        idempotency_key: "k".to_owned(),
        ..request("ada", vec![turn(text)])
    };
    client.remember(fresh.request(keyed("one"))).await?;
    let status = client
        .remember(fresh.request(keyed("another")))
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::AlreadyExists);
    let info = status.get_details_error_info().unwrap();
    assert_ne!(info.metadata["stored_hash"], info.metadata["given_hash"]);
    Ok(())
}

#[tokio::test]
async fn a_wrong_line_of_an_import_is_named() -> Result<()> {
    let fresh = fresh().await?;
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("broken.jsonl");
    let space = r#"{"record":"space","name":"ada","settings":{"language":null,"time_zone":"UTC","retention_days":null}}"#;
    std::fs::write(&file, format!("{space}\n{{\"record\":\"turn\"}}\n"))?;
    let output = fresh.run(&["import", file.to_str().unwrap()])?;
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr)?;
    assert!(error.contains("line 2"), "{error}");
    Ok(())
}

#[tokio::test]
async fn a_forget_in_a_space_on_legal_hold_says_why_and_what_to_do() -> Result<()> {
    let fresh = fresh().await?;
    let mut client = connected(&fresh).await?;
    client
        .remember(fresh.request(request("ada", vec![turn("one")])))
        .await?;
    fresh.printed(&["spaces", "set", "ada"])?;
    let held = fresh.printed(&["spaces", "hold", "ada", "--reason", "case 7"])?;
    assert!(held.contains("case 7"), "{held}");
    let forget = || proto::ForgetRequest {
        space: "ada".to_owned(),
        everything: true,
        ..Default::default()
    };
    let status = client.forget(fresh.request(forget())).await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert_eq!(reason(&status), "LEGAL_HOLD");
    assert_eq!(fields(&status), ["space"]);
    assert!(status.message().contains("Spaces.SetLegalHold"), "{status}");
    fresh.printed(&["spaces", "release", "ada", "--reason", "closed"])?;
    let forgotten = client.forget(fresh.request(forget())).await?.into_inner();
    assert!(forgotten.space_removed);
    Ok(())
}
