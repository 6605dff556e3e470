//! What this process has from the server: batches that wait here for a worker, and batches that a worker holds. Plain data, so
//! that turns of tenants, orders and attempts can be seen to be right without a server.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use async_nats::Subject;
use memfleet_domain::ids::SpaceId;
use memfleet_domain::ingestion::Batch;
use memfleet_domain::time::Timestamp;
use memfleet_ports::queue::Delivery;
use tokio::time::Instant;

/// By position of acceptance, then by place in the stream.
type Key = (u64, u64);

/// A batch from the server.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its place in the stream.
    pub sequence: u64,
    /// Its position of acceptance.
    pub position: u64,
    /// Token of its tenant.
    pub tenant: String,
    /// The lane it came through.
    pub lane: u8,
    /// Its turns or its KiB, whichever is more, and 1 at least.
    pub size: u64,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// How often a worker of this process tried it. The server's number is none of tries: it counts what was fetched ahead and
    /// given back at the end of a process, too.
    pub attempts: u32,
    /// True for a suspect message: the server handed it out so often that it may crash the process
    /// that works on it. It is alone in its round.
    pub is_suspect: bool,
    /// Where it is acknowledged.
    pub reply: Subject,
    /// The connection that it came over.
    pub epoch: u64,
    /// The trace of whoever published it.
    pub traceparent: Option<String>,
    /// What the call is named in logs that published it.
    pub request_id: Option<String>,
    /// The batch.
    pub batch: Batch,
}

/// What is needed to be done with a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handed {
    /// Its place in the stream.
    pub sequence: u64,
    /// Where it is acknowledged.
    pub reply: Subject,
    /// The connection that it came over.
    pub epoch: u64,
}

/// Everything at hand.
#[derive(Debug, Default)]
pub struct Buffer {
    entries: BTreeMap<Key, Entry>,
    places: HashMap<u64, Key>,
    /// Tenant by tenant, what no worker holds.
    free: BTreeMap<String, BTreeSet<Key>>,
    held: BTreeSet<u64>,
    /// Positions of held messages that no worker has, with the instant when they are free again.
    postponed: BTreeMap<u64, Instant>,
    last_tenant: String,
    /// By tenant of the last round, its space whose turn it was last.
    last_spaces: HashMap<String, SpaceId>,
}

impl Buffer {
    /// Takes in what the server handed out. What is here already came again because its time ran out: only where it is
    /// acknowledged is new.
    pub fn put(&mut self, entry: Entry) {
        if let Some(key) = self.places.get(&entry.sequence) {
            if let Some(known) = self.entries.get_mut(key) {
                known.reply = entry.reply;
                known.epoch = entry.epoch;
            }
            return;
        }
        let key = (entry.position, entry.sequence);
        self.places.insert(entry.sequence, key);
        self.set_free(entry.tenant.clone(), key);
        self.entries.insert(key, entry);
    }

    fn set_free(&mut self, tenant: String, key: Key) {
        self.free.entry(tenant).or_default().insert(key);
    }

    /// How much waits here, in turns or KiB.
    pub fn waiting(&self) -> u64 {
        let free = self.free.values().flatten();
        free.filter_map(|key| self.entries.get(key))
            .map(|entry| entry.size)
            .sum()
    }

    /// Whether nothing of a lane waits here.
    pub fn lacks(&self, lane: u8) -> bool {
        let mut free = self.free.values().flatten();
        !free.any(|key| {
            self.entries
                .get(key)
                .is_some_and(|entry| entry.lane == lane)
        })
    }

    /// How many batches are here, held or not.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Forgets everything: the stream it came from is gone.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Where everything here is acknowledged.
    pub fn replies(&self) -> Vec<Subject> {
        let replies = self.entries.values().map(|entry| entry.reply.clone());
        replies.collect()
    }

