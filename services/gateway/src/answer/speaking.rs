//! A model's answer on its way. It is passed on word by word; what it cites is what it was shown. Where nothing comes of it before its
//! first word, quotations answer in its place. Dropping it ends the model's call.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use memfleet_domain::Fault;
use memfleet_domain::ids::TenantId;
use memfleet_ports::context::Context;
use memfleet_ports::language_model::{Agent, Call, ModelFault, Piece, Pieces};
use memfleet_ports::memory::{AnswerEnd, AnswerPart, AnsweringModel, Answers, Outcome};
use memfleet_prompts::answer::{Citations, Part, Question};
use memfleet_prompts::{Adviser, Template};
use tokio::time::Instant;

use super::look::{Look, citation};

/// Part of the caller's time that is kept: for quotations, or to say that an answer is cut short …
const RESERVE: Duration = Duration::from_secs(2);
/// … unless it is more than this part of all that is left.
const RESERVED_PART: u32 = 4;

/// How far an answer has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// The model said nothing.
    Silent,
    /// It said something, and no word of it went out.
    Held,
    /// Words of it went out.
    Spoken,
    /// Nothing more comes.
    Ended,
}

/// An answer on its way.
pub struct Speaking {
    author: Adviser,
    tenant: TenantId,
    call: Call,
    look: Arc<Look>,
    /// Places of the hits that the model is shown.
    shown: Vec<usize>,
    /// Whether nobody else may answer.
    is_demanded: bool,
    /// The model's words, once they begin.
    pieces: Option<Pieces>,
    citations: Citations,
    /// What goes out next.
    ready: VecDeque<Result<AnswerPart, Fault>>,
    stage: Stage,
    has_cited: bool,
    outcome: Outcome,
}

impl Speaking {
    /// An answer from these hits.
    pub fn new(
        author: Adviser,
        context: &Context,
        look: Arc<Look>,
        shown: Vec<usize>,
        is_demanded: bool,
    ) -> Self {
        let (turns, derived) = (look.turns(&shown), look.derived(&shown));
        let question = Question {
            question: &look.question,
            now: look.asked_at,
            turns: &turns,
            derived: &derived,
        };
        let left = context.deadline.saturating_duration_since(Instant::now());
        let deadline = context.deadline - RESERVE.min(left / RESERVED_PART);
        Self {
            call: author.press.question(&question, deadline),
            citations: Citations::of(&turns),
            author,
            tenant: context.tenant.clone(),
            look,
            shown,
            is_demanded,
            pieces: None,
            ready: VecDeque::new(),
            stage: Stage::Silent,
            has_cited: false,
            outcome: Outcome::Answered,
        }
    }

    /// Its parts as they come.
    pub fn parts(self) -> Answers<AnswerPart> {
        stream::unfold(self, |mut speaking| async {
            let part = speaking.next().await?;
            Some((part, speaking))
        })
        .boxed()
    }

    async fn next(&mut self) -> Option<Result<AnswerPart, Fault>> {
        loop {
            if let Some(part) = self.ready.pop_front() {
                return Some(part);
            }
            if self.stage == Stage::Ended {
                return None;
            }
            match self.piece().await {
                Ok(Piece::Text(text)) => {
                    if !text.trim().is_empty() {
                        self.stage = self.stage.max(Stage::Held);
                    }
                    let parts = self.citations.push(&text);
                    self.pass_on(parts);
                }
                Ok(Piece::End { model, .. }) if self.stage > Stage::Silent => {
                    let parts = self.citations.finish();
                    self.pass_on(parts);
                    let unproven = (self.outcome == Outcome::Answered && !self.has_cited)
                        .then(|| "citations: the answer names no turn that was shown".to_owned());
                    self.end(&model, unproven);
                }
                Ok(Piece::End { .. }) => {
                    self.fail(&ModelFault::Garbage("it is empty".into())).await;
                }
                Err(fault) => self.fail(&fault).await,
            }
        }
    }

    async fn piece(&mut self) -> Result<Piece, ModelFault> {
        let pieces = match &mut self.pieces {
            Some(pieces) => pieces,
            None => {
                let opened = self.author.model.stream(&self.tenant, &self.call).await?;
                self.pieces.insert(opened)
            }
        };
        let cut_off = || Err(ModelFault::Garbage("it was cut off".into()));
        pieces.next().await.unwrap_or_else(cut_off)
    }

    fn pass_on(&mut self, parts: Vec<Part>) {
        for part in parts {
            match part {
                Part::Text(text) => {
                    self.stage = Stage::Spoken;
                    self.ready.push_back(Ok(AnswerPart::Text(text)));
                }
                Part::Cites(turn) => {
                    let mut shown = self.shown.iter().map(|place| &self.look.found.hits[*place]);
                    let hit = shown.find(|hit| hit.turn.accepted.id == turn);
                    let cited = hit.map(|hit| Ok(citation(hit, (0, 0))));
                    self.has_cited |= cited.is_some();
                    self.ready.extend(cited);
                }
                Part::Abstains => self.outcome = Outcome::Abstained,
            }
        }
    }

    /// The model says no more than this.
    async fn fail(&mut self, fault: &ModelFault) {
        tracing::debug!(cause = fault.cause(), "the model did not answer a question");
        if self.stage == Stage::Spoken {
            let name = self.author.model.name(Agent::Answer);
            let parts = self.citations.finish();
            self.pass_on(parts);
            let short = format!("language model: {fault}; the answer is cut short");
            return self.end(&name, Some(short));
        }
        self.stage = Stage::Ended;
        if self.is_demanded {
            return self.ready.push_back(Err(fault.clone().into()));
        }
        let instead = format!("language model: {fault}; answered by quotations");
        let parts = self.look.by_quotations().await.into_iter();
        self.ready
            .extend(parts.map(|part| Ok(with(part, &instead))));
    }

    fn end(&mut self, model: &str, degraded: Option<String>) {
        self.stage = Stage::Ended;
        self.pieces = None;
        let missing = self.look.found.degraded.iter().cloned();
        self.ready.push_back(Ok(AnswerPart::End(AnswerEnd {
            outcome: self.outcome,
            model: Some(AnsweringModel {
                model: model.to_owned(),
                prompt: Question::ID.to_string(),
            }),
            degraded: missing.chain(degraded).collect(),
            looked_at: self.shown.len() as u32,
            dropped_citations: self.citations.unknown,
            understood: self.look.found.understood.clone(),
            retries: self.look.retries,
            is_uncertain: false,
        })));
    }
}

/// The end with what else was missing.
fn with(part: AnswerPart, missing: &str) -> AnswerPart {
    match part {
        AnswerPart::End(mut end) => {
            end.degraded.push(missing.to_owned());
            AnswerPart::End(end)
        }
        part => part,
    }
}
