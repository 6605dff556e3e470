//! A fleet with two gateways, each of which believes what it read of a key for a while: what is changed at one soon holds at the other.

use std::time::Duration;

use anyhow::{Context as _, Result};
use memfleet_domain::access::{Grant, Right};
use memfleet_e2e::{Fleet, OPERATOR_KEY, Tenant, call};
use memfleet_ports::admin::{Admin, NewKey};
use memfleet_ports::memory::{Memory, PageRequest};

/// How long a change may take to hold everywhere: three seconds and what a busy machine adds.
const SECONDS: Duration = Duration::from_secs(10);

async fn reason(tenant: &Tenant) -> Option<String> {
    let page = PageRequest {
        limit: 1,
        after: None,
    };
    let listed = tenant.client.spaces(&call(), page).await;
    listed.err().map(|fault| fault.reason.into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_one_gateway_revokes_is_refused_by_the_other() -> Result<()> {
    let starting = tokio::task::spawn_blocking(|| {
        let fleet = Fleet::start()?;
        let second = fleet.another_gateway()?;
        anyhow::Ok((fleet, second))
    });
    let (fleet, (_program, second)) = starting.await??;
    let operator = Tenant::with(&fleet.url(), OPERATOR_KEY).await?;
    let key = NewKey {
        tenant: None,
        label: "used at two gateways".to_owned(),
        grant: Grant {
            rights: [Right::Read].into_iter().collect(),
            spaces: Vec::new(),
        },
        is_operator: false,
        calls_per_minute: None,
        expires_at: None,
    };
    let issued = operator.client.create_key(&call(), key).await?;
    let here = Tenant::with(&fleet.url(), &issued.secret).await?;
    let there = Tenant::with(&second, &issued.secret).await?;
    assert_eq!((reason(&here).await, reason(&there).await), (None, None));

    operator
        .client
        .revoke_key(&call(), None, issued.key.id)
        .await?;
    let revoked = tokio::time::timeout(SECONDS, async {
        while reason(&there).await.as_deref() != Some("CREDENTIAL_REVOKED") {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    revoked.await.context("the second gateway goes on")?;
    let here = reason(&here).await;
    assert_eq!(here.as_deref(), Some("CREDENTIAL_REVOKED"));
    Ok(())
}
