//! Answers of the Knowledge service.

use memfleet_domain::derivation::Derivation;
use memfleet_ports::knowledge::Recorded;
use memfleet_ports::knowledge_api::{Disagreement, Story};
use memfleet_ports::ledger::Page;

use super::derivation::{episode, fact, fragment, narrative};
use super::page::{page_token, parts};
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
