//! Deriving once more with the extractor of now, where somebody asked for it. What it finds is put aside until all turns are read; then
//! one transaction takes it into use and withdraws what is not found any more. A caller's corrections stay.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use memfleet_domain::derivation::{Body, ChangeKind, Derivation, Kind, Origin};
use memfleet_domain::fact::Draft;
use memfleet_domain::ids::{ChangeId, DerivationId};
use memfleet_domain::time::TimeRange;
use memfleet_domain::turn::Turn;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::events::Event;
use memfleet_ports::knowledge::{
    Applied, Progress, Rebuilding, Revision, Rewrite, Stage, Staging, Work,
};
use memfleet_workers::{Agent, Outcome};
use tracing::instrument;

use super::{Deriver, ROUND, change, first_version, news, overlap};
use crate::extract::{ExtractedFacts, family};
use crate::topics::FactVerdict;

/// Facts that are withdrawn at the end, at most: a rebuild of a larger space with more of them leaves the rest to the next.
const WITHDRAWN: u32 = 100_000;

/// Follows the rebuilds of all spaces.
#[derive(Clone)]
pub struct Rebuilder(pub Arc<Deriver>);

#[async_trait]
impl Agent for Rebuilder {
    #[instrument(name = "rebuild", skip_all, fields(tenant = %scope.tenant, space = %scope.space))]
    async fn work(&self, scope: &Scope, reached: u64) -> Result<Outcome, Fault> {
        let Some(rebuilding) = self.0.knowledge.rebuilding(scope).await? else {
            return Ok(Outcome::Done);
        };
        if reached < rebuilding.goal {
            self.read_on(scope, reached, rebuilding).await?;
            return Ok(Outcome::More);
        }
        self.finish(scope, reached).await
    }
}

impl Rebuilder {
    /// Puts aside what the next turns state.
    async fn read_on(
        &self,
        scope: &Scope,
        reached: u64,
        rebuilding: Rebuilding,
    ) -> Result<(), Fault> {
        let deriver = &self.0;
        let changes = deriver.feed.changes_after(scope, reached, ROUND).await?;
        let turns = deriver.changed(scope, &changes).await?;
        let (staging, rewrites) = self.staging(scope, &turns).await?;
        let work = Work {
            rewrites,
            staging,
            progress: Some(Progress {
                stage: Stage::Rebuild,
                from: reached,
                to: changes.reached.min(rebuilding.goal),
            }),
            ..Work::default()
        };
        // Stale where another worker was here: the next round sees how far it came.
        deriver.knowledge.apply(scope, work).await?;
        Ok(())
    }

    /// New facts, and the changes of known ones: those that an earlier rebuild withdrew and that
    /// hold again, and those that follow the topics of now.
    async fn staging(
        &self,
        scope: &Scope,
        turns: &[Turn],
    ) -> Result<(Staging, Vec<Rewrite>), Fault> {
        let deriver = &self.0;
        let known = deriver.known(scope, Kind::Fact, turns).await?;
        let in_use: HashMap<DerivationId, &Derivation> =
            known.iter().map(|known| (known.id, known)).collect();
        let verdicts = self.verdicts(scope, &known).await?;
        let standing: Vec<_> = turns
            .iter()
            .filter(|turn| turn.replaced.is_none())
            .collect();
        let ExtractedFacts { by, drafts } = deriver.drafts(scope, &standing).await?;
        let (mut new, mut confirmed) = (Vec::new(), Vec::new());
        let mut rewrites = Vec::new();
        let mut read_again = HashSet::new();
        for (turn, drafts) in standing.iter().zip(drafts) {
            let is_of_turn = |fact: &&Derivation| fact.turns[0] == turn.accepted.id;
            let corrected = known.iter().filter(|it| it.origin == Origin::Corrected);
            let corrected: Vec<_> = corrected.filter(is_of_turn).collect();
            for stated in news(turn, drafts, &corrected) {
                let Some(&fact) = in_use.get(&stated.id) else {
                    new.push((turn.accepted.id, stated));
                    continue;
                };
                confirmed.push(stated.id);
                if is_read_otherwise(fact, &stated.draft, &by) {
                    read_again.insert(fact.id);
                    rewrites.push(self.rereading(fact, stated.draft, &by));
                    continue;
                }
                let verdict = verdicts.get(&stated.id).and_then(Option::as_ref);
                if let Some(verdict) = verdict
                    && fact.is_withdrawn()
                    && !self.is_refuted(fact, &known)
                {
                    rewrites.push(self.revival(fact, stated.valid, verdict));
                }
            }
        }
        let others = known.iter().filter(|it| !read_again.contains(&it.id));
        rewrites.extend(self.by_topics(others, &verdicts));
        let texts = new.iter().map(|(_, new)| new.draft.text.clone()).collect();
        let language = deriver.indexer.language(scope).await?;
        let passages = deriver.indexer.passages(scope, texts, language).await?;
        let now = deriver.clock.now();
        let revisions = new.into_iter().zip(passages).map(|((turn, new), passage)| {
            let change = ChangeId::of("staged", &[new.id.as_bytes()]);
            Revision {
                derivation: first_version(turn, new, &by, (change, now)),
                passage: Some(passage),
            }
        });
        let new = revisions.collect();
        Ok((Staging { new, confirmed }, rewrites))
    }

