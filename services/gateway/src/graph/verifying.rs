//! The graph against the facts that it follows, a page at a time: first whether it has what the store of record says, then whether it has anything else.
//! A repair writes the difference, so that the graph can be read all the while, and one that breaks off is begun again.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use memfleet_agents::relations::told;
use memfleet_domain::derivation::{Derivation, Kind};
use memfleet_domain::graph::Triplet;
use memfleet_domain::ids::{DerivationId, SpaceId};
use memfleet_domain::{Fault, Scope};
use memfleet_ports::audit::AuditKind;
use memfleet_ports::context::Context;
use memfleet_ports::graph::{Graph, GraphWrite, TripletQuery};
use memfleet_ports::knowledge::{Question, Stage};
use memfleet_ports::ledger::PageToken;
use memfleet_ports::maintenance::GraphCheck;
use tracing::Instrument;

use crate::Gateway;

/// Facts, or triplets, of a page.
const PAGE: u32 = 1_000;

/// How long a repair keeps the stage that writes the graph from doing so, at most; and how often it looks whether it may begin.
const HELD: Duration = Duration::from_mins(1);
const LOOK: Duration = Duration::from_millis(50);

/// What pages are of, in this order, and how their tokens begin.
const PARTS: [(&str, Part); 3] = [
    ("facts ", Part::Stated(Kind::Fact)),
    ("identities ", Part::Stated(Kind::Identity)),
    ("graph ", Part::Graph),
];

#[derive(Debug, Clone, Copy)]
enum Part {
    /// Derivations of a kind: the graph must have what they say.
    Stated(Kind),
    /// Triplets: a derivation must say them.
    Graph,
}

/// A page: of which part, and after what.
#[derive(Clone)]
struct Place {
    part: usize,
    after: Option<PageToken>,
}

/// What a page has, and what the graph needs to be right.
struct Found {
    check: GraphCheck,
    repair: GraphWrite,
}

impl Gateway {
    /// Looks at a page of the graph, and repairs it where it is to.
    pub(crate) async fn checked(
        &self,
        context: &Context,
        space: &SpaceId,
        after: Option<&PageToken>,
        repair: bool,
    ) -> Result<GraphCheck, Fault> {
        let graph = self.graph()?;
        let place = Place::of(after)?;
        let scope = self.existing(context, space).await?;
        let found = if repair {
            if after.is_none() {
                let detail = [("what", "graph".to_owned())];
                self.note_in_space(context, AuditKind::RebuildBegun, space, detail)
                    .await?;
            }
            self.repaired(&graph, &scope, &place).await?
        } else {
            self.compare(&*graph, &scope, place).await?.check
        };
        let position = self.knowledge.position(&scope, Stage::Relate).await?;
        Ok(GraphCheck {
            behind: position.map_or(0, |it| it.head.saturating_sub(it.reached)),
            ..found
        })
    }

