//! Questions asked of conversations and of their sessions, and what is found for them.

use std::fmt::Write as _;

use memfleet_assembly::Tokenizer;
use memfleet_evaluation::relevance::{Asked, Candidate, Kind};
use memfleet_evaluation::{Conversation, Dataset, Question};
use memfleet_gateway::Gateway;
use memfleet_ports::knowledge::Stage;
use memfleet_ports::memory::{Memory, RecallRequest};
use memfleet_ports::retriever::{Hit, Query};
use memfleet_retrieval::Clue;
use memfleet_runtime::BoxError;

use super::super::retrieval::progress;
use super::super::{Bench, query};
use crate::corpus::{Corpus, call};
use crate::models::ConfiguredModels;

/// Turns that are looked at: more than a block holds.
const DEPTH: u32 = 100;
/// Questions of the next space that a space is asked.
const FOREIGN: usize = 40;
const TOKENIZER: &str = "o200k_base";

/// A file and what its questions found.
pub struct File {
    /// Its path.
    pub name: String,
    /// Its conversations as spaces, then its sessions.
    pub views: [View; 2],
}

/// Questions asked of spaces of one kind.
pub struct View {
    /// What a space holds.
    pub name: &'static str,
    /// By conversation.
    pub conversations: Vec<Vec<Asked>>,
}

impl File {
    /// Asks everything, when all agents are done.
    pub async fn ask(
        name: String,
        models: &ConfiguredModels,
        dataset: &Dataset,
    ) -> Result<Self, BoxError> {
        let whole = dataset.conversations.iter().cloned().enumerate();
        let sessions = dataset.conversations.iter().enumerate();
        let sessions = sessions.flat_map(|(number, it)| {
            let sessions = it.sessions().into_iter();
            sessions.map(move |session| (number, session))
        });
        let count = dataset.conversations.len();
        let views = [
            View::ask("conversation", models, &whole.collect::<Vec<_>>(), count).await?,
            View::ask("session", models, &sessions.collect::<Vec<_>>(), count).await?,
        ];
        Ok(Self { name, views })
    }

    /// How many conversations it has.
    pub fn conversations(&self) -> usize {
        self.views[0].conversations.len()
    }
}

impl View {
    /// `spaces` are told each with the conversation that it is of, one of `count`.
    async fn ask(
        name: &'static str,
        models: &ConfiguredModels,
        spaces: &[(usize, Conversation)],
        count: usize,
    ) -> Result<Self, BoxError> {
        let bench = Bench::start(models).await?;
        let gateway = &bench.node.gateway;
        let mut corpora = Vec::with_capacity(spaces.len());
        for (number, (_, space)) in spaces.iter().enumerate() {
            let name = format!("space-{number}");
            let alone = std::slice::from_ref(space);
            corpora.push(Corpus::remember(&**gateway, &name, alone).await?);
        }
        bench.derived(&Stage::ALL).await?;
        let asking = Asking {
            gateway,
            tokenizer: Tokenizer::named(TOKENIZER)?,
        };
        let progress = progress(name, spaces.len());
        let mut conversations: Vec<Vec<Asked>> = (0..count).map(|_| Vec::new()).collect();
        for (number, (corpus, (conversation, space))) in corpora.iter().zip(spaces).enumerate() {
            let (_, next) = &spaces[(number + 1) % spaces.len()];
            let foreign = if spaces.len() > 1 {
                &next.questions[..]
            } else {
                &[]
            };
            let asked = asking.all(corpus, &space.unanswerable, foreign).await?;
            conversations[*conversation].extend(asked);
            progress.inc(1);
        }
        bench.stop().await;
        Ok(Self {
            name,
            conversations,
        })
    }
}

/// Asks questions of one space after the other.
struct Asking<'a> {
    gateway: &'a Gateway,
    tokenizer: Tokenizer,
}

impl Asking<'_> {
    /// The questions of a space, those that it has no answer to, and some that were meant for another.
    async fn all(
        &self,
        corpus: &Corpus,
        adversarial: &[String],
        foreign: &[Question],
    ) -> Result<Vec<Asked>, BoxError> {
        let own = corpus.questions.iter();
        let own = own.map(|it| (Kind::Answerable, &*it.text, &*it.evidence));
        let adversarial = adversarial.iter().map(String::as_str);
        let adversarial = adversarial.map(|text| (Kind::Adversarial, text, [].as_slice()));
        let foreign = foreign.iter().map(|it| &*it.text).take(FOREIGN);
        let foreign = foreign.map(|text| (Kind::Foreign, text, [].as_slice()));
        let mut asked = Vec::new();
        for (kind, text, evidence) in own.chain(adversarial).chain(foreign) {
            asked.push(Asked {
                kind,
                found: self.found(corpus, text, evidence).await?,
                sought: evidence.len(),
            });
        }
        Ok(asked)
    }

    async fn found(
        &self,
        corpus: &Corpus,
        text: &str,
        evidence: &[usize],
    ) -> Result<Vec<Candidate>, BoxError> {
        let query = Query {
            explain: true,
            ..query(&corpus.space, text.to_owned(), DEPTH)
        };
        let request = RecallRequest::from(query);
        let found = self.gateway.recall(&call(), request).await?;
        let candidate = |hit: &Hit| {
            let place = corpus.places.get(&hit.turn.accepted.id);
            let content = &hit.turn.accepted.content;
            Candidate {
                clues: clues(hit),
                is_evidence: place.is_some_and(|place| evidence.contains(place)),
                tokens: self.tokenizer.count(&content.searchable_text()),
            }
        };
        Ok(found.hits.iter().map(candidate).collect())
    }
}

/// The clues of a hit; none where one is missing.
fn clues(hit: &Hit) -> Vec<f32> {
    let value = |clue: Clue| {
        let mut signals = hit.signals.iter();
        let signal = signals.find(|signal| signal.signal == clue.name());
        signal.map(|signal| signal.value)
    };
    let clues: Option<Vec<f32>> = Clue::ALL.into_iter().map(value).collect();
    clues.unwrap_or_default()
}

/// A line a turn that was found.
pub fn table(files: &[File]) -> String {
    let mut text = "file,space,conversation,question,kind,sought,evidence,tokens".to_owned();
    for clue in Clue::ALL {
        _ = write!(text, ",{}", clue.name());
    }
    let views = files
        .iter()
        .flat_map(|file| file.views.iter().map(move |view| (file, view)));
    for (file, view) in views {
        for (conversation, questions) in view.conversations.iter().enumerate() {
            for (number, asked) in questions.iter().enumerate() {
                let of = format!("{},{},{conversation},{number}", file.name, view.name);
                asked.found.iter().for_each(|turn| {
                    _ = write!(text, "\n{of},{}", line(asked, turn));
                });
            }
        }
    }
    text + "\n"
}

fn line(asked: &Asked, turn: &Candidate) -> String {
    let (kind, evidence) = (asked.kind, u8::from(turn.is_evidence));
    let clues = turn.clues.iter().map(|clue| format!(",{clue}"));
    let clues: String = clues.collect();
    format!(
        "{kind:?},{},{evidence},{}{clues}",
        asked.sought, turn.tokens
    )
}