    /// Verdict of the topics of now on each known fact that an extractor found; absent for one that
    /// they leave out.
    async fn verdicts(
        &self,
        scope: &Scope,
        known: &[Derivation],
    ) -> Result<HashMap<DerivationId, Option<FactVerdict>>, Fault> {
        let extracted = known.iter().filter(|it| it.origin != Origin::Corrected);
        let facts = extracted.filter_map(|it| Some((it.id, it.fact()?)));
        let (ids, facts): (Vec<_>, Vec<_>) = facts.unzip();
        let verdicts = self.0.topics.verdicts(scope, &facts).await?;
        Ok(ids.into_iter().zip(verdicts).collect())
    }

    /// The changes by which facts follow the topics of now, whoever found them: those that are left
    /// out are withdrawn, the others get the tags that they miss, and are kept or not.
    fn by_topics<'d>(
        &self,
        known: impl Iterator<Item = &'d Derivation>,
        verdicts: &HashMap<DerivationId, Option<FactVerdict>>,
    ) -> Vec<Rewrite> {
        let standing = known.filter(|fact| !fact.is_withdrawn());
        let rewrites = standing.filter_map(|fact| {
            let version = (fact.version + 1).to_be_bytes();
            let parts = [fact.id.as_bytes().as_slice(), &version];
            match verdicts.get(&fact.id)? {
                None => {
                    let id = ChangeId::of("left out", &parts);
                    let reason = "the topics of now leave it out";
                    self.0.withdrawal(id, &[fact], reason)
                }
                Some(verdict) => {
                    let id = ChangeId::of("tagged", &parts);
                    let judged = judged(fact.next(id), verdict);
                    let follows = judged.body == fact.body;
                    (!follows).then(|| self.rewrite(judged, "it follows the topics of now"))
                }
            }
        });
        rewrites.collect()
    }

    /// The change that makes this version what is known from now on.
    fn rewrite(&self, mut derivation: Derivation, reason: &str) -> Rewrite {
        let now = self.0.clock.now();
        derivation.known = TimeRange {
            start: Some(now),
            end: None,
        };
        let change = change(derivation.change, ChangeKind::Rebuilt, now, reason);
        Rewrite {
            revisions: vec![Revision {
                derivation,
                passage: None,
            }],
            change,
        }
    }

    /// True where an extractor that this one does not replace reads the words of a fact otherwise.
    fn is_refuted(&self, fact: &Derivation, known: &[Derivation]) -> bool {
        let replaced = self.0.extractor.replaces();
        let is_other = |it: &&Derivation| {
            it.turns[0] == fact.turns[0] && !it.is_withdrawn() && !is_of(it, &replaced)
        };
        known.iter().filter(is_other).any(|other| {
            let both = fact.fact().zip(other.fact());
            both.is_some_and(|(own, other)| overlap(&own.evidence, &other.evidence))
        })
    }

    /// The change by which a known statement gets the labels, the line and the names that it is read
    /// with now.
    fn rereading(&self, fact: &Derivation, read: Draft, by: &str) -> Rewrite {
        let version = (fact.version + 1).to_be_bytes();
        let id = ChangeId::of("read again", &[fact.id.as_bytes(), &version]);
        let mut reread = fact.next(id);
        reread.origin = Origin::Extracted(by.to_owned());
        if let Body::Fact(draft) = &mut reread.body {
            draft.confidence = read.confidence;
            draft.statement = read.statement;
            draft.line = read.line;
            draft.names = read.names;
            draft.topics = read.topics;
        }
        self.rewrite(reread, "the extractor of now reads it otherwise")
    }

    /// The change by which a withdrawn fact holds again.
    fn revival(&self, fact: &Derivation, valid: TimeRange, verdict: &FactVerdict) -> Rewrite {
        let version = (fact.version + 1).to_be_bytes();
        let id = ChangeId::of("revived", &[fact.id.as_bytes(), &version]);
        let revived = Derivation {
            valid,
            ..judged(fact.next(id), verdict)
        };
        self.rewrite(revived, "the extractor of now finds it")
    }

    /// Takes it into use.
    async fn finish(&self, scope: &Scope, reached: u64) -> Result<Outcome, Fault> {
        let deriver = &self.0;
        let now = deriver.clock.now();
        let replaced = deriver.extractor.replaces();
        let name = replaced.join(" ");
        let part = reached.to_be_bytes();
        let id = ChangeId::of("not derived again", &[name.as_bytes(), &part]);
        let gone = deriver.knowledge.unconfirmed(scope, WITHDRAWN).await?;
        let gone: Vec<_> = gone.iter().filter(|fact| is_of(fact, &replaced)).collect();
        let withdrawal = deriver.withdrawal(id, &gone, "the extractor of now does not find it");
        let published = ChangeId::of("rebuilt", &[name.as_bytes(), &part]);
        let reason = "the extractor of now finds it";
        let work = Work {
            rewrites: withdrawal.into_iter().collect(),
            publish: Some(change(published, ChangeKind::Rebuilt, now, reason)),
            ..Work::default()
        };
        if deriver.knowledge.apply(scope, work).await? == Applied::Stale {
            return Ok(Outcome::More);
        }
        tracing::info!(%scope, withdrawn = gone.len(), "rebuilt");
        deriver.events.announce(Event::Derived {
            scope: scope.clone(),
        });
        Ok(Outcome::Done)
    }
}

