//! What happened, for whoever waits for it. Best effort: a listener that may have missed something asks the store.

use memfleet_domain::Scope;
use memfleet_domain::ids::BatchId;
use tokio::sync::broadcast;

/// Something became visible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A batch left the queue: stored, or dead-lettered.
    Settled {
        /// Where.
        scope: Scope,
        /// Which.
        batch: BatchId,
    },
    /// Facts or episodes of the space changed, or conflicts between them.
    Derived {
        /// Where.
        scope: Scope,
    },
    /// Turns of the space were forgotten: caches must let go of it.
    Forgotten {
        /// Where.
        scope: Scope,
    },
    /// Nobody knows what: other processes could not be heard for a while.
    Missed,
}

/// Announces events inside one process, and to other processes where a bridge carries them.
#[derive(Debug, Clone)]
pub struct Events {
    sender: broadcast::Sender<Event>,
    outbound: broadcast::Sender<Event>,
}

impl Default for Events {
    fn default() -> Self {
        Self {
            sender: broadcast::channel(1024).0,
            outbound: broadcast::channel(1024).0,
        }
    }
}

impl Events {
    /// Tells every listener; nobody listening is fine.
    pub fn announce(&self, event: Event) {
        let _nowhere = self.outbound.send(event.clone());
        self.pass_on(event);
    }

    /// Hears everything from now on.
    pub fn listen(&self) -> broadcast::Receiver<Event> {
        self.sender.subscribe()
    }

    /// Tells the listeners of this process what was announced in another.
    pub fn pass_on(&self, event: Event) {
        let _unheard = self.sender.send(event);
    }

    /// What is announced in this process from now on, for the bridge that carries it to the others.
    pub fn outbound(&self) -> broadcast::Receiver<Event> {
        self.outbound.subscribe()
    }
}
