//! A profile: what is true of a person or a thing, each line with the words that it rests on.

use std::collections::HashMap;

use memfleet_domain::derivation::{Derivation, Kind, Status};
use memfleet_domain::ids::{ConflictId, DerivationId, TurnId};
use memfleet_domain::time::AsOf;
use memfleet_domain::turn::Turn;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::knowledge::Chronicle;
use memfleet_ports::knowledge_api::{Evidence, ProfileLine, ProfileQuery, Told};
use memfleet_ports::ledger::Page;
use memfleet_ports::memory::PageRequest;

use crate::Gateway;

/// Conflicts that are not settled: their facts are in doubt.
const UNSETTLED: [Status; 2] = [Status::Found, Status::Open];

impl Gateway {
    pub(super) async fn profile_of(
        &self,
        scope: &Scope,
        query: &ProfileQuery,
        page: PageRequest,
    ) -> Result<Told<ProfileLine>, Fault> {
        let mut degraded = Vec::new();
        let now = query.as_of.happened_by.unwrap_or_else(|| self.clock.now());
        let chronicle = Chronicle {
            kinds: vec![Kind::Fact],
            subjects: self.keys_of(scope, &query.about, &mut degraded).await,
            as_of: AsOf {
                happened_by: Some(now),
                ..query.as_of
            },
            ..Chronicle::default()
        };
        let mut facts = self
            .knowledge
            .chronicle(scope, &chronicle, page.limit, page.after.as_ref())
            .await?;
        self.shrink_stale_lines(scope, &mut facts.items, query.as_of.known_at, now)
            .await?;
        let turns = self.stating(scope, &facts.items).await?;
        let mut conflicts = self.unsettled(scope, &facts.items).await?;
        let lines = facts.items.into_iter().filter_map(|fact| {
            if !fact.fact()?.is_listed() {
                return None;
            }
            // A turn that was forgotten meanwhile takes its fact along.
            let evidence = evidence(&fact, turns.get(fact.turns.first()?)?)?;
            let conflicts = conflicts.remove(&fact.id).unwrap_or_default();
            Some(ProfileLine {
                fact,
                evidence,
                conflicts,
            })
        });
        let page = Page {
            items: lines.collect(),
            next: facts.next,
        };
        Ok(Told { page, degraded })
    }

    /// The turns that state these facts.
    async fn stating(
        &self,
        scope: &Scope,
        facts: &[Derivation],
    ) -> Result<HashMap<TurnId, Turn>, Fault> {
        let ids = facts.iter().filter_map(|fact| fact.turns.first().copied());
        let mut ids: Vec<TurnId> = ids.collect();
        ids.sort_unstable();
        ids.dedup();
        let turns = self.ledger.turns(scope, &ids).await?;
        Ok(turns
            .into_iter()
            .map(|turn| (turn.accepted.id, turn))
            .collect())
    }

    /// The conflicts of each of these facts that nobody settled yet.
    async fn unsettled(
        &self,
        scope: &Scope,
        facts: &[Derivation],
    ) -> Result<HashMap<DerivationId, Vec<ConflictId>>, Fault> {
        let ids: Vec<DerivationId> = facts.iter().map(|fact| fact.id).collect();
        let found = self.knowledge.conflicts_of(scope, &ids, &UNSETTLED).await?;
        let mut conflicts: HashMap<DerivationId, Vec<ConflictId>> = HashMap::new();
        for conflict in found {
            for fact in [conflict.older, conflict.newer] {
                conflicts.entry(fact).or_default().push(conflict.id);
            }
        }
        Ok(conflicts)
    }
}

/// The words of a turn that state a fact; all of them where it is not known which.
fn evidence(fact: &Derivation, turn: &Turn) -> Option<Evidence> {
    let said = &turn.accepted;
    let words = &fact.fact()?.evidence;
    let text = said.content.searchable_text();
    let quoted = text.get(words.start as usize..words.end as usize);
    let quote = quoted.filter(|quote| !quote.is_empty()).unwrap_or(&text);
    Some(Evidence {
        turn: said.id,
        session: said.session.clone(),
        speaker: said.speaker.clone(),
        quote: quote.to_owned(),
    })
}
