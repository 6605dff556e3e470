//! A node that notes what it is asked and answers from a script: the space `slow` never answers, `missing` does not exist.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::{StreamExt, stream};
use memfleet_domain::assembly::{Gate, GateOutcome, Reason};
use memfleet_domain::derivation::{DecidedMemory, Derivation};
use memfleet_domain::embedding::EmbeddingSpace;
use memfleet_domain::ids::{BatchId, ChangeId, SessionId, SpaceId, Speaker, TurnId};
use memfleet_domain::ingestion::{Batch, Receipt, TurnReceipt, TurnState};
use memfleet_domain::model_profile::ModelProfile;
use memfleet_domain::space::{LegalHold, Session, Space, SpaceSettings};
use memfleet_domain::turn::{AcceptedTurn, Content, Role, Trust, Turn};
use memfleet_domain::{Fault, FaultKind, Timestamp};
use memfleet_ports::assembly::{
    AssembleRequest, Assembled, Assembly, Counted, GateEntry, GateRequest, Gated, RenderRequest,
};
use memfleet_ports::context::Context;
use memfleet_ports::erasure::Erased;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::knowledge::{Rebuilding, Recorded};
use memfleet_ports::knowledge_api::{KnowledgeService, UpdateRequest};
use memfleet_ports::ledger::{Page, PageToken};
use memfleet_ports::maintenance::{GraphCheck, Maintenance, Part, Status};
use memfleet_ports::memory::{
    AnswerEnd, AnswerPart, AnswerRequest, AnsweringModel, Answers, Citation, Imported, Memory,
    Outcome, PageRequest, RecallRequest, Record, RememberRequest,
};
use memfleet_ports::queue::{DeadLetter, Depth};
use memfleet_ports::refresher::{ForgetReceipt, ForgetRequest, Naming, Refresher};
use memfleet_ports::retriever::{
    CandidateTrace, Found, Hit, Query, Retriever, SearchExplanation, SignalScore, StageRank,
};
use memfleet_ports::subject::{InSpace, Subject, SubjectForget, SubjectProgress, SubjectTotal};
use tokio::sync::Notify;
use tokio::time::Instant;

#[derive(Default)]
pub struct Node {
    /// What was asked, each with its tenant.
    pub asked: Mutex<Vec<(String, String)>>,
    /// Time that the last call had.
    pub budget: Mutex<Option<Duration>>,
    /// Told when a call to `slow` arrives, and when it is dropped.
    pub begun: Notify,
    pub dropped: Arc<Notify>,
}