    /// Repairs as soon as nobody else writes the graph of the space.
    async fn repaired(
        &self,
        graph: &Arc<dyn Graph>,
        scope: &Scope,
        place: &Place,
    ) -> Result<GraphCheck, Fault> {
        loop {
            let (gateway, graph) = (self.clone(), graph.clone());
            let (scope, place) = (scope.clone(), place.clone());
            // To the end, also when the caller leaves: what it claimed would keep the stage out until the lease ends.
            let attempt = async move { gateway.attempt(&*graph, &scope, place).await };
            let attempt = tokio::spawn(attempt.in_current_span()).await;
            let stopped = |error| Err(Fault::internal(format!("the repair stopped: {error}")));
            if let Some(check) = attempt.unwrap_or_else(stopped)? {
                return Ok(check);
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Repairs, unless somebody else writes the graph of the space.
    async fn attempt(
        &self,
        graph: &dyn Graph,
        scope: &Scope,
        place: Place,
    ) -> Result<Option<GraphCheck>, Fault> {
        let (now, stage) = (self.clock.now(), Stage::Relate);
        let until = now + HELD;
        let claimed = self.knowledge.claim(scope, stage, now, until).await?;
        if claimed.is_none() {
            let is_there = self.knowledge.position(scope, stage).await?.is_some();
            let gone = || Fault::not_found(format_args!("space `{}`", scope.space));
            return if is_there { Ok(None) } else { Err(gone()) };
        }
        let repaired = self.repair(graph, scope, place).await;
        self.knowledge.release(scope, stage, until).await?;
        Ok(Some(repaired?))
    }

    async fn repair(
        &self,
        graph: &dyn Graph,
        scope: &Scope,
        place: Place,
    ) -> Result<GraphCheck, Fault> {
        let found = self.compare(graph, scope, place).await?;
        if !found.repair.is_empty() {
            graph.write(scope, found.repair).await?;
        }
        Ok(found.check)
    }

    async fn compare(
        &self,
        graph: &dyn Graph,
        scope: &Scope,
        place: Place,
    ) -> Result<Found, Fault> {
        let (part, after) = (place.part, place.after.as_ref());
        let (mut found, next) = match PARTS[part].1 {
            Part::Stated(kind) => {
                let question = Question {
                    kind: Some(kind),
                    ..Question::default()
                };
                let page = self.knowledge.derivations(scope, &question, PAGE, after);
                let page = page.await?;
                let there = of_facts(graph, scope, &page.items).await?;
                (Found::between(&page.items, there), page.next)
            }
            Part::Graph => {
                let query = TripletQuery::default();
                let page = graph.triplets(scope, query, PAGE, after).await?;
                let is_said = self.still_stated(scope, page.items.clone()).await?;
                let said: BTreeSet<DerivationId> = is_said.iter().map(|it| it.fact).collect();
                (Found::beyond(&said, &page.items), page.next)
            }
        };
        found.check.next = Place::next(part, next);
        Ok(found)
    }
}

impl Place {
    fn of(token: Option<&PageToken>) -> Result<Self, Fault> {
        let Some(token) = token else {
            return Ok(Self {
                part: 0,
                after: None,
            });
        };
        let part = PARTS.iter().position(|(name, _)| token.0.starts_with(name));
        let part = part.ok_or_else(|| {
            let problem = "is none of this call: take `next_page_token` of the page before";
            Fault::invalid("page_token", problem)
        })?;
        let after = &token.0[PARTS[part].0.len()..];
        Ok(Self {
            part,
            after: (!after.is_empty()).then(|| PageToken(after.to_owned())),
        })
    }

    /// The page after one, of the same part or of the next.
    fn next(part: usize, after: Option<PageToken>) -> Option<PageToken> {
        let (part, after) = match after {
            Some(after) => (part, after.0),
            None => (part + 1, String::new()),
        };
        let (name, _) = PARTS.get(part)?;
        Some(PageToken(format!("{name}{after}")))
    }
}

impl Found {
    /// What derivations say, and what the graph has of them.
    fn between(stated: &[Derivation], there: Vec<Triplet>) -> Self {
        let (entities, triplets) = told(stated);
        let mut check = GraphCheck {
            compared: triplets.len() as u64,
            ..GraphCheck::default()
        };
        let there = there.into_iter().map(|it| ((it.fact, it.object), it));
        let mut there: HashMap<_, Triplet> = there.collect();
        let mut wrong = BTreeSet::new();
        for triplet in &triplets {
            let is_wrong = match there.remove(&(triplet.fact, triplet.object)) {
                Some(known) if known == *triplet => continue,
                Some(_) => &mut check.different,
                None => &mut check.missing,
            };
            *is_wrong += 1;
            wrong.insert(triplet.fact);
        }
        check.surplus = there.len() as u64;
        wrong.extend(there.into_keys().map(|(fact, _)| fact));
        let triplets = triplets.into_iter().filter(|it| wrong.contains(&it.fact));
        let repair = GraphWrite {
            triplets: triplets.collect(),
            entities,
            replaced: wrong.into_iter().collect(),
            ..GraphWrite::default()
        };
        Self { check, repair }
    }

    /// What the graph has of derivations that are not among these.
    fn beyond(said: &BTreeSet<DerivationId>, there: &[Triplet]) -> Self {
        let surplus = there.iter().filter(|it| !said.contains(&it.fact));
        let facts: BTreeSet<DerivationId> = surplus.clone().map(|it| it.fact).collect();
        Self {
            check: GraphCheck {
                surplus: surplus.count() as u64,
                ..GraphCheck::default()
            },
            repair: GraphWrite {
                replaced: facts.into_iter().collect(),
                ..GraphWrite::default()
            },
        }
    }
}

/// All that the graph has of these derivations.
async fn of_facts(
    graph: &dyn Graph,
    scope: &Scope,
    stated: &[Derivation],
) -> Result<Vec<Triplet>, Fault> {
    let facts: Vec<DerivationId> = stated.iter().map(|it| it.id).collect();
    // No condition on facts would be the whole graph.
    if facts.is_empty() {
        return Ok(Vec::new());
    }
    let query = TripletQuery {
        facts: &facts,
        ..TripletQuery::default()
    };
    let (mut there, mut after) = (Vec::new(), None);
    loop {
        let page = graph.triplets(scope, query, PAGE, after.as_ref()).await?;
        there.extend(page.items);
        after = page.next;
        if after.is_none() {
            return Ok(there);
        }
    }
}
