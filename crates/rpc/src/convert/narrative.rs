//! Fragments and narratives in their versions.

use memfleet_domain::derivation::{Body, Derivation, Origin};
use memfleet_domain::ids::{SessionId, Speaker};
use memfleet_domain::narrative::{Fragment, Narrative, Subplot};

use super::{Checked, Fields};
use crate::proto;

impl Checked for proto::Fragment {
    type Value = Derivation;

    fn check(self, fields: &mut Fields) -> Option<Derivation> {
        let id = fields.id("id", &self.id, "the id of a fragment");
        let narrative = fields.id("narrative_id", &self.narrative_id, "the id of a narrative");
        let session = fields.name("session", self.session, SessionId::new);
        let turns = fields.turn_ids("turn_ids", self.turn_ids, usize::MAX);
        let turns = fields.some("turn_ids", turns);
        let span = fields.interval("span", self.span);
        let valid = fields.interval("valid", self.valid);
        let known = fields.interval("known", self.known);
        let change = fields.id("change_id", &self.change_id, "the id of a change");
        let fragment = Fragment {
            narrative: narrative?,
            subplot: self.subplot,
            session: session?,
            headline: self.headline,
            span: span?,
            binder: self.binder.clone(),
        };
        Some(Derivation {
            id: id?,
            version: self.version,
            body: Body::Fragment(Box::new(fragment)),
            turns: turns?,
            valid: valid?,
            known: known?,
            origin: Origin::Extracted(self.binder),
            change: change?,
            succeeded_by: None,
        })
    }
}

impl Checked for proto::Narrative {
    type Value = Derivation;

    fn check(self, fields: &mut Fields) -> Option<Derivation> {
        let id = fields.id("id", &self.id, "the id of a narrative");
        let owner = fields.name("owner", self.owner, Speaker::new);
        let characters = fields.names("characters", self.characters, usize::MAX, Speaker::new);
        let momentum = fields.word("momentum", self.momentum);
        let turns = fields.turn_ids("turn_ids", self.turn_ids, usize::MAX);
        let turns = fields.some("turn_ids", turns);
        let valid = fields.interval("valid", self.valid);
        let known = fields.interval("known", self.known);
        let change = fields.id("change_id", &self.change_id, "the id of a change");
        let narrative = Narrative {
            headline: self.headline,
            owner: owner?,
            characters: characters?,
            subplots: self.subplots.into_iter().map(Into::into).collect(),
            momentum: momentum?,
            author: self.author.clone(),
        };
        Some(Derivation {
            id: id?,
            version: self.version,
            body: Body::Narrative(Box::new(narrative)),
            turns: turns?,
            valid: valid?,
            known: known?,
            origin: Origin::Extracted(self.author),
            change: change?,
            succeeded_by: None,
        })
    }
}

impl From<Subplot> for proto::Subplot {
    fn from(Subplot { headline, author }: Subplot) -> Self {
        Self { headline, author }
    }
}

impl From<proto::Subplot> for Subplot {
    fn from(proto::Subplot { headline, author }: proto::Subplot) -> Self {
        Self { headline, author }
    }
}
