//! A fleet whose connections are encrypted and certified on both sides: it works as any other, and goes on while its certificates
//! are replaced.

use anyhow::Result;
use memfleet_e2e::{Fleet, Tenant};
use memfleet_ports::filter::TurnFilter;
use memfleet_tls::testing::Authority;

use crate::conversation::{found, recall, remember, said, turns};

/// What a role logs when it has looked at its files.
const RENEWED: &str = "certificates were read again";

async fn remembers_and_finds(tenant: &Tenant, text: &str) -> Result<()> {
    let token = remember(&tenant.client, "noor", vec![said("s", "Noor", 9, text)]).await?;
    let asked = recall("noor", text, TurnFilter::default(), &[token]);
    let found = found(&tenant.client, asked).await?;
    assert!(found.iter().any(|found| found == text), "{found:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_encrypted_fleet_works_and_goes_on_while_its_certificates_change() -> Result<()> {
    let authority = std::sync::Arc::new(Authority::new());
    let signing = authority.clone();
    let starting = tokio::task::spawn_blocking(move || Fleet::start_encrypted(&signing));
    let fleet = starting.await??;
    let tenant = Tenant::connect_believing(&fleet.url(), 0, fleet.authority()).await?;
    let token = remember(&tenant.client, "noor", turns()).await?;
    let asked = recall("noor", "Biscuit", TurnFilter::default(), &[token]);
    assert_eq!(found(&tenant.client, asked).await?.len(), 7);
    tenant.printed(&["recall", "Biscuit", "--space", "noor"])?;

    // Whoever does not know the authority, or speaks in the clear, gets nowhere.
    assert!(Tenant::connect(&fleet.url(), 0).await.is_err());
    let clear = fleet.url().replace("https", "http");
    let tenant_in_the_clear = Tenant::connect(&clear, 0).await;
    if let Ok(tenant) = tenant_in_the_clear {
        assert!(remembers_and_finds(&tenant, "In the clear.").await.is_err());
    }

    authority.issue(fleet.folder(), &["127.0.0.1"]);
    let renewed = || {
        let logs = fleet.roles.iter().map(|role| role.program.log());
        logs.filter(|log| log.contains(RENEWED)).count()
    };
    let mut line = 0;
    while renewed() < fleet.roles.len() {
        remembers_and_finds(&tenant, &format!("Line {line} while certificates change.")).await?;
        line += 1;
    }
    let again = Tenant::connect_believing(&fleet.url(), 0, fleet.authority()).await?;
    remembers_and_finds(&again, "On new certificates.").await
}
