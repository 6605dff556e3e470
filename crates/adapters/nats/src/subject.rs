//! Subjects as an index: all that is asked of the queue without reading payloads stands in the subject of a message, so that
//! the server's own index of subjects answers it.
//!
//! Waiting: `<prefix>.ingest.<tenant>.<lane>.<space>.<batch>.<turns>.<bytes>.<accepted at>`, with `.<position>` behind it where
//! the message was put back at an old position. Dead letters: `<prefix>.dead.<tenant>.<space>.<batch>.<position>`.

use std::fmt::Write;

use memfleet_domain::Scope;
use memfleet_domain::ids::BatchId;
use memfleet_domain::time::Timestamp;

use crate::names::{Names, SPREAD, hex, lane_of, space_token, tenant_token};

/// What a message of the queue says of itself in its subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Token of the tenant.
    pub tenant: String,
    /// The lane it waits in.
    pub lane: u8,
    /// Token of the space.
    pub space: String,
    /// The batch.
    pub batch: BatchId,
    /// Turns in it.
    pub turns: u64,
    /// Bytes of its payload.
    pub bytes: u64,
    /// When it was accepted, in microseconds.
    pub accepted_at: i64,
    /// Its position where that is not its place in the stream.
    pub position: Option<u64>,
}

impl Waiting {
    /// What a batch with this payload says, at the position that the stream will give it.
    pub fn new(scope: &Scope, batch: BatchId, turns: usize, bytes: usize, at: Timestamp) -> Self {
        Self {
            tenant: tenant_token(&scope.tenant),
            lane: lane_of(&scope.tenant),
            space: space_token(scope),
            batch,
            turns: turns as u64,
            bytes: bytes as u64,
            accepted_at: at.timestamp_micros(),
            position: None,
        }
    }

    /// It goes through the lane of what is added to a long backlog.
    pub fn behind_a_backlog(mut self) -> Self {
        self.lane = self.lane % SPREAD + SPREAD;
        self
    }

    /// The whole subject.
    pub fn subject(&self, names: &Names) -> String {
        let Self {
            tenant,
            lane,
            space,
            turns,
            bytes,
            accepted_at,
            ..
        } = self;
        let (prefix, batch) = (&names.prefix, hex(self.batch));
        let mut subject = format!(
            "{prefix}.ingest.{tenant}.{lane}.{space}.{batch}.{turns}.{bytes}.{accepted_at}"
        );
        if let Some(position) = self.position {
            let _infallible = write!(subject, ".{position}");
        }
        subject
    }

    /// Reads a subject; nothing where it is none of ours.
    pub fn parse(names: &Names, subject: &str) -> Option<Self> {
        let rest = subject.strip_prefix(&names.prefix)?;
        let mut tokens = rest.strip_prefix(".ingest.")?.split('.');
        let waiting = Self {
            tenant: tokens.next()?.to_owned(),
            lane: tokens.next()?.parse().ok()?,
            space: tokens.next()?.to_owned(),
            batch: tokens.next()?.parse().ok()?,
            turns: tokens.next()?.parse().ok()?,
            bytes: tokens.next()?.parse().ok()?,
            accepted_at: tokens.next()?.parse().ok()?,
            position: tokens.next().map(str::parse).transpose().ok()?,
        };
        tokens.next().is_none().then_some(waiting)
    }

    /// Its position of acceptance, given its place in the stream.
    pub fn position(&self, sequence: u64) -> u64 {
        self.position.unwrap_or(sequence)
    }
}

/// What a dead letter says of itself in its subject.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Letter {
    /// Its position of acceptance.
    pub position: u64,
    /// Token of the tenant.
    pub tenant: String,
    /// Token of the space.
    pub space: String,
    /// The batch.
    pub batch: BatchId,
}

impl Letter {
    /// The letter of a batch at a position.
    pub fn new(scope: &Scope, batch: BatchId, position: u64) -> Self {
        Self {
            position,
            tenant: tenant_token(&scope.tenant),
            space: space_token(scope),
            batch,
        }
    }

    /// The whole subject.
    pub fn subject(&self, names: &Names) -> String {
        let Self {
            tenant,
            space,
            position,
            ..
        } = self;
        let (prefix, batch) = (&names.prefix, hex(self.batch));
        format!("{prefix}.dead.{tenant}.{space}.{batch}.{position}")
    }

    /// Reads a subject; nothing where it is none of ours.
    pub fn parse(names: &Names, subject: &str) -> Option<Self> {
        let rest = subject.strip_prefix(&names.prefix)?;
        let mut tokens = rest.strip_prefix(".dead.")?.split('.');
        let (tenant, space) = (tokens.next()?.to_owned(), tokens.next()?.to_owned());
        let letter = Self {
            batch: tokens.next()?.parse().ok()?,
            position: tokens.next()?.parse().ok()?,
            tenant,
            space,
        };
        tokens.next().is_none().then_some(letter)
    }
}

#[cfg(test)]
mod tests {
    use memfleet_ports::conformance::samples::{batch, home, instant};

    use super::*;

    #[test]
    fn a_subject_reads_back_as_written_fresh_or_put_back() {
        let names = Names::new("memfleet");
        let id = batch("k", vec![]).id;
        let mut waiting = Waiting::new(&home(), id, 3, 2048, instant(-2_000_000_000));
        for position in [None, Some(u64::MAX)] {
            waiting.position = position;
            let subject = waiting.subject(&names);
            assert_eq!(Waiting::parse(&names, &subject), Some(waiting.clone()));
        }
        let letter = Letter::new(&home(), id, 7);
        let subject = letter.subject(&names);
        assert_eq!(Letter::parse(&names, &subject), Some(letter));
        assert_eq!(Waiting::parse(&names, &subject), None);
        assert_eq!(Waiting::parse(&names, "memfleet.ingest.acme.3"), None);
    }
}
