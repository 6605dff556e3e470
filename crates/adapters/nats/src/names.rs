//! Names on the server: streams, filters of subjects, and the tokens that tenants and spaces are written as.

use std::fmt::Write;

use memfleet_domain::Scope;
use memfleet_domain::ids::{BatchId, TenantId};
use uuid::Uuid;

/// Tenants are spread over this many lanes …
pub const SPREAD: u8 = 16;

/// … and what a tenant adds to a long backlog of its own goes through as many others, so that whoever shares its lane does not
/// wait behind that. Each lane has a consumer of its own. Part of every subject: it cannot change while anything waits.
pub const LANES: u8 = 2 * SPREAD;

/// Streams and subjects of one installation.
#[derive(Debug, Clone)]
pub struct Names {
    /// What every subject begins with.
    pub prefix: String,
    /// The stream of what waits.
    pub ingest: String,
    /// The stream of dead letters.
    pub letters: String,
    /// The stream of what happened.
    pub events: String,
    /// The stream that counts tries.
    pub tries: String,
}

impl Names {
    /// With this prefix: lower-case in subjects, upper-case in the names of streams.
    pub fn new(prefix: &str) -> Self {
        let upper = prefix.to_uppercase();
        Self {
            prefix: prefix.to_owned(),
            ingest: format!("{upper}_INGEST"),
            letters: format!("{upper}_DEAD_LETTERS"),
            events: format!("{upper}_EVENTS"),
            tries: format!("{upper}_TRIES"),
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

    /// Subject of filler messages, which only move the positions of the stream on. They are of no
    /// tenant, and in no lane.
    pub fn skipped(&self) -> String {
        format!("{}.ingest.skipped", self.prefix)
    }

    /// What waits in a lane.
    pub fn of_lane(&self, lane: u8) -> String {
        format!("{}.ingest.*.{lane}.>", self.prefix)
    }

    /// Subjects of all batches of a tenant that wait.
    pub fn waiting_of_tenant(&self, tenant: &TenantId) -> String {
        format!("{}.ingest.{}.>", self.prefix, tenant_token(tenant))
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

    /// The dead letters of a tenant, given its token.
    pub fn letters_of_tenant(&self, tenant: &str) -> String {
        format!("{}.dead.{tenant}.>", self.prefix)
    }

    /// The dead letters of a batch.
    pub fn letters_of_batch(&self, scope: &Scope, batch: BatchId) -> String {
        let tenant = tenant_token(&scope.tenant);
        let space = space_token(scope);
        format!("{}.dead.{tenant}.{space}.{}.*", self.prefix, hex(batch))
    }

    /// How often what is at a position was tried; `*` for all.
    pub fn tried(&self, position: impl std::fmt::Display) -> String {
        format!("{}.tried.{position}", self.prefix)
    }

    /// Where something was published is told on this subject, to whoever takes.
    pub fn wake(&self) -> String {
        format!("{}.wake", self.prefix)
    }

    /// What processes announce of a kind about a tenant; `*` for all. Nothing keeps it.
    pub fn announcement(&self, kind: &str, tenant: &str) -> String {
        format!("{}.announced.{kind}.{tenant}", self.prefix)
    }

    /// What happened of a kind to a tenant's memory; `*` for all.
    pub fn event(&self, kind: &str, tenant: &str) -> String {
        format!("{}.{kind}.{tenant}", self.prefix)
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
pub fn lane_of(tenant: &TenantId) -> u8 {
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

/// A batch as one token.
pub fn hex(batch: BatchId) -> String {
    Uuid::from_bytes(*batch.as_bytes()).simple().to_string()
}

#[cfg(test)]
mod tests {
    use memfleet_ports::conformance::samples::scope;

    use super::*;

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
