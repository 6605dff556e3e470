//! Semanticization (Amory section 3.2): what is peripheral in the turns of a story, standalone
//! facts that its headlines do not lead to, found by a language model once a model put the story
//! together. It follows the fragments: one that has a subplot by a model is of a story that nobody
//! speaks of any more, and is written once. What it finds are facts like any other; in a turn with
//! statements in their own words they give these their clauses.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use memfleet_agents::facts::is_borne_out;
use memfleet_agents::narratives::BINDER;
use memfleet_domain::derivation::{Derivation, Kind, Origin};
use memfleet_domain::fact::Draft;
use memfleet_domain::ids::{DerivationId, TurnId};
use memfleet_domain::narrative::Narrative;
use memfleet_domain::space::Locale;
use memfleet_domain::turn::Turn;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::feed::{Change, Changes};
use memfleet_ports::knowledge::{Progress, Question, Rewrite, Stage};
use memfleet_prompts::facts::{Extraction, Facts};
use memfleet_prompts::handles::Turn as Shown;
use memfleet_prompts::semantics::Peripheral;
use memfleet_prompts::stories::Story;
use memfleet_prompts::{Adviser, Asked};
use memfleet_workers::{Agent, Heard, Outcome, before};
use tracing::instrument;

use super::reading::traced_to_turns;
use super::{Deriver, overlap};
use crate::extract::{Utterances, checks, taken, telling};

/// Changes that are looked at together: each may be a call to the model, and all of them should be over before the lease is.
const ROUND: u32 = 16;
/// Turns that a model is shown at a time.
const TURNS: usize = 32;
/// How much of a turn, in characters.
const SHOWN: usize = 2_000;

/// The stage.
#[derive(Clone)]
pub struct Semanticizer {
    /// Writes facts.
    pub deriver: Arc<Deriver>,
    /// Finds what is peripheral.
    pub adviser: Adviser,
    /// What it was asked about, be it to no avail: a fragment does not show it.
    pub heard: Heard,
}

/// What was said of a story that a model put together.
struct Part {
    story: Story,
    fragments: Vec<Derivation>,
}

impl Part {
    fn ids(&self) -> impl Iterator<Item = DerivationId> {
        self.fragments.iter().map(|fragment| fragment.id)
    }
}

/// What a round came to.
#[derive(Default)]
struct Round<'p> {
    rewrites: Vec<Rewrite>,
    asked: Vec<&'p Derivation>,
    /// What is looked at again, as the model could not be asked about it.
    left: HashSet<DerivationId>,
    failed: Option<Fault>,
}

#[async_trait]
impl Agent for Semanticizer {
    #[instrument(name = "semanticize", skip_all, fields(tenant = %scope.tenant, space = %scope.space))]
    async fn work(&self, scope: &Scope, reached: u64) -> Result<Outcome, Fault> {
        let deriver = &self.deriver;
        let changes = deriver.feed.changes_after(scope, reached, ROUND).await?;
        let parts = self.parts(scope, &changes).await?;
        let round = self.round(scope, &parts).await;
        let is_left =
            |change: &Change| matches!(change, Change::Derived(it) if round.left.contains(&it.id));
        let progress = Progress {
            stage: Stage::Semanticize,
            from: reached,
            to: before(&*deriver.feed, scope, reached, &changes, is_left).await?,
        };
        let Some(facts) = deriver.write(scope, round.rewrites, progress).await? else {
            return Ok(Outcome::More);
        };
        round.asked.iter().for_each(|it| self.heard.note(it));
        metrics::counter!("memfleet_facts_derived_total").increment(facts as u64);
        match round.failed {
            None => Ok(Outcome::more_if(changes.more || facts > 0)),
            Some(fault) => Err(fault),
        }
    }
}

