//! Forgetting over the wire.

use anyhow::Result;
use memfleet_domain::FaultKind;
use memfleet_domain::ids::Speaker;
use memfleet_e2e::call;
use memfleet_ports::erasure::{DependentCounts, Erased};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::memory::Memory;
use memfleet_ports::refresher::ForgetRequest;

use crate::conversation::{found, recall, remember, said, space, turns};
use crate::system::fresh;

/// What they said, tried only.
pub fn by_speaker(name: &str) -> ForgetRequest {
    ForgetRequest {
        space: space("noor"),
        filter: TurnFilter {
            speakers: vec![Speaker::new(name).unwrap()],
            ..TurnFilter::default()
        },
        everything: false,
        dry_run: true,
    }
}

#[tokio::test]
async fn a_forget_is_tried_then_done() -> Result<()> {
    let fresh = fresh().await?;
    remember(&fresh.client, "noor", turns()).await?;
    let planned = fresh.client.forget(&call(), by_speaker("Sam")).await?;
    assert_eq!(planned.erased.turns.len(), 2);
    assert!(planned.dry_run);
    let request = ForgetRequest {
        dry_run: false,
        ..by_speaker("Sam")
    };
    let done = fresh.client.forget(&call(), request).await?;
    // Agents derive more of the turns meanwhile.
    let without_dependents = |erased: Erased| Erased {
        dependents: DependentCounts::default(),
        ..erased
    };
    assert_eq!(
        without_dependents(done.erased),
        without_dependents(planned.erased)
    );
    let asked = recall("noor", "Trondheim", TurnFilter::default(), &[]);
    let left = found(&fresh.client, asked).await?;
    assert_eq!(left.len(), 5);
    assert!(left.iter().all(|text| !text.contains("Trondheim")));
    Ok(())
}

#[tokio::test]
async fn a_write_on_its_way_is_forgotten_too() -> Result<()> {
    let fresh = fresh().await?;
    let everything = ForgetRequest {
        filter: TurnFilter::default(),
        everything: true,
        dry_run: false,
        ..by_speaker("Sam")
    };
    for round in 0..10 {
        let words = format!("The {round}th password is xylophone.");
        remember(&fresh.client, "noor", vec![said("s", "Noor", 8, &words)]).await?;
        // Not waited for: the turn may still be in the queue.
        let receipt = fresh.client.forget(&call(), everything.clone()).await?;
        assert_eq!(receipt.erased.turns.len(), 1);
        let asked = recall("noor", "password", TurnFilter::default(), &[]);
        let fault = fresh.client.recall(&call(), asked).await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::NotFound);
    }
    Ok(())
}
