//! Waking whoever takes: a word from each process that published, and a look at the stream once a second for what no word came
//! of (a process that ended while it held something, a word that was lost).

use std::time::Duration;

use futures::StreamExt;

use crate::shared::Shared;

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
            if !self.link.reach().borrow().up {
                continue;
            }
            let Ok(info) = self.link.stream(&self.names.ingest).await else {
                continue;
            };
            if info.state.messages > self.buffer().len() as u64 {
                self.lanes.mark_all();
                self.ready.notify_one();
            }
        }
    }
}