impl Semanticizer {
    /// The fragments among these changes that a model found subplots for, by story.
    async fn parts(&self, scope: &Scope, changes: &Changes) -> Result<Vec<Part>, Fault> {
        let ids = changes.changes.iter().filter_map(|change| match change {
            Change::Derived(derived) if derived.kind == Kind::Fragment => Some(derived.id),
            _ => None,
        });
        let mut fragments = self.derivations(scope, ids.collect()).await?;
        fragments.retain(|fragment| !self.heard.has(fragment));
        let narrative = |it: &Derivation| it.fragment().map(|it| it.narrative);
        let ids: BTreeSet<_> = fragments.iter().filter_map(narrative).collect();
        let narratives = self.derivations(scope, ids.into_iter().collect()).await?;
        let parts = narratives.iter().filter_map(|derivation| {
            let told = derivation.narrative()?;
            let of_it = fragments
                .iter()
                .filter(|it| narrative(it) == Some(derivation.id) && is_by_model(told, it));
            Some(Part {
                story: Story::from(told),
                fragments: of_it.cloned().collect(),
            })
        });
        Ok(parts.filter(|part| !part.fragments.is_empty()).collect())
    }

    async fn derivations(
        &self,
        scope: &Scope,
        ids: Vec<DerivationId>,
    ) -> Result<Vec<Derivation>, Fault> {
        // No condition on ids would be all of them.
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let question = Question {
            ids,
            ..Question::default()
        };
        let knowledge = &self.deriver.knowledge;
        Ok(knowledge.all_derivations(scope, &question).await?)
    }

