//! Answers of the Knowledge service.

use memfleet_domain::derivation::Derivation;
use memfleet_domain::ids::{SessionId, Speaker};
use memfleet_ports::knowledge::Recorded;
use memfleet_ports::knowledge_api::{Disagreement, Evidence, ProfileLine, Story, Told};
use memfleet_ports::ledger::Page;

use super::derivation::{episode, fact, fragment, narrative};
use super::page::{page_token, parts};
use super::time::time;
use super::{Checked, Fields};
use crate::proto;

macro_rules! pages {
    ($($response:ident.$items:ident: $item:ty = $of:expr;)*) => {
        $(
            impl From<Page<$item>> for proto::$response {
                fn from(page: Page<$item>) -> Self {
                    let (items, next_page_token) = $of(page);
                    Self { $items: items, next_page_token }
                }
            }

            impl Checked for proto::$response {
                type Value = Page<$item>;

                fn check(self, fields: &mut Fields) -> Option<Page<$item>> {
                    let items = fields.messages(stringify!($items), self.$items, usize::MAX)?;
                    Some(Page { items, next: page_token(self.next_page_token) })
                }
            }
        )*
    };
}

/// The items of a kind, which are all there are.
fn of_kind<M>(page: Page<Derivation>, kind: impl Fn(Derivation) -> Option<M>) -> (Vec<M>, String) {
    let items = page.items.into_iter().filter_map(kind).collect();
    (items, page.next.map(|token| token.0).unwrap_or_default())
}

pages! {
    ListFactsResponse.facts: Derivation = |page| of_kind(page, fact);
    ListEpisodesResponse.episodes: Derivation = |page| of_kind(page, episode);
    ListNarrativesResponse.narratives: Derivation = |page| of_kind(page, narrative);
    ListConflictsResponse.conflicts: Disagreement = parts;
    ListChangesResponse.changes: Recorded = parts;
}

macro_rules! told {
    ($($response:ident.$items:ident: $item:ty;)*) => {
        $(
            impl From<Told<$item>> for proto::$response {
                fn from(told: Told<$item>) -> Self {
                    let (items, next_page_token) = parts(told.page);
                    Self { $items: items, next_page_token, degraded: told.degraded }
                }
            }

            impl Checked for proto::$response {
                type Value = Told<$item>;

                fn check(self, fields: &mut Fields) -> Option<Told<$item>> {
                    let items = fields.messages(stringify!($items), self.$items, usize::MAX)?;
                    let page = Page { items, next: page_token(self.next_page_token) };
                    Some(Told { page, degraded: self.degraded })
                }
            }
        )*
    };
}

told! {
    ProfileResponse.lines: ProfileLine;
    TimelineResponse.entries: Derivation;
}

impl From<ProfileLine> for proto::ProfileLine {
    fn from(line: ProfileLine) -> Self {
        let evidence = line.evidence;
        Self {
            fact: fact(line.fact),
            evidence: Some(proto::Evidence {
                turn_id: evidence.turn.to_string(),
                session: evidence.session.into(),
                speaker: evidence.speaker.into(),
                quote: evidence.quote,
            }),
            conflict_ids: line.conflicts.iter().map(ToString::to_string).collect(),
        }
    }
}

impl Checked for proto::ProfileLine {
    type Value = ProfileLine;

    fn check(self, fields: &mut Fields) -> Option<ProfileLine> {
        let fact = fields.message("fact", self.fact);
        let evidence = fields.message("evidence", self.evidence);
        let ids = self.conflict_ids;
        let conflicts = fields.each("conflict_ids", ids, usize::MAX, |fields, id| {
            fields.id("", &id, "the id of a conflict")
        });
        Some(ProfileLine {
            fact: fact?,
            evidence: evidence?,
            conflicts: conflicts?,
        })
    }
}

impl Checked for proto::Evidence {
    type Value = Evidence;

    fn check(self, fields: &mut Fields) -> Option<Evidence> {
        let turn = fields.id("turn_id", &self.turn_id, "the id of a turn");
        let session = fields.name("session", self.session, SessionId::new);
        let speaker = fields.name("speaker", self.speaker, Speaker::new);
        Some(Evidence {
            turn: turn?,
            session: session?,
            speaker: speaker?,
            quote: self.quote,
        })
    }
}

impl From<Derivation> for proto::TimelineEntry {
    fn from(derivation: Derivation) -> Self {
        Self {
            at: derivation.begins().map(time),
            memory: Some(derivation.into()),
        }
    }
}

impl Checked for proto::TimelineEntry {
    type Value = Derivation;

    fn check(self, fields: &mut Fields) -> Option<Derivation> {
        fields.message("memory", self.memory)
    }
}

impl From<Story> for proto::GetNarrativeResponse {
    fn from(story: Story) -> Self {
        let (fragments, next_page_token) = of_kind(story.fragments, fragment);
        Self {
            narrative: narrative(story.narrative),
            fragments,
            next_page_token,
        }
    }
}

impl Checked for proto::GetNarrativeResponse {
    type Value = Story;

    fn check(self, fields: &mut Fields) -> Option<Story> {
        let narrative = fields.message("narrative", self.narrative);
        let items = fields.messages("fragments", self.fragments, usize::MAX);
        Some(Story {
            narrative: narrative?,
            fragments: Page {
                items: items?,
                next: page_token(self.next_page_token),
            },
        })
    }
}

impl From<Vec<Derivation>> for proto::GetVersionsResponse {
    fn from(versions: Vec<Derivation>) -> Self {
        Self {
            versions: versions.into_iter().map(Into::into).collect(),
        }
    }
}

impl Checked for proto::GetVersionsResponse {
    type Value = Vec<Derivation>;

    fn check(self, fields: &mut Fields) -> Option<Vec<Derivation>> {
        fields.messages("versions", self.versions, usize::MAX)
    }
}

impl From<Recorded> for proto::RevertResponse {
    fn from(change: Recorded) -> Self {
        Self {
            change: Some(change.into()),
        }
    }
}

impl Checked for proto::RevertResponse {
    type Value = Recorded;

    fn check(self, fields: &mut Fields) -> Option<Recorded> {
        fields.message("change", self.change)
    }
}

impl From<Derivation> for proto::UpdateResponse {
    fn from(corrected: Derivation) -> Self {
        Self {
            fact: fact(corrected),
        }
    }
}

impl Checked for proto::UpdateResponse {
    type Value = Derivation;

    fn check(self, fields: &mut Fields) -> Option<Derivation> {
        fields.message("fact", self.fact)
    }
}