/// Tells when the work that holds it is dropped.
struct Held(Arc<Notify>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl Node {
    /// Notes the call; fails or never answers where the script says so.
    async fn asked(&self, context: &Context, space: &SpaceId, what: String) -> Result<(), Fault> {
        self.note(context, what);
        match space.as_str() {
            "slow" => {
                let _held = Held(self.dropped.clone());
                self.begun.notify_one();
                std::future::pending().await
            }
            "missing" => Err(missing()),
            _ => Ok(()),
        }
    }

    pub fn note(&self, context: &Context, what: String) {
        *self.budget.lock().unwrap() =
            Some(context.deadline.saturating_duration_since(Instant::now()));
        self.asked
            .lock()
            .unwrap()
            .push((context.tenant.to_string(), what));
    }

    pub fn last(&self) -> (String, String) {
        self.asked.lock().unwrap().last().cloned().unwrap()
    }
}

pub fn missing() -> Fault {
    Fault::not_found("the space `missing`")
        .with("space", "missing")
        .retry_after(Duration::from_millis(20))
}

pub fn space(name: &str) -> SpaceId {
    SpaceId::new(name).unwrap()
}

pub fn instant() -> Timestamp {
    Timestamp::from_timestamp_micros(1_700_000_000_000_001).unwrap()
}

pub fn turn_id() -> TurnId {
    TurnId::from_bytes([7; 16])
}

pub fn batch() -> BatchId {
    BatchId::from_bytes([9; 16])
}

pub fn turn(text: &str) -> Turn {
    let accepted = AcceptedTurn {
        id: turn_id(),
        session: SessionId::new("s1").unwrap(),
        external_id: None,
        speaker: Speaker::new("Ada").unwrap(),
        role: Role::User,
        content: Content {
            text: text.into(),
            media: vec![],
        },
        event_time: None,
        recorded_at: instant(),
        metadata: [("k".to_owned(), "v".to_owned())].into(),
        trust: Trust::User,
        replaces: None,
        echoes: Vec::new(),
        place: None,
    };
    Turn {
        accepted,
        position: 3,
        replaced: None,
    }
}

pub fn receipt(index: usize) -> Receipt {
    let turn = TurnReceipt {
        id: turn_id(),
        state: TurnState::Queued,
        reason: None,
    };
    Receipt {
        batch: batch(),
        turns: vec![turn; index],
        duplicate: false,
    }
}

pub fn states() -> Vec<TurnReceipt> {
    let state = |state, reason: Option<&str>| TurnReceipt {
        id: turn_id(),
        state,
        reason: reason.map(Into::into),
    };
    vec![
        state(TurnState::Queued, None),
        state(TurnState::DeadLettered, Some("EXTERNAL_ID_CONFLICT: taken")),
    ]
}

pub fn progress() -> Vec<SubjectProgress> {
    let hold = LegalHold {
        since: instant(),
        reason: "case 7".into(),
    };
    let total = SubjectTotal {
        spaces: 2,
        turns: 1,
        held_turns: 3,
        ..SubjectTotal::default()
    };
    let gone = InSpace::Forgotten(ForgetReceipt::of(erased(), false));
    vec![
        SubjectProgress::Space(space("ada"), gone),
        SubjectProgress::Space(space("bob"), InSpace::Held { hold, turns: 3 }),
        SubjectProgress::Total(total),
    ]
}

pub fn records() -> Vec<Record> {
    let settings = SpaceSettings {
        language: Some("de".into()),
        ..Default::default()
    };
    vec![
        Record::Space(space("ada"), settings),
        Record::Turn(Box::new(turn("exported"))),
    ]
}

pub fn found() -> Found {
    let signal = SignalScore {
        signal: "maxsim_window".into(),
        value: 0.5,
        contribution: 0.25,
    };
    let hit = Hit {
        space: space("ada"),
        turn: turn("found"),
        score: 1.5,
        relevance: Some(0.25),
        passage: (1, 4),
        signals: vec![signal],
        neighbours: vec![turn("next to it")],
        facts: vec![crate::knowledge::stated()],
        outdated: Some(crate::knowledge::stated().id),
    };
    let rank = |stage: &'static str, score| StageRank {
        stage: stage.into(),
        rank: 3,
        score,
    };
    let candidate = CandidateTrace {
        space: space("ada"),
        turn: turn_id(),
        session: SessionId::new("s1").unwrap(),
        speaker: Speaker::new("Ada").unwrap(),
        excerpt: "found".into(),
        rank: 2,
        score: 1.5,
        relevance: Some(0.25),
        hit: Some(1),
        is_copy: false,
        sources: vec![rank("words", Some(7.5)), rank("day", None)],
        stages: vec![rank("late_interaction", Some(0.5))],
        signals: hit.signals.clone(),
    };
    let copy = CandidateTrace {
        hit: None,
        is_copy: true,
        relevance: None,
        ..candidate.clone()
    };
    Found {
        explanation: Some(SearchExplanation {
            candidates: 7,
            is_exhaustive: true,
            shown: vec![candidate, copy],
        }),
        hits: vec![hit],
        degraded: vec!["vectors: 1 turn is not embedded yet".into()],
        searched: 12,
        scorer: "late-interaction-1".into(),
        understood: Some("where does Mia live?".into()),
    }
}

pub fn answered() -> Vec<AnswerPart> {
    let citation = Citation {
        space: space("ada"),
        turn: turn_id(),
        session: SessionId::new("s1").unwrap(),
        speaker: Speaker::new("Ada").unwrap(),
        time: instant(),
        evidence: (2, 5),
        quote: "und".into(),
    };
    let end = AnswerEnd {
        outcome: Outcome::Answered,
        model: Some(AnsweringModel {
            model: "small".into(),
            prompt: "answer.v1".into(),
        }),
        degraded: vec!["facts: the store is away".into()],
        looked_at: 3,
        dropped_citations: 1,
        understood: Some("Where does Ada live?".into()),
        retries: 2,
        is_uncertain: true,
    };
    vec![
        AnswerPart::Text("In Oslo".into()),
        AnswerPart::Citation(Box::new(citation)),
        AnswerPart::End(end),
    ]
}

pub fn listed() -> Space {
    Space {
        id: space("ada"),
        settings: SpaceSettings::default(),
        hold: None,
        first_language: None,
        created_at: instant(),
        sessions: 1,
        turns: 2,
        last_turn_at: None,
    }
}

