//! Conversations as a space: indexed as the constructor does it, searched as the retriever does it.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Result;
use chrono::DateTime;
use chrono_tz::Tz;
use memfleet_domain::embedding::{PassageVectors, TokenVectors};
use memfleet_domain::ids::{ExternalId, SessionId, SpaceId, Speaker, TenantId, TurnId};
use memfleet_domain::scope::Scope;
use memfleet_domain::turn::Role;
use memfleet_evaluation::{Conversation, Question, Turn};
use memfleet_language::{Analyzer, Language};
use memfleet_ports::feed::{Change, IndexedPassage, IndexedTurn};
use memfleet_ports::filter::TurnFilter;
use memfleet_retrieval::document::{Document, documents};
use memfleet_retrieval::{Plan, Searched, SpaceIndex, Weights, candidates, rank};

use crate::cache::VectorCache;

/// A space and the questions asked of it.
pub struct Space {
    /// Its index.
    pub index: SpaceIndex,
    /// By the number of a passage.
    tokens: Vec<Arc<PassageVectors>>,
    /// Places of turns; evidence of `questions` is in the same terms.
    places: HashMap<TurnId, usize>,
    /// The questions with their vectors.
    pub questions: Vec<(Question, Arc<PassageVectors>)>,
    analyzer: Analyzer,
}

/// What a question found.
pub struct Answer {
    /// Places of turns, best first.
    pub found: Vec<usize>,
    /// Turns in the second stage.
    pub candidates: usize,
    /// Passages whose token vectors were read.
    pub passages: usize,
}

impl Space {
    /// Indexes the conversations one after the other.
    pub fn build(conversations: &[&Conversation], cache: &mut VectorCache) -> Result<Self> {
        let mut space = Self {
            index: SpaceIndex::new(),
            tokens: Vec::new(),
            places: HashMap::new(),
            questions: Vec::new(),
            analyzer: Analyzer::new(Language::English),
        };
        for conversation in conversations {
            space.add(conversation, cache)?;
        }
        Ok(space)
    }

    fn add(&mut self, conversation: &Conversation, cache: &mut VectorCache) -> Result<()> {
        let first = self.places.len();
        let pieces: Vec<Vec<Document>> = conversation
            .turns
            .iter()
            .map(|turn| documents(&turn.speaker, &turn.searchable_text(), &self.analyzer))
            .collect();
        let texts: Vec<String> = pieces
            .iter()
            .flatten()
            .map(|document| document.text.clone())
            .collect();
        let mut vectors = cache.vectors(&texts)?.into_iter();
        for (place, (turn, documents)) in conversation.turns.iter().zip(pieces).enumerate() {
            let vectors: Vec<Arc<PassageVectors>> =
                vectors.by_ref().take(documents.len()).collect();
            let indexed =
                self.indexed(&conversation.id, turn, first + place, documents, &vectors)?;
            self.places.insert(indexed.id, first + place);
            self.tokens.extend(vectors);
            self.index.apply(Change::Stored(Box::new(indexed)));
        }
        let texts: Vec<String> = conversation
            .questions
            .iter()
            .map(|question| question.text.clone())
            .collect();
        for (question, vectors) in conversation.questions.iter().zip(cache.vectors(&texts)?) {
            let evidence = question
                .evidence
                .iter()
                .map(|place| first + place)
                .collect();
            self.questions.push((
                Question {
                    evidence,
                    ..question.clone()
                },
                vectors,
            ));
        }
        Ok(())
    }

    fn indexed(
        &self,
        conversation: &str,
        turn: &Turn,
        place: usize,
        documents: Vec<Document>,
        vectors: &[Arc<PassageVectors>],
    ) -> Result<IndexedTurn> {
        let session = SessionId::new(format!("{conversation} {}", turn.session))?;
        let scope = Scope {
            tenant: TenantId::new("default")?,
            space: SpaceId::new("evaluation")?,
        };
        let passages = documents
            .into_iter()
            .zip(vectors)
            .map(|(document, vectors)| {
                let mut pieces = vectors.tokens.pieces.clone();
                pieces.sort_unstable();
                pieces.dedup();
                IndexedPassage {
                    length: document.passage.end - document.passage.start,
                    terms: document.passage.terms,
                    features: document.passage.features,
                    sentence: Some(vectors.sentence.clone()),
                    pieces,
                }
            });
        Ok(IndexedTurn {
            id: TurnId::of_external(&scope, &session, &ExternalId::new(place.to_string())?),
            order: (place as u64, 0),
            speaker: Speaker::new(turn.speaker.clone())?,
            role: role(turn.role),
            event_time: turn.time,
            recorded_at: DateTime::UNIX_EPOCH,
            replaced_at: None,
            first_passage: self.tokens.len() as u32,
            passages: passages.collect(),
            session,
        })
    }

    /// Searches for what answers a question.
    pub fn ask(
        &self,
        question: &Question,
        vectors: &Arc<PassageVectors>,
        weights: &Weights,
        limit: usize,
    ) -> Answer {
        let eligible = self.index.eligible(&TurnFilter::default(), None);
        let spaces = [Searched {
            index: &self.index,
            eligible,
        }];
        let plan = Plan::new(
            &question.text,
            Some(PassageVectors::clone(vectors)),
            &spaces,
            &self.analyzer,
            None,
            Tz::UTC,
        );
        let candidates = candidates(&spaces, &plan, weights);
        let tokens: Vec<Vec<Option<Arc<TokenVectors>>>> = candidates
            .needed()
            .iter()
            .map(|numbers| self.token_vectors(numbers))
            .collect();
        let ranked = rank(&spaces, &plan, &candidates, &tokens, weights, limit);
        Answer {
            found: ranked
                .iter()
                .map(|ranked| self.places[&ranked.turn])
                .collect(),
            candidates: candidates.len(),
            passages: tokens.iter().map(Vec::len).sum(),
        }
    }

    fn token_vectors(&self, numbers: &[u32]) -> Vec<Option<Arc<TokenVectors>>> {
        numbers
            .iter()
            .map(|&number| Some(Arc::new(self.tokens[number as usize].tokens.clone())))
            .collect()
    }
}

fn role(role: memfleet_evaluation::Role) -> Role {
    match role {
        memfleet_evaluation::Role::User => Role::User,
        memfleet_evaluation::Role::Assistant => Role::Assistant,
        memfleet_evaluation::Role::System => Role::System,
        memfleet_evaluation::Role::Tool => Role::Tool,
    }
}