    /// About `turns` turns, one batch at least: the first of each tenant, whose spaces come in turn, then the next of each, and so
    /// on, beginning behind the tenant that was last; in the order of acceptance. A worker holds them from now on.
    pub fn take(&mut self, turns: u32) -> Vec<Delivery> {
        let mut chosen = self.choose(turns);
        chosen.sort_unstable();
        let mut deliveries = Vec::with_capacity(chosen.len());
        for key in chosen {
            let Some(entry) = self.entries.get_mut(&key) else {
                continue;
            };
            entry.attempts += 1;
            deliveries.push(Delivery {
                acceptance: entry.position,
                attempt: entry.attempts,
                accepted_at: entry.accepted_at,
                traceparent: entry.traceparent.clone(),
                request_id: entry.request_id.clone(),
                batch: entry.batch.clone(),
            });
            let tenant = entry.tenant.clone();
            self.held.insert(key.0);
            self.unfree(&tenant, key);
        }
        deliveries
    }

    fn choose(&mut self, turns: u32) -> Vec<Key> {
        let is_next = |(tenant, _): &(&String, _)| **tenant > self.last_tenant;
        let (behind, before): (Vec<_>, Vec<_>) = self.free.iter().partition(is_next);
        let lines = behind.into_iter().chain(before);
        let mut lines: Vec<_> = lines
            .map(|(tenant, keys)| (tenant, self.spaces_in_turn(tenant, keys).into_iter()))
            .collect();
        let (mut chosen, mut positions, mut sum) = (Vec::new(), BTreeSet::new(), 0);
        let (mut last, mut is_full) = (None, false);
        let mut last_spaces = HashMap::new();
        while !lines.is_empty() && !is_full && sum < u64::from(turns.max(1)) {
            lines.retain_mut(|(tenant, keys)| {
                if is_full || sum >= u64::from(turns.max(1)) {
                    return true;
                }
                // The rest of a batch that a worker holds as it was waits for what becomes of that.
                let free = keys.find(|(position, _)| {
                    !self.held.contains(position) && !positions.contains(position)
                });
                let Some(key) = free else {
                    return false;
                };
                let entry = self.entries.get(&key);
                let is_suspect = entry.is_some_and(|entry| entry.is_suspect);
                if is_suspect && !chosen.is_empty() {
                    is_full = true;
                    return false;
                }
                is_full = is_suspect;
                chosen.push(key);
                positions.insert(key.0);
                last = Some((*tenant).clone());
                if let Some(entry) = entry {
                    let space = entry.batch.scope.space.clone();
                    last_spaces.insert((*tenant).clone(), space);
                }
                sum += entry.map_or(1, |entry| entry.size);
                true
            });
        }
        self.last_spaces = last_spaces;
        self.last_tenant = last.unwrap_or_else(|| std::mem::take(&mut self.last_tenant));
        chosen
    }

    /// Batches of a tenant with the oldest of each space first, beginning behind the space that was last, then the next of each,
    /// and so on.
    fn spaces_in_turn(&self, tenant: &str, keys: &BTreeSet<Key>) -> Vec<Key> {
        let last = self.last_spaces.get(tenant);
        let mut of_space: HashMap<&SpaceId, usize> = HashMap::new();
        let mut placed = Vec::with_capacity(keys.len());
        for key in keys {
            let Some(entry) = self.entries.get(key) else {
                continue;
            };
            let space = &entry.batch.scope.space;
            let place = of_space.entry(space).or_default();
            *place += 1;
            placed.push((*place, last >= Some(space), space, *key));
        }
        placed.sort_unstable();
        placed.into_iter().map(|(.., key)| key).collect()
    }

    fn unfree(&mut self, tenant: &str, key: Key) {
        if let Some(keys) = self.free.get_mut(tenant) {
            keys.remove(&key);
            if keys.is_empty() {
                self.free.remove(tenant);
            }
        }
    }

    /// Positions of these that hold suspect messages.
    pub fn suspects(&self, positions: &[u64]) -> Vec<u64> {
        let is_suspect = |position: &&u64| {
            let mut at = self.entries.range((**position, 0)..=(**position, u64::MAX));
            at.any(|(_, entry)| entry.is_suspect)
        };
        positions.iter().filter(is_suspect).copied().collect()
    }