pub fn session() -> Session {
    Session {
        id: SessionId::new("s1").unwrap(),
        turns: 2,
        first_turn_at: instant(),
        last_turn_at: instant(),
    }
}

pub fn page<T>(item: T) -> Page<T> {
    Page {
        items: vec![item],
        next: Some(PageToken("next".into())),
    }
}

pub fn erased() -> Erased {
    Erased {
        turns: vec![turn_id()],
        passages: 1,
        ..Default::default()
    }
}

pub fn status() -> Status {
    let embedding_space = EmbeddingSpace {
        model: "m".into(),
        revision: "1".into(),
        recipe: "int8-1".into(),
        projection: "pca64-1".into(),
    };
    let parts = vec![Part {
        name: "store".into(),
        trouble: None,
        since: None,
    }];
    Status {
        version: "0.1.0".into(),
        embedding_space: Some(embedding_space),
        parts,
        queue: Depth {
            batches: 4,
            ..Default::default()
        },
    }
}

pub fn letter(context: &Context) -> DeadLetter {
    let scope = context.scope(&space("ada"));
    DeadLetter {
        acceptance: 5,
        batch: Batch {
            id: batch(),
            scope,
            turns: vec![turn("refused").accepted],
        },
        reason: "EXTERNAL_ID_CONFLICT: taken".into(),
        failed_at: instant(),
        attempts: 2,
    }
}

pub fn gated() -> Gated {
    let entry = GateEntry::new(Gate::Rules, GateOutcome::Skip, Reason::Pleasantry);
    Gated {
        pass: false,
        reason: entry.reason,
        gates: vec![entry],
    }
}

pub fn profile() -> ModelProfile {
    ModelProfile {
        name: "small-*".into(),
        window_tokens: Some(8_192),
        supports_tools: Some(false),
        ..ModelProfile::default()
    }
}

pub fn assembled() -> Assembled {
    Assembled {
        block: "Ada: hi".into(),
        tokens: 4,
        left_out: 1,
        ..Assembled::skipped(Reason::NothingFound)
    }
}

#[async_trait]
impl Memory for Node {
    async fn remember(
        &self,
        context: &Context,
        request: RememberRequest,
    ) -> Result<Receipt, Fault> {
        self.asked(context, &request.space, format!("{request:?}"))
            .await?;
        Ok(receipt(request.turns.len()))
    }

    async fn recall(&self, context: &Context, request: RecallRequest) -> Result<Found, Fault> {
        self.asked(context, &request.query.spaces[0], format!("{request:?}"))
            .await?;
        Ok(found())
    }

    async fn answer(
        &self,
        context: &Context,
        request: AnswerRequest,
    ) -> Result<Answers<AnswerPart>, Fault> {
        let space = &request.query.spaces[0];
        self.asked(context, space, format!("{request:?}")).await?;
        Ok(Box::pin(stream::iter(answered()).map(Ok)))
    }

    async fn get(
        &self,
        context: &Context,
        space: &SpaceId,
        ids: &[TurnId],
        wait_for: &[BatchId],
    ) -> Result<Vec<Turn>, Fault> {
        self.asked(context, space, format!("{ids:?} {wait_for:?}"))
            .await?;
        Ok(vec![turn("got")])
    }

    async fn list(
        &self,
        context: &Context,
        space: &SpaceId,
        filter: &TurnFilter,
        page_request: PageRequest,
        wait_for: &[BatchId],
    ) -> Result<Page<Turn>, Fault> {
        self.asked(
            context,
            space,
            format!("{filter:?} {page_request:?} {wait_for:?}"),
        )
        .await?;
        Ok(page(turn("listed")))
    }

    async fn history(
        &self,
        context: &Context,
        space: &SpaceId,
        id: TurnId,
    ) -> Result<Vec<Turn>, Fault> {
        self.asked(context, space, format!("{id:?}")).await?;
        Ok(vec![turn("old"), turn("new")])
    }

    async fn forget(
        &self,
        context: &Context,
        request: ForgetRequest,
    ) -> Result<ForgetReceipt, Fault> {
        self.asked(context, &request.space, format!("{request:?}"))
            .await?;
        Ok(ForgetReceipt::of(erased(), request.dry_run))
    }

    async fn forget_subject(
        &self,
        context: &Context,
        request: SubjectForget,
    ) -> Result<Answers<SubjectProgress>, Fault> {
        self.note(context, format!("{request:?}"));
        Ok(Box::pin(stream::iter(progress()).map(Ok)))
    }

