//! A language model as the extractor (AMA appendix C.1). Its facts are checked word by word. Of a
//! turn with statements in their own words only facts of the same words are taken, which give them
//! clauses. While the model cannot be asked at all, the turns wait for it.

use async_trait::async_trait;
use memfleet_agents::facts::{as_told, claim, denies, is_supported, is_verb_said};
use memfleet_domain::derivation::Derivation;
use memfleet_domain::fact::{Clause, Draft};
use memfleet_domain::space::Locale;
use memfleet_domain::turn::Turn;
use memfleet_domain::{Fault, Scope};
use memfleet_language::Language;
use memfleet_ports::language_model::Agent;
use memfleet_prompts::facts::{Checks, Extraction, Facts};
use memfleet_prompts::handles::Turn as Shown;
use memfleet_prompts::{Adviser, Template};

use super::{ExtractedFacts, Extractor, Utterances, family, matched};

/// Asks a model about each turn.
pub struct ModelExtractor {
    name: String,
    adviser: Adviser,
}

impl ModelExtractor {
    /// Its name is the model's and the prompt's.
    pub fn new(adviser: Adviser) -> Self {
        let model = adviser.model.name(Agent::Constructor);
        Self {
            name: format!("{model} {}", Facts::ID),
            adviser,
        }
    }

    /// What the model finds in a turn; nothing where what it says is of no use.
    async fn read(
        &self,
        scope: &Scope,
        turn: &Utterances,
        locale: &Locale,
    ) -> Result<Option<Extraction>, Fault> {
        let window = turn.before.iter().chain([&turn.turn]);
        let turns: Vec<Shown> = window.map(Shown::from).collect();
        let as_told = telling(locale);
        let prompt = Facts {
            earlier: turns.len() - 1,
            turns: &turns,
            known: &[],
            checks: checks(&as_told),
        };
        let asked = self.adviser.ask(&scope.tenant, &prompt).await?;
        Ok(asked.map(|asked| asked.meant))
    }
}

#[async_trait]
impl Extractor for ModelExtractor {
    fn replaces(&self) -> Vec<&str> {
        vec![family(&self.name)]
    }

    async fn extract(
        &self,
        scope: &Scope,
        turns: Vec<Utterances>,
        locale: &Locale,
    ) -> Result<ExtractedFacts, Fault> {
        let mut drafts = Vec::with_capacity(turns.len());
        for turn in &turns {
            let statements: Vec<&Derivation> = turn.statements.iter().collect();
            match self.read(scope, turn, locale).await? {
                Some(extraction) => {
                    let known = (&turn.turn, Some(&*statements).filter(|it| !it.is_empty()));
                    drafts.extend(taken(&[known], extraction, locale));
                }
                None => drafts.push(Vec::new()),
            }
        }
        Ok(ExtractedFacts {
            by: self.name.clone(),
            drafts,
        })
    }
}

/// Checks of what a model finds; `as_told` is [`telling`].
pub(crate) fn checks(as_told: &(dyn Fn(Draft, &Shown) -> (Draft, u32) + Sync)) -> Checks<'_> {
    Checks {
        claim: &claim_of,
        is_supported: &supported,
        as_told,
    }
}

/// What a turn tells of a fact's dates and stance, where people are.
pub(crate) fn telling(locale: &Locale) -> impl Fn(Draft, &Shown) -> (Draft, u32) + Sync + '_ {
    |draft, turn| as_told(draft, &turn.text, turn.said_at, locale)
}

/// Facts of each of these turns that it says. Of a turn with statements only facts of their words
/// are taken, one a statement that has no clause. Those that are left out are counted.
pub(crate) fn taken(
    turns: &[(&Turn, Option<&[&Derivation]>)],
    mut extraction: Extraction,
    locale: &Locale,
) -> Vec<Vec<Draft>> {
    let is_english = Language::tagged(locale.language.as_deref()) == Language::English;
    let mut taken = Vec::with_capacity(turns.len());
    for (turn, statements) in turns {
        let text = turn.accepted.content.searchable_text();
        let own = extraction
            .drafts
            .extract_if(.., |(id, _)| *id == turn.accepted.id);
        let own: Vec<Draft> = own.map(|(_, draft)| draft).collect();
        let found = own.len();
        let is_said = |draft: &Draft| !is_english || is_verb_said(draft, &text);
        let said = own.into_iter().filter(is_said);
        let said: Vec<Draft> = match statements {
            None => said.filter(|it| !is_turned(it, &text)).collect(),
            Some(statements) => {
                let matched = matched(said.collect(), statements).into_iter();
                matched.map(|(_, draft)| draft).collect()
            }
        };
        extraction.dropped.unsupported += (found - said.len()) as u32;
        taken.push(said);
    }
    extraction.dropped.report(Agent::Constructor);
    taken
}

/// True for a fact that says yes where its words say no, or no where they say yes: the same words
/// support both, so the words that deny have to tell.
fn is_turned(draft: &Draft, text: &str) -> bool {
    let evidence = text.get(draft.evidence.start as usize..draft.evidence.end as usize);
    draft.is_negated() != evidence.is_some_and(denies)
}

fn claim_of(clause: &Clause) -> memfleet_domain::fact::Claim {
    claim(clause)
}

/// Its words are those of the turn, or names from the window.
fn supported(draft: &Draft, turn: &Shown, window: &[Shown]) -> bool {
    let speakers = window.iter().map(|turn| turn.speaker.as_str());
    let related = window
        .iter()
        .filter(|said| draft.related.contains(&said.id));
    let names: Vec<&str> = speakers
        .chain(related.map(|said| said.text.as_str()))
        .collect();
    is_supported(draft, &turn.text, &names)
}
