//! Recall by coherence (Amory section 3.3): a model chooses the stories that a question is about by their headlines and characters, and what
//! they tell joins what the search found.

use std::collections::HashSet;

use memfleet_domain::derivation::{Derivation, Kind};
use memfleet_domain::ids::TurnId;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::knowledge::Question;
use memfleet_ports::language_model::Agent;
use memfleet_ports::retriever::{Found, Hit, Query};
use memfleet_prompts::Adviser;
use memfleet_prompts::stories::Story;
use memfleet_prompts::stories::choice::Choosing;

use super::inquiry::Inquiry;

/// k of Amory section 3.3: stories that are chosen, at most.
const CHOSEN: usize = 2;
/// Stories that a model is shown, at most: all of a space where there are so few, else those of what the search found.
const SHOWN: usize = 60;
/// Most turns that a search is restricted to.
const TURNS: usize = 1_000;

/// A narrative, and where it is.
struct Told {
    scope: Scope,
    narrative: Derivation,
}

impl Inquiry<'_> {
    /// Lets the stories that a question is about speak, behind the hits that were asked for: a judge sees both. Without a reply the search
    /// stands alone.
    pub(super) async fn gather(
        &self,
        adviser: &Adviser,
        query: &Query,
        found: &mut Found,
        degraded: &mut Vec<String>,
    ) {
        // What cannot be read of narratives is no reason to leave a question without an answer.
        let Ok(stories) = self.stories(query, &found.hits).await else {
            degraded.push("narratives: not read".to_owned());
            return;
        };
        if stories.is_empty() {
            return;
        }
        let shown = stories.iter().filter_map(|it| it.narrative.narrative());
        let prompt = Choosing {
            query: &query.text,
            now: self.now(query),
            stories: &shown.map(Story::from).collect::<Vec<_>>(),
            most: CHOSEN,
        };
        let chosen = match self.ask(adviser, &prompt).await {
            Ok(choice) => choice,
            Err(fault) => {
                degraded.push(format!("language model: {fault}; stories chosen by rules"));
                return;
            }
        };
        chosen.dropped.report(Agent::Consolidator);
        let chosen = chosen.stories.iter().map(|place| &stories[*place]);
        if let Ok(told) = self.told(query, chosen, &found.hits).await {
            let place = found.hits.len().min(query.k as usize);
            found.hits.splice(place..place, told);
        }
    }

    /// The stories among which a model chooses.
    async fn stories(&self, query: &Query, hits: &[Hit]) -> Result<Vec<Told>, Fault> {
        let mut stories = Vec::new();
        for space in &query.spaces {
            let scope = self.context.scope(space);
            let all = self.of(&scope, query, Question::default(), Kind::Narrative);
            let mut narratives = all.await?;
            if narratives.len() > SHOWN {
                let among = hits.iter().filter(|hit| hit.space == *space);
                let turns: Vec<TurnId> = among.map(|hit| hit.turn.accepted.id).collect();
                let question = Question {
                    turns: turns.clone(),
                    ..Question::default()
                };
                let mut fragments = match turns.is_empty() {
                    true => Vec::new(),
                    false => self.of(&scope, query, question, Kind::Fragment).await?,
                };
                // Those of the best hits first.
                let rank = |it: &Derivation| turns.iter().position(|turn| it.turns.contains(turn));
                fragments.sort_by_cached_key(rank);
                let fragments = fragments.iter().filter_map(Derivation::fragment);
                let mut ids = Vec::new();
                for fragment in fragments {
                    if ids.len() < SHOWN && !ids.contains(&fragment.narrative) {
                        ids.push(fragment.narrative);
                    }
                }
                narratives.retain(|it| ids.contains(&it.id));
            }
            stories.extend(narratives.into_iter().map(|narrative| Told {
                scope: scope.clone(),
                narrative,
            }));
        }
        stories.truncate(SHOWN);
        Ok(stories)
    }

    /// What the search finds in these stories and is not there yet.
    async fn told<'t>(
        &self,
        query: &Query,
        stories: impl Iterator<Item = &'t Told>,
        have: &[Hit],
    ) -> Result<Vec<Hit>, Fault> {
        let mut turns: Vec<TurnId> = Vec::new();
        for Told { scope, narrative } in stories {
            let question = Question {
                narrative: Some(narrative.id),
                ..Question::default()
            };
            let fragments = self.of(scope, query, question, Kind::Fragment).await?;
            turns.extend(fragments.iter().flat_map(|it| &it.turns));
        }
        let may_be_found = &query.filter.turns;
        turns.retain(|turn| may_be_found.is_empty() || may_be_found.contains(turn));
        if turns.is_empty() {
            return Ok(Vec::new());
        }
        turns.truncate(TURNS);
        let mut within = query.clone();
        within.filter.turns = turns;
        within.session = None;
        let found = self.gateway.search(self.context, &within).await?;
        let known: HashSet<TurnId> = have.iter().map(|hit| hit.turn.accepted.id).collect();
        let hits = found.hits.into_iter();
        Ok(hits
            .filter(|hit| !known.contains(&hit.turn.accepted.id))
            .collect())
    }

    /// Derivations as they were known when the query asks for.
    async fn of(
        &self,
        scope: &Scope,
        query: &Query,
        question: Question,
        kind: Kind,
    ) -> Result<Vec<Derivation>, Fault> {
        let question = Question {
            kind: Some(kind),
            as_of: query.filter.as_of,
            ..question
        };
        let knowledge = &self.gateway.knowledge;
        Ok(knowledge.all_derivations(scope, &question).await?)
    }
}
