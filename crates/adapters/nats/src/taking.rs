//! Out of the queue: what is fetched from the server, handed to workers, acknowledged and given back.
//!
//! The server leaves a batch with this process as long as it says that it lives. Little is fetched ahead, so that the work
//! spreads over all processes: about twice what a worker asks for, and one batch at least of each lane that has any, so that
//! every tenant's turn can come. In a lane the server keeps to its own order: a tenant waits there behind what is before it of
//! another, which is bounded, since what is added to a long backlog goes through other lanes.

use std::sync::Mutex;

use futures::{StreamExt, TryStreamExt};
use memfleet_ports::queue::{Delivery, POSTPONED};
use memfleet_ports::store::Result;
use tokio::time::Instant;

use crate::buffer::Handed;
use crate::lanes;
use crate::shared::{Shared, Taking};

/// Turns that are fetched ahead at least, so that small rounds see the tenants behind a small backlog.
const AHEAD: u64 = 64;

/// Messages that are acknowledged at once.
const AT_ONCE: usize = 64;

/// Turns or KiB that are kept back here at most …
const MOST_POSTPONED: u64 = 1024;
/// … and what says of the others that the server may have them back for five seconds.
const FOR_LATER: &str = r#"-NAK {"delay": 5000000000}"#;

/// Says that a message is done with.
const ACKNOWLEDGED: &str = "+ACK";

impl Shared {
    pub async fn take(&self, turns: u32) -> Result<Vec<Delivery>> {
        let mut taking = self.taking.lock().await;
        self.prepared().await?;
        loop {
            self.buffer().release_due(Instant::now());
            self.fetch(&mut taking, turns).await?;
            let deliveries = self.buffer().take(turns);
            let [one] = deliveries.as_slice() else {
                return Ok(deliveries);
            };
            let is_suspect = !self.buffer().suspects(&[one.acceptance]).is_empty();
            if !is_suspect {
                return Ok(deliveries);
            }
            match self.may_try(one).await {
                Ok(true) => return Ok(deliveries),
                Ok(false) => {}
                Err(error) => {
                    self.release(&[one.acceptance], false);
                    return Err(error);
                }
            }
        }
    }

    /// Asks marked lanes until enough is here or nothing is left.
    async fn fetch(&self, taking: &mut Taking, turns: u32) -> Result<()> {
        let wanted = (u64::from(turns) * 2).max(AHEAD);
        let mut is_first = true;
        loop {
            let here = self.buffer().waiting();
            let mut marked = self.lanes.marked();
            if here >= wanted {
                marked.retain(|(lane, _)| is_first && self.buffer().lacks(*lane));
            }
            if marked.is_empty() {
                return Ok(());
            }
            let missing = wanted.saturating_sub(here).max(1) as f64;
            let size = taking.usual_size.max(1.0) * marked.len() as f64;
            let count = if is_first {
                1
            } else {
                (missing / size).ceil() as u64
            };
            self.ask(taking, marked, count).await?;
            is_first = false;
        }
    }

    /// Up to `count` messages of each lane.
    async fn ask(&self, taking: &mut Taking, marked: Vec<(u8, u64)>, count: u64) -> Result<()> {
        let spoiled = Mutex::new(Vec::new());
        let sizes = Mutex::new(Vec::new());
        let pulls = marked.into_iter().map(async |(lane, signs)| {
            let receive = |message| match self.receive(lane, message) {
                Some(Ok(size)) => sizes.lock().expect("nothing panics here").push(size),
                Some(Err(one)) => spoiled.lock().expect("nothing panics here").push(one),
                None => {}
            };
            let (link, names) = (&self.link, &self.names);
            let is_more = lanes::pull(link, names, &self.lanes, lane, count, receive).await?;
            if !is_more {
                self.lanes.followed(lane, signs);
            }
            Ok(())
        });
        let asked: Result<Vec<()>> = futures::future::try_join_all(pulls).await;
        for size in sizes.into_inner().expect("nothing panics here") {
            taking.usual_size = taking.usual_size.mul_add(0.8, size as f64 * 0.2);
        }
        for one in spoiled.into_inner().expect("nothing panics here") {
            self.put_away(one).await?;
        }
        asked.map(|_| ())
    }

    /// Removes what was applied. What the server could not be told stays held, to be given back by its worker.
    pub async fn acknowledge(&self, positions: &[u64]) -> Result<()> {
        let known: Vec<_> = {
            let buffer = self.buffer();
            positions
                .iter()
                .flat_map(|position| buffer.at(*position))
                .collect()
        };
        if !known.is_empty() {
            self.prepared().await?;
        }
        let settling = futures::stream::iter(known).map(async |handed: Handed| {
            self.settle(&handed).await?;
            self.buffer().remove(handed.sequence);
            Ok(())
        });
        settling.buffer_unordered(AT_ONCE).try_collect::<()>().await
    }

    /// Returns when the server knows that a message is done with. Where it may not know that it handed it out (it was killed
    /// since, or another of its cluster took over) it leaves an acknowledgement unanswered: the message is deleted then.
    async fn settle(&self, handed: &Handed) -> Result<()> {
        if handed.epoch == self.link.epoch() {
            let subject = handed.reply.to_string();
            let told = self.link.request(subject, None, ACKNOWLEDGED.into());
            if let Ok(told) = tokio::time::timeout(self.link.timeout / 2, told).await {
                return told.map(|_| ());
            }
        }
        self.link
            .delete(&self.names.ingest, handed.sequence)
            .await?;
        Ok(())
    }

    /// Keeps batches back for a moment. Of many, the youngest go back to the server for longer: what waits for others must not
    /// fill the memory of this process.
    pub fn postpone(&self, positions: &[u64]) {
        let surplus = {
            let mut buffer = self.buffer();
            buffer.postpone(positions, Instant::now() + POSTPONED);
            buffer.surplus(MOST_POSTPONED)
        };
        for reply in surplus {
            self.say(reply, FOR_LATER);
        }
    }

    /// Takes the tries back of what was not tried.
    pub async fn discount(&self, positions: &[u64]) -> Result<()> {
        let suspects = self.buffer().suspects(positions);
        for position in suspects {
            self.discount_try(position).await?;
        }
        Ok(())
    }

    pub fn release(&self, positions: &[u64], tried: bool) {
        {
            let mut buffer = self.buffer();
            for position in positions {
                buffer.release(*position, tried);
            }
        }
        self.ready.notify_one();
    }
}
