//! One narrative put together: subplots for its last fragments, a headline that covers them, who takes part.

use memfleet_agents::narratives::{BINDER, Member, Plot, Vector, plot};
use memfleet_domain::derivation::{Body, Derivation};
use memfleet_domain::ids::TurnId;
use memfleet_domain::narrative::{Momentum, Narrative, Subplot};
use memfleet_domain::{Fault, Scope};

use super::Plotter;
use crate::cast::Cast;
use crate::news::News;
use crate::stories::opening;

impl Plotter {
    /// What becomes of a narrative and its last fragments.
    pub(super) async fn plot(
        &self,
        scope: &Scope,
        derivation: &Derivation,
        momentum: Momentum,
    ) -> Result<News, Fault> {
        let Some(narrative) = derivation.narrative() else {
            return Ok(News::default());
        };
        let mut fragments = self.consolidator.fragments(scope, derivation.id).await?;
        let earlier = fragments.len().saturating_sub(self.options.fragments);
        let fragments = fragments.split_off(earlier);
        let (members, headline) = self.members(scope, derivation, &fragments).await?;
        let mut plot = plot(&members, narrative.subplots.len() as u32, headline.as_ref());
        // The headline that a model wrote is a model's to change.
        plot.broader = plot.broader.filter(|_| narrative.author == BINDER);
        let turns = fragments.iter().flat_map(|it| it.turns.iter().copied());
        let turns: Vec<TurnId> = turns.collect();
        let told = Told {
            cast: self.consolidator.cast(scope, &turns).await?,
            momentum,
            plot,
        };
        Ok(told.news(derivation, narrative, &fragments))
    }

    /// What these fragments are told apart by, and the vector of the turn that the headline is words of.
    async fn members(
        &self,
        scope: &Scope,
        narrative: &Derivation,
        fragments: &[Derivation],
    ) -> Result<(Vec<Member>, Option<Vector>), Fault> {
        let headline = narrative.turns[0];
        let openings = fragments.iter().map(|it| it.turns[0]);
        let turns: Vec<TurnId> = openings.chain([headline]).collect();
        let indexed = self.consolidator.indexed(scope, &turns).await?;
        let vector = |turn| indexed.get(turn).and_then(|it| opening(it).vector);
        let members = fragments.iter().map(|derivation| Member {
            vector: vector(&derivation.turns[0]),
            subplot: derivation.fragment().and_then(|it| it.subplot),
        });
        Ok((members.collect(), vector(&headline)))
    }
}

/// What a narrative comes to.
struct Told {
    plot: Plot,
    /// Who speaks in the last fragments.
    cast: Cast,
    momentum: Momentum,
}

impl Told {
    /// New versions of what is not so yet.
    fn news(
        self,
        derivation: &Derivation,
        narrative: &Narrative,
        fragments: &[Derivation],
    ) -> News {
        let mut news = News::default();
        for (fragment, subplot) in fragments.iter().zip(&self.plot.subplots) {
            if let Some(told) = fragment.fragment()
                && told.subplot != Some(*subplot)
            {
                let mut told = told.clone();
                told.subplot = Some(*subplot);
                news.amend(fragment, Body::Fragment(Box::new(told)));
            }
        }
        let headline = |place: &usize| fragments[*place].fragment().map(|it| it.headline.clone());
        let broader = self.plot.broader.and_then(|place| headline(&place));
        let new = self.plot.headlines.iter().filter_map(headline);
        let mut next = narrative.clone();
        next.subplots.extend(new.map(|headline| Subplot {
            headline,
            author: BINDER.to_owned(),
        }));
        next.momentum = self.momentum;
        if let Some(headline) = &broader {
            next.headline.clone_from(headline);
        }
        let words = self.plot.broader.iter().chain(&self.plot.headlines);
        let words: Vec<TurnId> = words.map(|place| fragments[*place].turns[0]).collect();
        let mut turns = drawn_from(derivation, self.plot.broader.is_some(), &words);
        self.cast.join(&mut next.characters, &mut turns);
        if next != *narrative {
            news.retell(derivation, Body::Narrative(Box::new(next)), turns, broader);
        }
        news
    }
}

/// The turns that the headlines of a narrative are words of: first that of its own, which is the first of `words` where it is new. Those of earlier
/// headlines stay: they are in earlier versions.
fn drawn_from(before: &Derivation, is_broader: bool, words: &[TurnId]) -> Vec<TurnId> {
    let (first, rest) = match is_broader {
        true => (&words[..1], &words[1..]),
        false => (&[][..], words),
    };
    let mut turns: Vec<TurnId> = Vec::new();
    for turn in first.iter().chain(&before.turns).chain(rest) {
        if !turns.contains(turn) {
            turns.push(*turn);
        }
    }
    turns
}
