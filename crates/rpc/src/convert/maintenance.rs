//! What a node says of itself, and what it could not do.

use memfleet_domain::Scope;
use memfleet_domain::embedding::EmbeddingSpace;
use memfleet_domain::ids::{SpaceId, TenantId};
use memfleet_domain::ingestion::Batch;
use memfleet_ports::ledger::Page;
use memfleet_ports::maintenance::{Part, Status};
use memfleet_ports::memory::PageRequest;
use memfleet_ports::queue::{DeadLetter, Depth};

use super::page::{page_token, parts};
use super::time::time;
use super::{Checked, Fields};
use crate::{limits, proto};

impl Checked for proto::GetStatusRequest {
    type Value = ();

    fn check(self, _: &mut Fields) -> Option<()> {
        Some(())
    }
}

impl From<EmbeddingSpace> for proto::EmbeddingSpace {
    fn from(space: EmbeddingSpace) -> Self {
        Self {
            model: space.model,
            revision: space.revision,
            recipe: space.recipe,
            projection: space.projection,
        }
    }
}

impl Checked for proto::EmbeddingSpace {
    type Value = EmbeddingSpace;

    fn check(self, _: &mut Fields) -> Option<EmbeddingSpace> {
        Some(EmbeddingSpace {
            model: self.model,
            revision: self.revision,
            recipe: self.recipe,
            projection: self.projection,
        })
    }
}

impl From<Depth> for proto::QueueDepth {
    fn from(depth: Depth) -> Self {
        Self {
            batches: depth.batches,
            turns: depth.turns,
            bytes: depth.bytes,
            oldest: depth.oldest.map(time),
            dead_letters: depth.dead_letters,
        }
    }
}

impl Checked for proto::QueueDepth {
    type Value = Depth;

    fn check(self, fields: &mut Fields) -> Option<Depth> {
        Some(Depth {
            batches: self.batches,
            turns: self.turns,
            bytes: self.bytes,
            oldest: fields.optional_time("oldest", self.oldest)?,
            dead_letters: self.dead_letters,
        })
    }
}

impl From<Status> for proto::GetStatusResponse {
    fn from(status: Status) -> Self {
        let part = |part: Part| proto::Part {
            name: part.name,
            trouble: part.trouble.unwrap_or_default(),
            since: part.since.map(time),
        };
        Self {
            version: status.version,
            embedding_space: status.embedding_space.map(Into::into),
            parts: status.parts.into_iter().map(part).collect(),
            queue: Some(status.queue.into()),
        }
    }
}

impl Checked for proto::Part {
    type Value = Part;

    fn check(self, fields: &mut Fields) -> Option<Part> {
        Some(Part {
            name: self.name,
            trouble: (!self.trouble.is_empty()).then_some(self.trouble),
            since: fields.optional_time("since", self.since)?,
        })
    }
}

impl Checked for proto::GetStatusResponse {
    type Value = Status;

    fn check(self, fields: &mut Fields) -> Option<Status> {
        let embedding_space = self.embedding_space.and_then(|space| space.check(fields));
        let queue = fields.message("queue", self.queue);
        Some(Status {
            version: self.version,
            embedding_space,
            parts: fields.messages("parts", self.parts, limits::VALUES)?,
            queue: queue?,
        })
    }
}

impl From<DeadLetter> for proto::DeadLetter {
    fn from(letter: DeadLetter) -> Self {
        Self {
            acceptance: letter.acceptance,
            space: letter.batch.scope.space.into(),
            token: letter.batch.id.to_string(),
            turns: letter.batch.turns.into_iter().map(Into::into).collect(),
            reason: letter.reason,
            failed_at: Some(time(letter.failed_at)),
            attempts: letter.attempts,
        }
    }
}

/// A page of dead letters and whose they are: the wire never names tenants.
pub(crate) struct LettersOf<'a>(pub &'a TenantId, pub proto::ListDeadLettersResponse);

impl Checked for LettersOf<'_> {
    type Value = Page<DeadLetter>;

    fn check(self, fields: &mut Fields) -> Option<Page<DeadLetter>> {
        let Self(tenant, page) = self;
        let items = fields.each(
            "dead_letters",
            page.dead_letters,
            usize::MAX,
            |fields, letter| {
                let space = fields.name("space", letter.space, SpaceId::new);
                let id = fields.id("token", &letter.token, "the token of a receipt");
                let turns = fields.messages("turns", letter.turns, usize::MAX);
                let failed_at = fields.message("failed_at", letter.failed_at);
                let turns = turns?.into_iter().map(|turn| turn.accepted).collect();
                let scope = Scope {
                    tenant: tenant.clone(),
                    space: space?,
                };
                Some(DeadLetter {
                    acceptance: letter.acceptance,
                    batch: Batch {
                        id: id?,
                        scope,
                        turns,
                    },
                    reason: letter.reason,
                    failed_at: failed_at?,
                    attempts: letter.attempts,
                })
            },
        );
        Some(Page {
            items: items?,
            next: page_token(page.next_page_token),
        })
    }
}

impl Checked for proto::ListDeadLettersRequest {
    type Value = (Option<SpaceId>, PageRequest);

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let space = fields.optional_name("space", self.space, SpaceId::new);
        let page = fields.page(self.page_size, self.page_token);
        Some((space?, page?))
    }
}

impl From<Page<DeadLetter>> for proto::ListDeadLettersResponse {
    fn from(page: Page<DeadLetter>) -> Self {
        let (dead_letters, next_page_token) = parts(page);
        Self {
            dead_letters,
            next_page_token,
        }
    }
}

impl Checked for proto::ReplayDeadLettersRequest {
    type Value = (SpaceId, Vec<u64>);

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let space = fields.name("space", self.space, SpaceId::new);
        let bounded = fields.at_most(
            "acceptances",
            self.acceptances.len(),
            limits::VALUES,
            "elements",
        );
        bounded?;
        Some((space?, self.acceptances))
    }
}

impl From<u64> for proto::ReplayDeadLettersResponse {
    fn from(replayed: u64) -> Self {
        Self { replayed }
    }
}

impl Checked for proto::ReplayDeadLettersResponse {
    type Value = u64;

    fn check(self, _: &mut Fields) -> Option<u64> {
        Some(self.replayed)
    }
}
