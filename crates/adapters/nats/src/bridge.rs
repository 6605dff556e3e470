//! Events between processes, over core NATS: what is announced here is heard there. Best effort, as events are; a connection
//! that was lost says that something may have been missed.

use futures::StreamExt;
use memfleet_domain::Scope;
use memfleet_domain::ids::{BatchId, SpaceId, TenantId};
use memfleet_ports::events::{Event, Events};
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast::error::RecvError;

use crate::names::tenant_token;
use crate::queue::NatsQueue;
use crate::shared::Shared;

/// A batch left the queue.
const SETTLED: &str = "settled";
/// Facts or episodes of a space changed.
const DERIVED: &str = "derived";
/// Turns of a space were forgotten.
const FORGOTTEN: &str = "forgotten";
/// A process may have failed to say something.
const MISSED: &str = "missed";

/// An event on its way.
#[derive(Debug, Serialize, Deserialize)]
struct Word {
    tenant: TenantId,
    space: SpaceId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    batch: Option<BatchId>,
}

impl NatsQueue {
    /// Carries events between this process and the others until it is dropped. One for a process.
    pub async fn bridge(&self, events: &Events) {
        let shared = &self.shared;
        tokio::join!(
            shared.tell(events),
            shared.listen(events),
            shared.miss(events)
        );
    }
}

impl Shared {
    /// What is announced here.
    async fn tell(&self, events: &Events) {
        let mut announced = events.outbound();
        loop {
            let (subject, word) = match announced.recv().await {
                Ok(Event::Settled { scope, batch }) => self.word(SETTLED, scope, Some(batch)),
                Ok(Event::Derived { scope }) => self.word(DERIVED, scope, None),
                Ok(Event::Forgotten { scope }) => self.word(FORGOTTEN, scope, None),
                // What was not said may have been a forget.
                Ok(Event::Missed) | Err(RecvError::Lagged(_)) => {
                    (self.names.announcement(MISSED, "all"), bytes::Bytes::new())
                }
                Err(RecvError::Closed) => return,
            };
            // While nobody can be told, nothing is kept for later: the others know that they may have missed something.
            if self.link.reach().borrow().up {
                let _unheard = self.link.client.publish(subject, word).await;
            }
        }
    }

    fn word(&self, kind: &str, scope: Scope, batch: Option<BatchId>) -> (String, bytes::Bytes) {
        let subject = self.names.announcement(kind, &tenant_token(&scope.tenant));
        let word = Word {
            tenant: scope.tenant,
            space: scope.space,
            batch,
        };
        (subject, crate::message::json(&word).into())
    }

    /// What is announced elsewhere; this connection does not hear itself.
    async fn listen(&self, events: &Events) {
        let subscribe = async |kind| {
            self.link
                .client
                .subscribe(self.names.announcement(kind, "*"))
                .await
        };
        let subscribed = futures::try_join!(
            subscribe(SETTLED),
            subscribe(DERIVED),
            subscribe(FORGOTTEN),
            subscribe(MISSED)
        );
        let Ok((settled, derived, forgotten, missed)) = subscribed else {
            tracing::error!("events of other processes are not heard: the connection is closed");
            return;
        };
        let mut words = futures::stream::select_all([
            settled
                .map(|message| heard(&message.payload, settlement))
                .boxed(),
            derived
                .map(|message| heard(&message.payload, |scope, _| Some(Event::Derived { scope })))
                .boxed(),
            forgotten
                .map(|message| {
                    heard(&message.payload, |scope, _| {
                        Some(Event::Forgotten { scope })
                    })
                })
                .boxed(),
            missed.map(|_| Some(Event::Missed)).boxed(),
        ]);
        while let Some(event) = words.next().await {
            // A word of a newer version may mean anything.
            events.pass_on(event.unwrap_or(Event::Missed));
        }
    }

    /// After a connection was lost.
    async fn miss(&self, events: &Events) {
        let mut reach = self.link.reach();
        let mut epoch = reach.borrow_and_update().epoch;
        loop {
            let waited = reach.wait_for(|reach| reach.up && reach.epoch > epoch);
            match waited.await {
                Ok(reach) => epoch = reach.epoch,
                Err(_) => return,
            }
            if epoch > 1 {
                events.pass_on(Event::Missed);
            }
        }
    }
}

fn heard(payload: &[u8], event: impl Fn(Scope, Option<BatchId>) -> Option<Event>) -> Option<Event> {
    let word: Word = serde_json::from_slice(payload).ok()?;
    let scope = Scope {
        tenant: word.tenant,
        space: word.space,
    };
    event(scope, word.batch)
}

fn settlement(scope: Scope, batch: Option<BatchId>) -> Option<Event> {
    batch.map(|batch| Event::Settled { scope, batch })
}
