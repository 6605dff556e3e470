//! A node that believes an issuer: a token opens its tenant's memory as far as its scopes say, and nothing else does.

use anyhow::Result;
use memfleet_domain::Fault;
use memfleet_e2e::{Node, call};
use memfleet_ports::admin::Admin;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::memory::{Memory, PageRequest};
use memfleet_rpc::Client;
use serde_json::json;

use crate::conversation::{found, recall, remember, turns};
use crate::issuer::{Served, Signer, claims};

async fn reason(client: &Client, space: &str) -> String {
    let asked = recall(space, "Biscuit", TurnFilter::default(), &[]);
    let answer: Result<_, Fault> = client.recall(&call(), asked).await;
    answer.map_or_else(|fault| fault.reason.into_owned(), |_| "allowed".to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_believes_the_tokens_of_its_issuer() -> Result<()> {
    let signer = Signer::ed25519("one");
    let served = Served::start(&[&signer]).await;
    let directory = tempfile::tempdir()?;
    let settings = [
        ("MEMFLEET_AUTH__JWT__ISSUER", served.url.as_str()),
        ("MEMFLEET_AUTH__JWT__AUDIENCE", "memfleet"),
    ];
    let node = Node::launch(&directory.path().join("memory.db"), &settings)?;
    let connect = async |token: Option<&str>| Client::connect(&node.url(), token).await;

    let backend = connect(Some(&signer.sign(&claims(&served)))).await?;
    let token = remember(&backend, "support/one", turns()).await?;
    let asked = recall("support/one", "Biscuit", TurnFilter::default(), &[token]);
    assert_eq!(found(&backend, asked).await?.len(), 7);
    assert_eq!(reason(&backend, "others").await, "SPACE_NOT_GRANTED");

    let stranger = connect(Some(&Signer::ed25519("one").sign(&claims(&served)))).await?;
    assert_eq!(reason(&stranger, "support/one").await, "TOKEN_REFUSED");
    let nobody = connect(None).await?;
    assert_eq!(reason(&nobody, "support/one").await, "CREDENTIAL_MISSING");
    let mut of_others = claims(&served);
    of_others["tenant"] = json!("globex");
    let other = connect(Some(&signer.sign(&of_others))).await?;
    assert_eq!(reason(&other, "support/one").await, "NOT_FOUND");

    let page = PageRequest {
        limit: 10,
        after: None,
    };
    let keys = backend.keys(&call(), None, page.clone()).await;
    assert_eq!(keys.unwrap_err().reason, "RIGHT_ADMIN_MISSING");
    let mut of_administrator = claims(&served);
    of_administrator["scope"] = json!("memfleet:admin");
    let administrator = connect(Some(&signer.sign(&of_administrator))).await?;
    assert!(
        administrator
            .keys(&call(), None, page)
            .await?
            .items
            .is_empty()
    );
    Ok(())
}