    async fn watch(
        &self,
        context: &Context,
        space: &SpaceId,
        batch: BatchId,
    ) -> Result<Answers<TurnReceipt>, Fault> {
        self.note(context, format!("{batch:?}"));
        let states = stream::iter(states()).map(Ok);
        if space.as_str() == "slow" {
            let held = Held(self.dropped.clone());
            return Ok(Box::pin(states.chain(stream::pending()).inspect(
                move |_| {
                    let _ = &held;
                },
            )));
        }
        let failed = stream::iter((space.as_str() == "missing").then(|| Err(missing())));
        Ok(Box::pin(states.chain(failed)))
    }

    async fn export(
        &self,
        context: &Context,
        space: &SpaceId,
        filter: &TurnFilter,
    ) -> Result<Answers<Record>, Fault> {
        self.asked(context, space, format!("{filter:?}")).await?;
        Ok(Box::pin(stream::iter(records()).map(Ok)))
    }

    async fn export_subject(
        &self,
        context: &Context,
        subject: &Subject,
    ) -> Result<Answers<Record>, Fault> {
        self.note(context, format!("{subject:?}"));
        Ok(Box::pin(stream::iter(records()).map(Ok)))
    }

    async fn import(
        &self,
        context: &Context,
        space: &SpaceId,
        mut records: Answers<Record>,
    ) -> Result<Imported, Fault> {
        let _held = Held(self.dropped.clone());
        let mut accepted = 0;
        while let Some(record) = records.next().await {
            self.note(context, format!("{space} {:?}", record?));
            accepted += 1;
        }
        self.note(context, "the end".into());
        Ok(Imported {
            accepted,
            duplicates: 1,
            forgotten: 3,
            decided: 4,
            left_out: vec!["a part".into()],
            batches: imported_batches(),
        })
    }

    async fn put_space(
        &self,
        context: &Context,
        space: &SpaceId,
        settings: SpaceSettings,
    ) -> Result<Space, Fault> {
        self.asked(context, space, format!("{settings:?}")).await?;
        Ok(Space {
            settings,
            ..listed()
        })
    }

    async fn set_legal_hold(
        &self,
        context: &Context,
        space: &SpaceId,
        held: bool,
        reason: String,
    ) -> Result<Space, Fault> {
        self.asked(context, space, format!("{held} {reason}"))
            .await?;
        let hold = LegalHold {
            since: instant(),
            reason,
        };
        Ok(Space {
            hold: held.then_some(hold),
            ..listed()
        })
    }

    async fn spaces(
        &self,
        context: &Context,
        page_request: PageRequest,
    ) -> Result<Page<Space>, Fault> {
        self.note(context, format!("{page_request:?}"));
        Ok(page(listed()))
    }

    async fn sessions(
        &self,
        context: &Context,
        space: &SpaceId,
        page_request: PageRequest,
    ) -> Result<Page<Session>, Fault> {
        self.asked(context, space, format!("{page_request:?}"))
            .await?;
        Ok(page(session()))
    }
}

#[async_trait]
impl Assembly for Node {
    async fn assemble(
        &self,
        context: &Context,
        request: AssembleRequest,
    ) -> Result<Assembled, Fault> {
        self.asked(context, &request.query.spaces[0], format!("{request:?}"))
            .await?;
        Ok(assembled())
    }

    async fn count_tokens(
        &self,
        context: &Context,
        tokenizer: &str,
        texts: &[String],
    ) -> Result<Counted, Fault> {
        self.note(context, format!("{tokenizer} {texts:?}"));
        if tokenizer == "unknown" {
            return Err(Fault::new(
                FaultKind::FailedPrecondition,
                "TOKENIZER_UNKNOWN",
                "no such tokenizer",
            ));
        }
        Ok(Counted {
            counts: texts.iter().map(|text| text.len() as u32).collect(),
            ..Counted::default()
        })
    }

    async fn gate(&self, context: &Context, request: GateRequest) -> Result<Gated, Fault> {
        self.asked(context, &request.spaces[0], format!("{request:?}"))
            .await?;
        Ok(gated())
    }

    async fn render(&self, context: &Context, request: RenderRequest) -> Result<Assembled, Fault> {
        self.note(context, format!("{request:?}"));
        Ok(assembled())
    }

    async fn model_profiles(&self, context: &Context) -> Result<Vec<ModelProfile>, Fault> {
        self.note(context, "profiles".into());
        Ok(vec![profile()])
    }

