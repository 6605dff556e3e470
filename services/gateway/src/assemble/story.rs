//! A narrative as such: a block of nothing but what was said of it (Amory section 3.3).

use std::collections::HashSet;

use memfleet_domain::derivation::{Derivation, Kind};
use memfleet_domain::ids::DerivationId;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::assembly::AssembleRequest;
use memfleet_ports::context::Context;
use memfleet_ports::knowledge::Question;

use crate::Gateway;
use crate::knowledge::NARRATIVES;

/// Most turns that a search is restricted to.
const TURNS: usize = 1_000;

/// What was said of narratives.
#[derive(Default)]
struct Told {
    narratives: Vec<Derivation>,
    fragments: Vec<Derivation>,
}

impl Gateway {
    /// Restricts the query to the turns of the narratives that the request names; one without words asks for their headlines. Whether
    /// any turn is left.
    pub(super) async fn narrow(
        &self,
        context: &Context,
        request: &mut AssembleRequest,
    ) -> Result<bool, Fault> {
        let mut told = Told::default();
        for space in &request.query.spaces {
            let scope = self
                .derived(context, space, &request.wait_for, &NARRATIVES)
                .await?;
            self.tell(&scope, request, &mut told).await?;
        }
        let is_missing = |id: &&DerivationId| !told.narratives.iter().any(|it| it.id == **id);
        if let Some(id) = request.narratives.iter().find(is_missing) {
            return Err(Fault::not_found(format_args!("narrative {id}")));
        }
        let query = &mut request.query;
        let asked: HashSet<_> = query.filter.turns.drain(..).collect();
        told.fragments.sort_by_key(Derivation::begins);
        let turns = told.fragments.iter().flat_map(|fragment| &fragment.turns);
        let mut turns: Vec<_> = turns
            .filter(|turn| asked.is_empty() || asked.contains(turn))
            .copied()
            .collect();
        query.filter.turns = turns.split_off(turns.len().saturating_sub(TURNS));
        if query.text.is_empty() {
            let narratives = told.narratives.iter().filter_map(Derivation::narrative);
            let headlines: Vec<_> = narratives.map(|it| it.headline.as_str()).collect();
            query.text = headlines.join("\n");
            query.k = query.filter.turns.len() as u32;
        }
        Ok(!query.filter.turns.is_empty())
    }

    /// What a space tells of these narratives, as it was known when the query asks for.
    async fn tell(
        &self,
        scope: &Scope,
        request: &AssembleRequest,
        told: &mut Told,
    ) -> Result<(), Fault> {
        let as_of = request.query.filter.as_of;
        let question = Question {
            kind: Some(Kind::Narrative),
            ids: request.narratives.clone(),
            as_of,
            ..Question::default()
        };
        let narratives = self.knowledge.all_derivations(scope, &question).await?;
        for narrative in &narratives {
            let question = Question {
                narrative: Some(narrative.id),
                as_of,
                ..Question::default()
            };
            let fragments = self.knowledge.all_derivations(scope, &question).await?;
            told.fragments.extend(fragments);
        }
        told.narratives.extend(narratives);
        Ok(())
    }
}