    /// Whether a worker has what is at a position.
    pub fn holds(&self, position: u64) -> bool {
        self.held.contains(&position)
    }

    /// Everything at a position, held or not: what was applied at a position was all that is left of it.
    pub fn at(&self, position: u64) -> Vec<Handed> {
        let range = self.entries.range((position, 0)..=(position, u64::MAX));
        let handed = range.map(|(_, entry)| Handed {
            sequence: entry.sequence,
            reply: entry.reply.clone(),
            epoch: entry.epoch,
        });
        handed.collect()
    }

    /// Lets go of what is no longer in the stream.
    pub fn remove(&mut self, sequence: u64) {
        let Some(key) = self.places.remove(&sequence) else {
            return;
        };
        let Some(entry) = self.entries.remove(&key) else {
            return;
        };
        self.unfree(&entry.tenant, key);
        let mut same = self.entries.range((key.0, 0)..=(key.0, u64::MAX));
        if same.next().is_none() {
            self.held.remove(&key.0);
            self.postponed.remove(&key.0);
        }
    }

    /// Keeps what is held back until an instant.
    pub fn postpone(&mut self, positions: &[u64], due: Instant) {
        let held = positions.iter().filter(|one| self.held.contains(one));
        self.postponed.extend(held.map(|position| (*position, due)));
    }

    /// Frees what was kept back until now.
    pub fn release_due(&mut self, now: Instant) {
        let due = self.postponed.iter().filter(|(_, due)| **due <= now);
        let due: Vec<u64> = due.map(|(position, _)| *position).collect();
        for position in due {
            self.release(position, false);
        }
    }

    /// When the next of what is kept back is free.
    pub fn next_due(&self) -> Option<Instant> {
        self.postponed.values().min().copied()
    }

    /// Lets go of the youngest that are kept back beyond `most` turns or KiB, and says where to answer for them.
    pub fn surplus(&mut self, most: u64) -> Vec<Subject> {
        let (mut sum, mut replies, mut gone) = (0, Vec::new(), Vec::new());
        for position in self.postponed.keys() {
            for (_, entry) in self.entries.range((*position, 0)..=(*position, u64::MAX)) {
                sum += entry.size;
                if sum > most {
                    replies.push(entry.reply.clone());
                    gone.push(entry.sequence);
                }
            }
        }
        for sequence in gone {
            self.remove(sequence);
        }
        replies
    }

    /// Gives what is held back to the line; without an attempt where it was not tried. Where the rest of it came meanwhile, that
    /// is what is left.
    pub fn release(&mut self, position: u64, tried: bool) {
        if !self.held.remove(&position) {
            return;
        }
        self.postponed.remove(&position);
        let range = self.entries.range((position, 0)..=(position, u64::MAX));
        let mut keys: Vec<Key> = range.map(|(key, _)| *key).collect();
        let Some(newest) = keys.pop() else {
            return;
        };
        for (_, sequence) in keys {
            self.remove(sequence);
        }
        if let Some(entry) = self.entries.get_mut(&newest) {
            let tenant = entry.tenant.clone();
            if !tried {
                entry.attempts = entry.attempts.saturating_sub(1);
            }
            self.set_free(tenant, newest);
        }
    }
}

#[cfg(test)]
mod tests {
    use memfleet_ports::conformance::samples::{batch, instant};

    use super::*;

    fn entry(tenant: &str, position: u64, size: u64) -> Entry {
        Entry {
            sequence: position,
            position,
            tenant: tenant.to_owned(),
            lane: 0,
            size,
            accepted_at: instant(0),
            attempts: 0,
            is_suspect: false,
            reply: Subject::from("reply"),
            epoch: 1,
            traceparent: None,
            request_id: None,
            batch: batch("k", vec![]),
        }
    }

    fn taken(buffer: &mut Buffer, turns: u32) -> Vec<u64> {
        let deliveries = buffer.take(turns).into_iter();
        deliveries.map(|delivery| delivery.acceptance).collect()
    }

