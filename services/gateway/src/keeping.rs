//! Keeping what a request leaves, within the numbers that each tenant has of it: names of sessions and exchanges are free, so that nothing else
//! bounds them.

use memfleet_domain::ids::TenantId;
use memfleet_ports::exchanges::{Entry, Written};
use memfleet_ports::store::Result;

use crate::Gateway;

/// Writes, on the average, after which a look is taken at how many a tenant has.
const LOOKED_AT: u8 = 64;

impl Gateway {
    /// [`memfleet_ports::exchanges::Exchanges::keep`]; now and then what is beyond the tenant's numbers goes behind it.
    pub(crate) async fn keep_entry(&self, tenant: &TenantId, entry: Entry<'_>) -> Result<Written> {
        let written = self.exchanges.keep(tenant, entry).await?;
        if rand::random::<u8>().is_multiple_of(LOOKED_AT) {
            self.bound(tenant.clone());
        }
        Ok(written)
    }

    fn bound(&self, tenant: TenantId) {
        let (exchanges, injections) = (self.exchanges.clone(), self.injections.clone());
        let options = self.options;
        tokio::spawn(async move {
            let bounded = async {
                let ended = exchanges.bound(&tenant, options.max_exchanges).await?;
                let old = injections.bound(&tenant, options.max_injections).await?;
                Result::Ok((ended, old))
            };
            match bounded.await {
                Ok((0, 0)) => {}
                Ok((ended, old)) => tracing::info!(
                    %tenant, exchanges = ended, injections = old,
                    "removed what was beyond `store.max_exchanges` and `store.max_injections`"
                ),
                Err(error) => tracing::warn!(%tenant, %error, "exchanges are bounded later"),
            }
        });
    }
}
