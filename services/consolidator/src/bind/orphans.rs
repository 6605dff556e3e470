//! Fragments whose narrative went with a forgotten turn, or with a change that a caller undid: those that had one in common have one in common
//! again, which the first of them begins.

use std::collections::{BTreeMap, HashSet};

use memfleet_agents::narratives::BINDER;
use memfleet_domain::Fault;
use memfleet_domain::Scope;
use memfleet_domain::derivation::Derivation;
use memfleet_domain::ids::{DerivationId, Speaker};
use memfleet_domain::narrative::{Momentum, Narrative};
use memfleet_ports::knowledge::Rewrite;

use crate::LocalConsolidator;
use crate::news::News;

/// Why a change adopts.
const ADOPTED: (&str, &str) = (
    "bound",
    "what the story was begun with is not there any more",
);

/// Why one withdraws.
const EMPTIED: (&str, &str) = ("emptied", "nothing is told of the story any more");

impl LocalConsolidator {
    /// One change for each narrative that is gone, and one for those whose fragments are: what is left of these begins them anew, or goes on with
    /// another one.
    pub(super) async fn adopt_orphans(
        &self,
        scope: &Scope,
        narratives: Vec<Derivation>,
        fragments: &[Derivation],
    ) -> Result<Vec<Rewrite>, Fault> {
        let there: HashSet<DerivationId> = narratives.iter().map(|it| it.id).collect();
        let bound = fragments.iter().filter_map(Derivation::fragment);
        let bound: HashSet<DerivationId> = bound.map(|it| it.narrative).collect();
        let mut orphans: BTreeMap<DerivationId, Vec<&Derivation>> = BTreeMap::new();
        for derivation in fragments {
            if let Some(fragment) = derivation.fragment()
                && !there.contains(&fragment.narrative)
            {
                orphans
                    .entry(fragment.narrative)
                    .or_default()
                    .push(derivation);
            }
        }
        let mut rewrites = Vec::new();
        for (narrative, fragments) in orphans {
            let news = self.adopted(scope, narrative, &fragments).await?;
            rewrites.extend(self.rewrite(scope, news, ADOPTED).await?);
        }
        let empty = narratives.into_iter().filter(|it| !bound.contains(&it.id));
        let empty = News {
            withdrawn: empty.collect(),
            ..News::default()
        };
        rewrites.extend(self.rewrite(scope, empty, EMPTIED).await?);
        Ok(rewrites)
    }

    /// What makes a narrative of the fragments of one that is gone, in the words of the first of them. One that was withdrawn is this narrative
    /// again: what a caller brought back is left as it is. Of a forgotten one not even the id stays.
    async fn adopted(
        &self,
        scope: &Scope,
        gone: DerivationId,
        fragments: &[&Derivation],
    ) -> Result<News, Fault> {
        let first = fragments.iter().min_by_key(|it| (it.valid.start, it.id));
        let Some((first, told)) = first.and_then(|first| Some((first, first.fragment()?))) else {
            return Ok(News::default());
        };
        let turns = self.ledger.turns(scope, &first.turns).await?;
        let mut characters: Vec<Speaker> = Vec::new();
        for turn in turns {
            if !characters.contains(&turn.accepted.speaker) {
                characters.push(turn.accepted.speaker);
            }
        }
        let Some(owner) = characters.first().cloned() else {
            return Ok(News::default());
        };
        let narrative = Narrative {
            headline: told.headline.clone(),
            owner,
            characters,
            subplots: Vec::new(),
            momentum: Momentum::Active,
            author: BINDER.to_owned(),
        };
        let (opening, begun) = (first.turns[0], first.valid.start);
        let anew = DerivationId::of_narrative(opening);
        let before = self.versions(scope, vec![gone, anew]).await?;
        let id = if before.contains_key(&gone) {
            gone
        } else {
            anew
        };
        let mut news = News::default();
        news.begin(
            id,
            before.get(&id).copied(),
            narrative,
            vec![opening],
            begun,
        );
        if id != gone {
            for orphan in fragments {
                news.bind_anew(orphan, id);
            }
        }
        Ok(news)
    }
}
