//! What goes on beside the calls. Waking whoever takes: a word from each process that published, and a look at the stream once a second for what no word came
//! of (a process that ended while it held something, a word that was lost).

use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::StreamExt;

use crate::shared::Shared;

/// Says that a message is being worked on.
const PROGRESS: &str = "+WPI";
/// Gives it back at once.
const GIVEN_BACK: &str = "-NAK";

/// How often the stream is looked at.
const LOOK: Duration = Duration::from_secs(1);

impl Shared {
    /// Hears what others published. Never ends.
    pub async fn hear(&self) {
        loop {
            let Ok(mut words) = self.link.client.subscribe(self.names.wake()).await else {
                tokio::time::sleep(LOOK).await;
                continue;
            };
            while let Some(word) = words.next().await {
                if let Some(lane) = word.payload.first() {
                    self.lanes.mark(*lane);
                    self.ready.notify_one();
                }
            }
        }
    }

    /// Looks whether there is more in the stream than this process has. Never ends.
    pub async fn look(&self) {
        loop {
            tokio::time::sleep(LOOK).await;
            self.link.look();
            if !self.link.reach().borrow().up {
                continue;
            }
            let Ok(info) = self.link.stream(&self.names.ingest).await else {
                continue;
            };
            if info.state.last_seq < self.highest.load(Ordering::Acquire) {
                let _named = self.is_put_back();
                continue;
            }
            if info.state.messages > self.buffer().len() as u64 {
                self.lanes.mark_all();
                self.ready.notify_one();
            }
        }
    }

    /// Says that everything here is being worked on, three times as often as it must. Never ends.
    pub async fn keep_alive(&self) {
        loop {
            let wait = *self.ack_wait.borrow() / 3;
            tokio::time::sleep(wait).await;
            if !self.link.reach().borrow().up {
                continue;
            }
            let replies = self.buffer().replies();
            for reply in replies {
                let _unheard = self.link.client.publish(reply, PROGRESS.into()).await;
            }
        }
    }

    /// Gives everything back to the server, for another process to have at once.
    pub async fn give_back(&self) {
        let replies = self.buffer().replies();
        self.buffer().clear();
        for reply in replies {
            let _unheard = self.link.client.publish(reply, GIVEN_BACK.into()).await;
        }
        let _unheard = self.link.client.flush().await;
    }
}
