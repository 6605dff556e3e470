//! Fragments whose narrative went with a forgotten turn, or with a change that a caller undid: those that had one in common have one in common
//! again, which the first of them begins.

use std::collections::{BTreeMap, HashSet};

use memfleet_domain::Fault;
use memfleet_domain::Scope;
use memfleet_domain::derivation::{Derivation, Kind};
use memfleet_domain::ids::DerivationId;
use memfleet_ports::knowledge::{Question, Rewrite};

use super::beginning::Story;
use crate::LocalConsolidator;
use crate::news::{News, first_free};

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
        let mut taken = there;
        taken.extend(orphans.keys());
        for (narrative, fragments) in orphans {
            let news = self
                .adopted(scope, narrative, &fragments, &mut taken)
                .await?;
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
        taken: &mut HashSet<DerivationId>,
    ) -> Result<News, Fault> {
        let first = fragments.iter().min_by_key(|it| (it.valid.start, it.id));
        let Some((first, told)) = first.and_then(|first| Some((first, first.fragment()?))) else {
            return Ok(News::default());
        };
        let cast = self.cast(scope, &first.turns).await?;
        let Some(owner) = cast.first().cloned() else {
            return Ok(News::default());
        };
        let (opening, begun) = (first.turns[0], first.valid.start);
        let question = Question {
            ids: vec![gone],
            withdrawn: true,
            ..Question::default()
        };
        let before = self.of_kind(scope, Kind::Narrative, question).await?;
        let id = match before.first() {
            // Somebody wrote it since the others were read.
            Some(narrative) if !narrative.is_withdrawn() => return Ok(News::default()),
            Some(_) => gone,
            // A turn of two matters opens fragments of several stories.
            None => first_free(
                |nth| DerivationId::of_narrative_among(opening, nth),
                |id| taken.contains(id),
            ),
        };
        taken.insert(id);
        let before = self.versions(scope, vec![id]).await?;
        let mut news = News::default();
        let story = Story {
            id,
            headline: told.headline.clone(),
            owner,
            opening,
        };
        story.begin(before.get(&id).copied(), &cast, begun, &mut news);
        if id != gone {
            for orphan in fragments {
                news.bind_anew(orphan, id);
            }
        }
        Ok(news)
    }
}
