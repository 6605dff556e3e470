//! A timeline: facts and episodes of a space, a person or a topic, by when they began.

use memfleet_domain::Fault;
use memfleet_domain::derivation::{Derivation, Kind};
use memfleet_domain::fact::Draft;
use memfleet_domain::ids::TurnId;
use memfleet_domain::time::AsOf;
use memfleet_ports::context::Context;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::knowledge::Chronicle;
use memfleet_ports::knowledge_api::{TimelineOf, TimelineQuery, Told};
use memfleet_ports::ledger::Page;
use memfleet_ports::memory::PageRequest;
use memfleet_ports::retriever::Query;

use crate::Gateway;

/// Turns that a topic is: those that a search for it finds best.
const TOPIC: u32 = 50;

impl Gateway {
    pub(super) async fn timeline_of(
        &self,
        context: &Context,
        query: &TimelineQuery,
        page: PageRequest,
    ) -> Result<Told<Derivation>, Fault> {
        let mut degraded = Vec::new();
        let mut chronicle = Chronicle {
            kinds: vec![Kind::Fact, Kind::Episode],
            begins: query.begins,
            as_of: AsOf {
                known_at: query.known_at,
                happened_by: None,
            },
            ..Chronicle::default()
        };
        match &query.of {
            TimelineOf::Space => {}
            TimelineOf::About(name) => {
                chronicle.kinds = vec![Kind::Fact];
                let scope = context.scope(&query.space);
                chronicle.subjects = self.keys_of(&scope, name, &mut degraded).await;
            }
            TimelineOf::Topic(words) => {
                chronicle.turns = self.about(context, query, words, &mut degraded).await?;
                // No condition on turns would be all of the space.
                if chronicle.turns.is_empty() {
                    let page = Page {
                        items: Vec::new(),
                        next: None,
                    };
                    return Ok(Told { page, degraded });
                }
            }
        }
        let scope = context.scope(&query.space);
        let mut page = self
            .knowledge
            .chronicle(&scope, &chronicle, page.limit, page.after.as_ref())
            .await?;
        let is_listed = |told: &Derivation| told.fact().is_none_or(Draft::is_listed);
        page.items.retain(is_listed);
        let now = self.clock.now();
        self.shrink_stale_lines(&scope, &mut page.items, query.known_at, now)
            .await?;
        Ok(Told { page, degraded })
    }

    /// The turns that tell of a topic.
    async fn about(
        &self,
        context: &Context,
        query: &TimelineQuery,
        words: &str,
        degraded: &mut Vec<String>,
    ) -> Result<Vec<TurnId>, Fault> {
        let filter = TurnFilter {
            as_of: AsOf {
                known_at: query.known_at,
                happened_by: None,
            },
            ..TurnFilter::default()
        };
        let query = Query {
            text: words.to_owned(),
            spaces: vec![query.space.clone()],
            filter,
            k: TOPIC,
            neighbours: 0,
            now: None,
            session: None,
            intent: None,
            explain: false,
            quality: None,
            vectors: None,
        };
        let found = self.search(context, &query).await?;
        degraded.extend(found.degraded);
        let turns = found.hits.iter().map(|hit| hit.turn.accepted.id);
        Ok(turns.collect())
    }
}