    async fn put_model_profile(
        &self,
        context: &Context,
        profile: ModelProfile,
    ) -> Result<(ModelProfile, u32), Fault> {
        self.note(context, format!("{profile:?}"));
        Ok((profile, 2))
    }
}

#[async_trait]
impl Maintenance for Node {
    async fn status(&self, context: &Context) -> Result<Status, Fault> {
        self.note(context, "status".into());
        Ok(status())
    }

    async fn dead_letters(
        &self,
        context: &Context,
        space: Option<&SpaceId>,
        page_request: PageRequest,
    ) -> Result<Page<DeadLetter>, Fault> {
        self.note(context, format!("{space:?} {page_request:?}"));
        Ok(page(letter(context)))
    }

    async fn replay(
        &self,
        context: &Context,
        space: &SpaceId,
        acceptances: &[u64],
    ) -> Result<u64, Fault> {
        self.asked(context, space, format!("{acceptances:?}"))
            .await?;
        Ok(acceptances.len() as u64)
    }

    async fn rebuild(&self, context: &Context, space: &SpaceId) -> Result<Rebuilding, Fault> {
        self.asked(context, space, "rebuild".into()).await?;
        Ok(rebuilding())
    }

    async fn rebuilding(
        &self,
        context: &Context,
        space: &SpaceId,
    ) -> Result<Option<Rebuilding>, Fault> {
        self.asked(context, space, "rebuilding".into()).await?;
        Ok((space.as_str() != "idle").then(rebuilding))
    }

    async fn verify_graph(
        &self,
        context: &Context,
        space: &SpaceId,
        after: Option<&PageToken>,
    ) -> Result<GraphCheck, Fault> {
        self.asked(context, space, format!("verify {after:?}"))
            .await?;
        Ok(graph_check())
    }

    async fn rebuild_graph(
        &self,
        context: &Context,
        space: &SpaceId,
        after: Option<&PageToken>,
    ) -> Result<GraphCheck, Fault> {
        self.asked(context, space, format!("rebuild {after:?}"))
            .await?;
        Ok(graph_check())
    }
}

/// What a page of a graph is like.
pub fn graph_check() -> GraphCheck {
    GraphCheck {
        compared: 9,
        missing: 1,
        different: 2,
        surplus: 3,
        behind: 4,
        next: Some(PageToken("next".into())),
    }
}

/// How far a rebuild has come.
pub fn rebuilding() -> Rebuilding {
    Rebuilding {
        reached: 3,
        goal: 7,
        staged: 2,
    }
}

/// What the node says that an import came in.
pub fn imported_batches() -> Vec<BatchId> {
    [1, 2].map(|n| BatchId::from_bytes([n; 16])).into()
}

#[async_trait]
impl Retriever for Node {
    async fn search(&self, context: &Context, query: &Query) -> Result<Found, Fault> {
        // Answers as a retriever of the version before, which does not know the call.
        if query.vectors.is_some() && query.spaces[0].as_str() == "before" {
            let kind = FaultKind::FailedPrecondition;
            return Err(Fault::new(kind, "UNIMPLEMENTED", "no such call"));
        }
        let request = RecallRequest::from(query.clone());
        self.recall(context, request).await
    }
}

#[async_trait]
impl Refresher for Node {
    async fn forget(
        &self,
        context: &Context,
        request: &ForgetRequest,
    ) -> Result<ForgetReceipt, Fault> {
        Memory::forget(self, context, request.clone()).await
    }

    async fn correct(
        &self,
        context: &Context,
        request: &UpdateRequest,
    ) -> Result<Derivation, Fault> {
        self.update(context, request.clone()).await
    }

    async fn identify(
        &self,
        context: &Context,
        space: &SpaceId,
        namings: &[Naming],
    ) -> Result<ChangeId, Fault> {
        let change = ChangeId::from_bytes([8; 16]);
        self.asked(context, space, format!("{namings:?}")).await?;
        Ok(change)
    }

    async fn restore(
        &self,
        context: &Context,
        space: &SpaceId,
        memory: &DecidedMemory,
    ) -> Result<bool, Fault> {
        self.asked(context, space, format!("{memory:?}")).await?;
        Ok(true)
    }

    async fn revert(
        &self,
        context: &Context,
        space: &SpaceId,
        change: ChangeId,
    ) -> Result<Recorded, Fault> {
        KnowledgeService::revert(self, context, space, change).await
    }
}