    /// As with turns (`refine`), one part that fails keeps neither what others hold from being written nor the next from being asked about; a
    /// second one does.
    async fn round<'p>(&self, scope: &Scope, parts: &'p [Part]) -> Round<'p> {
        let mut round = Round::default();
        let mut is_down = false;
        for part in parts {
            if is_down {
                round.left.extend(part.ids());
                continue;
            }
            match self.read(scope, part, &mut round.rewrites).await {
                Ok(()) => round.asked.extend(&part.fragments),
                Err(fault) => {
                    round.left.extend(part.ids());
                    is_down = round.failed.is_some();
                    round.failed.get_or_insert(fault);
                }
            }
        }
        round
    }

    /// Adds the changes that what is peripheral in a part comes with.
    async fn read(
        &self,
        scope: &Scope,
        part: &Part,
        found: &mut Vec<Rewrite>,
    ) -> Result<(), Fault> {
        let ids: BTreeSet<TurnId> = part
            .fragments
            .iter()
            .flat_map(|it| it.turns.iter().copied())
            .collect();
        let ids: Vec<TurnId> = ids.into_iter().collect();
        let mut turns = self.deriver.ledger.turns(scope, &ids).await?;
        turns.retain(|turn| turn.replaced.is_none());
        turns.sort_by_key(|turn| (turn.accepted.effective_time(), turn.position));
        for turns in turns.chunks(TURNS) {
            let rewrites = self.peripheral(scope, &part.story, turns, found).await?;
            found.extend(rewrites);
        }
        Ok(())
    }

    /// The changes that what is peripheral in turns of a story comes with, beside those that were found in this round.
    async fn peripheral(
        &self,
        scope: &Scope,
        story: &Story,
        turns: &[Turn],
        found: &[Rewrite],
    ) -> Result<Vec<Rewrite>, Fault> {
        let deriver = &self.deriver;
        let mut known = deriver.known(scope, Kind::Fact, turns).await?;
        // A turn of two matters is told in two stories.
        let is_shown = |it: &&Derivation| turns.iter().any(|turn| turn.accepted.id == it.turns[0]);
        let found = found.iter().flat_map(|rewrite| &rewrite.revisions);
        for found in found.map(|it| &it.derivation).filter(is_shown) {
            known.retain(|it| it.id != found.id);
            known.push(found.clone());
        }
        let locale = deriver.indexer.spaces.locale(scope).await?;
        let locale = locale.unwrap_or_default();
        let asked = self.ask(scope, story, turns, &known, &locale).await?;
        let Some(Asked { meant, by, .. }) = asked else {
            return Ok(Vec::new());
        };
        let turns: Vec<&Turn> = turns.iter().collect();
        let asked_about = turns.iter();
        let asked_about = asked_about.map(|turn| deriver.asked_about(&known, turn.accepted.id));
        let asked_about: Vec<_> = asked_about.collect();
        let read = turns.iter().zip(&asked_about).map(|(turn, statements)| {
            let is_open = statements.as_ref().is_some_and(Vec::is_empty);
            let known = (!is_open).then(|| statements.as_deref().unwrap_or_default());
            (*turn, known)
        });
        let drafts = taken(&read.collect::<Vec<_>>(), meant, &locale);
        let traced = turns.iter().zip(drafts).map(|(turn, drafts)| {
            let others = turns
                .iter()
                .filter(|other| other.accepted.id != turn.accepted.id);
            let shown = Utterances {
                before: others.map(|other| Turn::clone(other)).collect(),
                turn: Turn::clone(turn),
                statements: Vec::new(),
            };
            traced_to_turns(&shown, drafts)
        });
        let mut drafts = deriver.topics.admitted(scope, traced.collect()).await?;
        let mut rewrites = Vec::new();
        for ((turn, statements), drafts) in turns.iter().zip(&asked_about).zip(&mut drafts) {
            let of_turn = |it: &&Derivation| it.turns[0] == turn.accepted.id;
            if let Some(statements) = statements.as_ref().filter(|it| !it.is_empty()) {
                let facts = std::mem::take(drafts);
                rewrites.extend(deriver.clauses(scope, statements, facts, &by).await?);
            }
            drafts.retain(|draft| !known.iter().filter(of_turn).any(|it| is_told(it, draft)));
        }
        let facts = deriver.statements(scope, &turns, drafts, &known, &by);
        rewrites.extend(facts.await?);
        Ok(rewrites)
    }

    /// What the model finds in turns of a story; nothing where what it says is of no use.
    async fn ask(
        &self,
        scope: &Scope,
        story: &Story,
        turns: &[Turn],
        known: &[Derivation],
        locale: &Locale,
    ) -> Result<Option<Asked<Extraction>>, Fault> {
        let turns = turns.iter().map(|turn| Shown::clipped(turn, SHOWN));
        let known = known.iter().filter(|it| !it.is_withdrawn());
        let known = known.filter_map(Derivation::fact);
        let known: Vec<String> = known.map(|fact| fact.text.clone()).collect();
        let headlines = [&story.headline, &story.owner].into_iter();
        let headlines = headlines.chain(&story.subplots).chain(&story.characters);
        let headlines: Vec<&str> = headlines.map(String::as_str).collect();
        let as_told = telling(locale);
        let prompt = Peripheral {
            story,
            facts: Facts {
                turns: &turns.collect::<Vec<_>>(),
                earlier: 0,
                known: &known,
                checks: checks(&as_told),
            },
            is_plot: &|sentence| is_borne_out(sentence, headlines.iter().copied()),
        };
        self.adviser.ask(&scope.tenant, &prompt).await
    }
}

fn is_by_model(narrative: &Narrative, fragment: &Derivation) -> bool {
    let subplot = fragment.fragment().and_then(|it| narrative.subplot_of(it));
    subplot.is_some_and(|it| it.author != BINDER)
}

/// Whether a fact of the same turn says this already, by whatever verb; or what its words say of the subject was taken back: it does not
/// come back in other words.
fn is_told(fact: &Derivation, draft: &Draft) -> bool {
    let Some(told) = fact.fact() else {
        return false;
    };
    let is_taken_back = fact.is_withdrawn() || fact.origin == Origin::Corrected;
    let is_of_same_words = overlap(&told.evidence, &draft.evidence);
    let (ours, theirs) = (&draft.claim, &told.claim);
    let is_same = !ours.value.is_empty()
        && ours.value == theirs.value
        && draft.is_negated() == told.is_negated();
    ours.subject == theirs.subject && (is_same || is_taken_back && is_of_same_words)
}
