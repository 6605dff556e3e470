//! Which lanes may have something to take, and asking the server for it.
//!
//! A lane is asked when something was published into it, here or by another process as far as it said so, and otherwise about once
//! a second while the stream is not empty: a queue where nothing happens costs one small request a second.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_nats::{Message, StatusCode, Subject};
use futures::StreamExt;
use memfleet_ports::store::Result;
use serde_json::json;

use crate::link::Link;
use crate::names::{LANES, Names};
use crate::streams::consumer;

/// How long the server may wait for a message that this process knows to be stored: its consumers learn of it a moment after
/// the publisher does.
const SETTLING: Duration = Duration::from_millis(50);

/// What is known of one lane.
#[derive(Debug, Default)]
struct Lane {
    /// Counts the signs that there may be something.
    signs: AtomicU64,
    /// The signs that were followed until nothing was left.
    followed: AtomicU64,
    /// The last place in the stream that this process published into the lane.
    published: AtomicU64,
    /// The last place that came from it.
    seen: AtomicU64,
}

/// All lanes.
#[derive(Debug)]
pub struct Lanes(Vec<Lane>);

impl Default for Lanes {
    fn default() -> Self {
        Self((0..LANES).map(|_| Lane::default()).collect())
    }
}

impl Lanes {
    /// Something was published there, or given back.
    pub fn mark(&self, lane: u8) {
        if let Some(lane) = self.0.get(usize::from(lane)) {
            lane.signs.fetch_add(1, Ordering::Release);
        }
    }

    /// This process published there, and the message must be found by whoever asks from now on.
    pub fn published(&self, lane: u8, sequence: u64) {
        let known = &self.0[usize::from(lane)];
        known.published.fetch_max(sequence, Ordering::AcqRel);
        self.mark(lane);
    }

    /// Nobody knows.
    pub fn mark_all(&self) {
        (0..LANES).for_each(|lane| self.mark(lane));
    }

    /// Lanes to ask, each with the signs seen by now.
    pub fn marked(&self) -> Vec<(u8, u64)> {
        let lanes = self.0.iter().zip(0..);
        let signs = lanes.filter_map(|(lane, number)| {
            let signs = lane.signs.load(Ordering::Acquire);
            (signs > lane.followed.load(Ordering::Acquire)).then_some((number, signs))
        });
        signs.collect()
    }

    /// The lane was empty after these signs.
    pub fn followed(&self, lane: u8, signs: u64) {
        let lane = &self.0[usize::from(lane)];
        lane.followed.fetch_max(signs, Ordering::AcqRel);
        let published = lane.published.load(Ordering::Acquire);
        lane.seen.fetch_max(published, Ordering::AcqRel);
    }

    /// A message from this place came.
    pub fn seen(&self, lane: u8, sequence: u64) {
        if let Some(lane) = self.0.get(usize::from(lane)) {
            lane.seen.fetch_max(sequence, Ordering::AcqRel);
        }
    }

    fn awaits(&self, lane: u8) -> bool {
        let lane = &self.0[usize::from(lane)];
        lane.published.load(Ordering::Acquire) > lane.seen.load(Ordering::Acquire)
    }
}

/// Asks a lane for up to `count` messages that are there now, each given to `receive` as it comes. False when there were fewer.
pub async fn pull(
    link: &Link,
    names: &Names,
    lanes: &Lanes,
    lane: u8,
    count: u64,
    receive: impl Fn(Message),
) -> Result<bool> {
    let pulling = async {
        link.connected().await?;
        let inbox = Subject::from(link.client.new_inbox());
        let subscribed = link.client.subscribe(inbox.clone()).await;
        let mut answers = subscribed.map_err(|error| link.unavailable(error))?;
        let mut question = json!({"batch": count, "no_wait": true});
        if lanes.awaits(lane) {
            question["expires"] = json!(SETTLING.as_nanos() as u64);
        }
        let subject = format!(
            "$JS.API.CONSUMER.MSG.NEXT.{}.{}",
            names.ingest,
            consumer(lane)
        );
        let asked = link
            .client
            .publish_with_reply(subject, inbox, question.to_string().into());
        asked.await.map_err(|error| link.unavailable(error))?;
        for _ in 0..count {
            let answer = answers.next().await;
            let Some(message) = answer else {
                return Err(link.unavailable("the connection is closed"));
            };
            match message.status {
                None => receive(message),
                Some(StatusCode::NO_RESPONDERS) => {
                    link.lost.notify_one();
                    return Err(link.unavailable("the consumers are gone"));
                }
                // Nothing left, or others are before us: in both cases not now.
                Some(_) => return Ok(false),
            }
        }
        Ok(true)
    };
    link.within(pulling).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_that_comes_while_a_lane_is_emptied_is_not_lost() {
        let lanes = Lanes::default();
        assert_eq!(lanes.marked(), []);
        lanes.mark(3);
        let [(lane, signs)] = lanes.marked()[..] else {
            panic!("one lane is marked");
        };
        lanes.mark(3);
        lanes.followed(lane, signs);
        assert_eq!(lanes.marked(), [(3, 2)]);
        lanes.followed(3, 2);
        assert_eq!(lanes.marked(), []);
    }

    #[test]
    fn what_was_published_here_is_awaited_until_it_is_seen_or_gone() {
        let lanes = Lanes::default();
        lanes.published(3, 7);
        assert!(lanes.awaits(3));
        lanes.seen(3, 7);
        assert!(!lanes.awaits(3));
        lanes.published(3, 8);
        lanes.followed(3, 2);
        assert!(!lanes.awaits(3), "another process has it");
    }
}
