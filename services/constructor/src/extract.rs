//! Extraction of facts from turns: by the reader of turns, or by a language model.

mod model;
mod same_words;
mod statements;

use async_trait::async_trait;
use memfleet_agents::facts::Utterance;
use memfleet_domain::derivation::Derivation;
use memfleet_domain::fact::Draft;
use memfleet_domain::space::Locale;
use memfleet_domain::turn::Turn;
use memfleet_domain::{Fault, Scope};

pub use self::model::ModelExtractor;
pub(crate) use self::model::{checks, taken, telling};
pub(crate) use self::same_words::{lacks_clause, matched};
pub use self::statements::StatementExtractor;

/// A turn and what was said right before it in its session, oldest first.
#[derive(Debug, Clone)]
pub struct Utterances {
    /// The window W of AMA section 3.1.
    pub before: Vec<Turn>,
    /// The turn.
    pub turn: Turn,
    /// Statements of the turn in use, to which a language model gives clauses. Where there are none
    /// it finds facts of its own.
    pub statements: Vec<Derivation>,
}

/// Facts of some turns.
#[derive(Debug, Clone, PartialEq)]
pub struct ExtractedFacts {
    /// Name and version of the extractor, which are stored with each fact.
    pub by: String,
    /// Facts of each turn, in order.
    pub drafts: Vec<Vec<Draft>>,
}

/// Finds facts.
#[async_trait]
pub trait Extractor: Send + Sync {
    /// Names, without versions, of the extractors whose facts a rebuild by this one replaces.
    fn replaces(&self) -> Vec<&str>;

    /// True where the facts are statements in their own words: a language model gives them clauses,
    /// and finds no facts beside them.
    fn gives_statements(&self) -> bool {
        false
    }

    /// Facts of each turn, in order.
    async fn extract(
        &self,
        scope: &Scope,
        turns: Vec<Utterances>,
        locale: &Locale,
    ) -> Result<ExtractedFacts, Fault>;
}

/// Name of an extractor without its version.
pub(crate) fn family(name: &str) -> &str {
    name.rsplit_once('-').map_or(name, |(family, _)| family)
}

/// Extractor where no reader of turns is configured: it finds nothing, and a rebuild by it leaves
/// facts as they are.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoExtractor;

#[async_trait]
impl Extractor for NoExtractor {
    fn replaces(&self) -> Vec<&str> {
        Vec::new()
    }

    async fn extract(
        &self,
        _: &Scope,
        turns: Vec<Utterances>,
        _: &Locale,
    ) -> Result<ExtractedFacts, Fault> {
        Ok(ExtractedFacts {
            by: String::new(),
            drafts: vec![Vec::new(); turns.len()],
        })
    }
}

impl Utterances {
    /// Gives a reader the turn and the turns before it.
    pub(crate) fn read<T>(&self, reader: impl FnOnce(&Utterance<'_>, &[Utterance<'_>]) -> T) -> T {
        let turns = self.before.iter().chain([&self.turn]);
        let texts = turns
            .clone()
            .map(|turn| turn.accepted.content.searchable_text());
        let texts: Vec<String> = texts.collect();
        let said = turns.zip(&texts).map(|(turn, text)| utterance(turn, text));
        let said: Vec<_> = said.collect();
        let (turn, before) = said.split_last().expect("the turn is the last of them");
        reader(turn, before)
    }
}

fn utterance<'t>(turn: &'t Turn, text: &'t str) -> Utterance<'t> {
    let accepted = &turn.accepted;
    Utterance {
        id: accepted.id,
        speaker: accepted.speaker.as_str(),
        text,
        said_at: accepted.effective_time(),
    }
}