/// True for an extracted statement that holds and whose line is another one now, that another
/// version of the reader labels otherwise, or that lacks its vectors.
fn is_read_otherwise(fact: &Derivation, read: &Draft, by: &str) -> bool {
    let Origin::Extracted(name) = &fact.origin else {
        return false;
    };
    let bytes = |draft: &Draft| draft.line.as_ref().map(|line| line.bytes.clone());
    let differs = |known: &Draft| {
        let is_labelled = known.statement.is_some() && read.statement.is_some();
        let is_relabelled = known.statement != read.statement || known.names != read.names;
        let vectors = |draft: &Draft| draft.statement.and_then(|labels| labels.vectors);
        let lacks_vectors = vectors(known).is_none() && vectors(read).is_some();
        let is_other = name != by && is_relabelled || lacks_vectors;
        is_labelled && (bytes(known) != bytes(read) || is_other)
    };
    !fact.is_withdrawn() && fact.fact().is_some_and(differs)
}

/// A fact as the topics make it.
fn judged(mut derivation: Derivation, verdict: &FactVerdict) -> Derivation {
    if let Body::Fact(fact) = &mut derivation.body {
        verdict.clone().apply(fact);
    }
    derivation
}

/// True where an extractor of one of these families found a fact. A model's facts are not found by
/// others; that says nothing against them.
pub(super) fn is_of(fact: &Derivation, families: &[&str]) -> bool {
    matches!(&fact.origin, Origin::Extracted(name) if families.contains(&family(name)))
}
