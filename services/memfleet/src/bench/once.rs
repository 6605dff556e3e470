//! A retriever that keeps its last answer: a question's blocks for ten budgets then cost one search.

use std::sync::Arc;

use async_trait::async_trait;
use memfleet_domain::Fault;
use memfleet_gateway::Gateway;
use memfleet_ports::context::Context;
use memfleet_ports::retriever::{Found, Query, Retriever};
use tokio::sync::Mutex;

/// A gateway like another that searches once for equal queries in a row or at the same moment.
pub fn once(gateway: &Gateway) -> Gateway {
    let retriever = Arc::new(Once {
        retriever: gateway.retriever.clone(),
        last: Mutex::default(),
    });
    Gateway {
        retriever,
        ..gateway.clone()
    }
}

struct Once {
    retriever: Arc<dyn Retriever>,
    last: Mutex<Option<(Query, Found)>>,
}

#[async_trait]
impl Retriever for Once {
    async fn search(&self, context: &Context, query: &Query) -> Result<Found, Fault> {
        let mut last = self.last.lock().await;
        if let Some((asked, found)) = last.as_ref()
            && asked == query
        {
            return Ok(found.clone());
        }
        let found = self.retriever.search(context, query).await?;
        *last = Some((query.clone(), found.clone()));
        Ok(found)
    }
}
