//! Subjects as an index: all that is asked of the queue without reading payloads stands in the subject of a message, so that
//! the server's own index of subjects answers it.
//!
//! Waiting: `<prefix>.ingest.<tenant>.<lane>.<space>.<batch>.<turns>.<bytes>.<accepted at>`, with `.<position>` behind it where
//! the message was put back at an old position. Dead letters: `<prefix>.dead.<tenant>.<space>.<batch>.<position>`.

use std::fmt::Write;

use memfleet_domain::Scope;
use memfleet_domain::ids::{BatchId, TenantId};
use memfleet_domain::time::Timestamp;
use uuid::Uuid;

/// Tenants are spread over this many lanes …
const SPREAD: u8 = 16;

/// … and what a tenant adds to a long backlog of its own goes through as many others, so that whoever shares its lane does not
/// wait behind that. Each lane has a consumer of its own. Part of every subject: it cannot change while anything waits.
pub const LANES: u8 = 2 * SPREAD;

/// Streams and subjects of one installation.
#[derive(Debug, Clone)]
pub struct Names {
    prefix: String,
    /// The stream of what waits.
    pub ingest: String,
    /// The stream of dead letters.
    pub letters: String,
}

impl Names {
    /// With this prefix: lower-case in subjects, upper-case in the names of streams.
    pub fn new(prefix: &str) -> Self {
        let upper = prefix.to_uppercase();
        Self {
            prefix: prefix.to_owned(),
            ingest: format!("{upper}_INGEST"),
            letters: format!("{upper}_DEAD_LETTERS"),
        }
    }

    /// Everything that waits.
    pub fn all_waiting(&self) -> String {
        format!("{}.ingest.>", self.prefix)
    }

    /// Every dead letter.
    pub fn all_letters(&self) -> String {
        format!("{}.dead.>", self.prefix)
    }

    /// What waits in a lane.
    pub fn of_lane(&self, lane: u8) -> String {
        format!("{}.ingest.*.{lane}.>", self.prefix)
    }

    /// What waits of a space.
    pub fn waiting_of(&self, scope: &Scope) -> String {
        format!("{}.>", self.space(scope))
    }

    /// What waits of a batch: one message, and for a moment two while a part of it is taken out.
    pub fn waiting_batch(&self, scope: &Scope, batch: BatchId) -> String {
        format!("{}.{}.>", self.space(scope), hex(batch))
    }

    /// What waits of a space at the positions that the stream gave it.
    pub fn fresh_of(&self, scope: &Scope) -> String {
        format!("{}.*.*.*.*", self.space(scope))
    }

    /// What waits of a space and was put back at an old position.
    pub fn put_back_of(&self, scope: &Scope) -> String {
        format!("{}.*.*.*.*.*", self.space(scope))
    }

    fn space(&self, scope: &Scope) -> String {
        let (tenant, space) = (tenant_token(&scope.tenant), space_token(scope));
        format!("{}.ingest.{tenant}.*.{space}", self.prefix)
    }

    /// The dead letters of a space.
    pub fn letters_of(&self, scope: &Scope) -> String {
        let tenant = tenant_token(&scope.tenant);
        format!("{}.dead.{tenant}.{}.>", self.prefix, space_token(scope))
    }

    /// The dead letters of a batch.
    pub fn letters_of_batch(&self, scope: &Scope, batch: BatchId) -> String {
        let tenant = tenant_token(&scope.tenant);
        let space = space_token(scope);
        format!("{}.dead.{tenant}.{space}.{}.*", self.prefix, hex(batch))
    }

    /// Where something was published is told on this subject, to whoever takes.
    pub fn wake(&self) -> String {
        format!("{}.wake", self.prefix)
    }

    /// Events of a kind about a tenant; `*` for all.
    pub fn event(&self, kind: &str, tenant: &str) -> String {
        format!("{}.{kind}.{tenant}", self.prefix)
    }
}

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

/// A tenant's name as one token: what could mean something in a subject is written as `=` and its byte in hex, `=` itself too,
/// so that no two names meet.
pub fn tenant_token(tenant: &TenantId) -> String {
    let mut token = String::with_capacity(tenant.as_str().len());
    for byte in tenant.as_str().bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_' {
            token.push(char::from(byte));
        } else {
            let _infallible = write!(token, "={byte:02X}");
        }
    }
    token
}

/// Where a tenant's batches wait, as long as they are few.
fn lane_of(tenant: &TenantId) -> u8 {
    blake3::hash(tenant.as_str().as_bytes()).as_bytes()[0] % SPREAD
}

/// A space as one token: a hash, since subjects are seen by whoever runs the server.
pub fn space_token(scope: &Scope) -> String {
    let mut hasher = blake3::Hasher::new();
    let tenant = scope.tenant.as_str().as_bytes();
    hasher.update(&(tenant.len() as u64).to_be_bytes());
    hasher.update(tenant);
    hasher.update(scope.space.as_str().as_bytes());
    hasher.finalize().to_hex()[..32].to_owned()
}

fn hex(batch: BatchId) -> String {
    Uuid::from_bytes(*batch.as_bytes()).simple().to_string()
}

#[cfg(test)]
mod tests {
    use memfleet_ports::conformance::samples::{batch, home, instant, scope};

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

    #[test]
    fn hostile_names_are_one_token_each_and_no_two_the_same() {
        let names = ["acme", "a.b", "a=2Eb", "*", ">", "a b", "a=b", "ア", "a>"];
        let mut tokens: Vec<_> = names
            .map(|name| tenant_token(&scope(name, "s").tenant))
            .into();
        assert_eq!(&tokens[..3], ["acme", "a=2Eb", "a=3D2Eb"]);
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"=-_".contains(&byte);
        assert!(tokens.iter().all(|token| token.bytes().all(is_plain)));
        tokens.sort();
        tokens.dedup();
        assert_eq!(tokens.len(), names.len());
    }

    #[test]
    fn spaces_of_two_tenants_do_not_run_together() {
        assert_ne!(
            space_token(&scope("ab", "c")),
            space_token(&scope("a", "bc"))
        );
    }
}
