//! What is left of forgotten words in the files of a node, also after a crash.

use anyhow::Result;
use memfleet_e2e::{call, in_files};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::memory::Memory;
use memfleet_ports::refresher::ForgetRequest;

use crate::conversation::{found, recall, remember, said, space, turns};
use crate::forgetting::by_speaker;
use crate::system::{fresh, open};

#[tokio::test]
async fn a_forget_leaves_no_words_behind() -> Result<()> {
    let fresh = fresh().await?;
    remember(&fresh.client, "noor", turns()).await?;
    let planned = fresh.client.forget(&call(), by_speaker("Sam")).await?;
    assert!(planned.dry_run && in_files(&fresh.store, "Trondheim")?);
    let request = ForgetRequest {
        dry_run: false,
        ..by_speaker("Sam")
    };
    fresh.client.forget(&call(), request).await?;
    assert!(!in_files(&fresh.store, "Trondheim")?, "words are left");
    assert!(!in_files(&fresh.store, "trondheim")?, "terms are left");
    assert!(
        in_files(&fresh.store, "thunder")?,
        "the search finds what is there"
    );
    Ok(())
}

#[tokio::test]
async fn a_write_on_its_way_leaves_no_words_behind() -> Result<()> {
    let fresh = fresh().await?;
    let everything = ForgetRequest {
        space: space("noor"),
        filter: TurnFilter::default(),
        everything: true,
        dry_run: false,
    };
    for round in 0..10 {
        let words = format!("The {round}th password is xylophone.");
        remember(&fresh.client, "noor", vec![said("s", "Noor", 8, &words)]).await?;
        fresh.client.forget(&call(), everything.clone()).await?;
        assert!(!in_files(&fresh.store, "xylophone")?);
    }
    Ok(())
}

#[tokio::test]
async fn what_was_forgotten_stays_forgotten_after_a_crash() -> Result<()> {
    let fresh = fresh().await?;
    let token = remember(&fresh.client, "noor", turns()).await?;
    let request = ForgetRequest {
        dry_run: false,
        ..by_speaker("Noor")
    };
    fresh.client.forget(&call(), request).await?;
    let store = fresh.store.clone();
    let _directory = fresh.kill()?;
    let (_node, tenant) = open(&store).await?;
    let asked = recall("noor", "Biscuit", TurnFilter::default(), &[token]);
    assert_eq!(found(&tenant.client, asked).await?.len(), 3);
    assert!(!in_files(&store, "Biscuit")?);
    Ok(())
}