    #[test]
    fn tenants_come_in_turn_and_the_next_round_begins_behind_the_last() {
        let mut buffer = Buffer::default();
        for position in 1..=4 {
            buffer.put(entry("acme", position, 2));
        }
        buffer.put(entry("globex", 5, 2));
        buffer.put(entry("initech", 6, 2));
        assert_eq!(taken(&mut buffer, 4), [1, 5]);
        assert_eq!(taken(&mut buffer, 4), [2, 6]);
        assert_eq!(taken(&mut buffer, 100), [3, 4]);
        assert_eq!(taken(&mut buffer, 100), [0; 0]);
    }

    #[test]
    fn what_comes_again_from_the_server_is_not_there_twice() {
        let mut buffer = Buffer::default();
        buffer.put(entry("acme", 1, 1));
        let mut again = entry("acme", 1, 1);
        again.reply = Subject::from("newer");
        buffer.put(again.clone());
        assert_eq!(taken(&mut buffer, 10), [1]);
        buffer.put(again);
        assert_eq!(taken(&mut buffer, 10), [0; 0]);
        assert_eq!(buffer.at(1)[0].reply, Subject::from("newer"));
    }

    #[test]
    fn the_rest_of_a_batch_waits_for_what_becomes_of_the_whole() {
        let mut buffer = Buffer::default();
        buffer.put(entry("acme", 1, 1));
        assert_eq!(taken(&mut buffer, 10), [1]);
        let mut rest = entry("acme", 1, 1);
        rest.sequence = 9;
        buffer.put(rest);
        assert_eq!(taken(&mut buffer, 10), [0; 0]);
        buffer.remove(1);
        buffer.release(1, true);
        assert_eq!(taken(&mut buffer, 10), [1]);
        buffer.remove(9);
        assert_eq!((buffer.len(), buffer.waiting()), (0, 0));
    }

    #[test]
    fn what_is_postponed_comes_again_when_it_is_due_and_no_more_than_fits_stays() {
        let mut buffer = Buffer::default();
        for position in 1..=3 {
            buffer.put(entry("acme", position, 2));
        }
        assert_eq!(taken(&mut buffer, 10), [1, 2, 3]);
        let now = Instant::now();
        let due = now + std::time::Duration::from_secs(1);
        buffer.postpone(&[2, 3, 9], due);
        assert_eq!(buffer.next_due(), Some(due));
        buffer.release_due(now);
        assert_eq!(taken(&mut buffer, 10), [0; 0]);
        assert_eq!(buffer.surplus(2).len(), 1, "the youngest");
        buffer.release_due(due);
        let deliveries = buffer.take(10);
        let tried = deliveries.iter().map(|one| (one.acceptance, one.attempt));
        assert_eq!(tried.collect::<Vec<_>>(), [(2, 1)]);
        assert_eq!((buffer.next_due(), buffer.len()), (None, 2));
    }

    #[test]
    fn what_may_end_a_worker_is_alone_in_its_round() {
        let mut buffer = Buffer::default();
        for position in 1..=4 {
            let is_suspect = position == 2 || position == 3;
            buffer.put(Entry {
                is_suspect,
                ..entry("acme", position, 1)
            });
        }
        buffer.put(entry("globex", 5, 1));
        assert_eq!(buffer.suspects(&[1, 2, 9]), [2]);
        assert_eq!(taken(&mut buffer, 100), [1, 5]);
        assert_eq!(taken(&mut buffer, 100), [2]);
        assert_eq!(taken(&mut buffer, 100), [3]);
        assert_eq!(taken(&mut buffer, 100), [4]);
    }

    #[test]
    fn attempts_count_what_was_tried() {
        let mut buffer = Buffer::default();
        buffer.put(entry("acme", 1, 1));
        let mut attempt = || buffer.take(1)[0].attempt;
        assert_eq!(attempt(), 1);
        buffer.release(1, true);
        let mut attempt = || buffer.take(1)[0].attempt;
        assert_eq!(attempt(), 2);
        buffer.release(1, false);
        assert_eq!(buffer.take(1)[0].attempt, 2);
    }
}
