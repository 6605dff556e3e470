//! Gate 3 by the reader of turns: what a reply does not need stays out, in spaces of every size;
//! where the reader does not answer, the relevance of the search stands in.

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use memfleet_domain::Fault;
use memfleet_domain::assembly::{DropReason, Gate, GateMode, GateOutcome, Reason};
use memfleet_domain::statement::{RelationScores, Statement};
use memfleet_domain::turn::Role;
use memfleet_gateway::Gateway;
use memfleet_ports::assembly::{AssembleRequest, Assembled, Assembly, GateEntry};
use memfleet_ports::context::Context;
use memfleet_ports::memory::NewTurn;
use memfleet_ports::retriever::{Found, Query, Retriever};
use memfleet_ports::testing::SentenceReader;
use memfleet_ports::turn_reader::{
    NeedQuestion, PromptReading, ReaderAnswers, TurnComparison, TurnInContext, TurnReader,
};
use tokio::time::Instant;

use super::{assembled, kettle, message, prompted, user};
use crate::roles::{Node, acme, said};

/// Lines of one question to the reader.
const LINES_A_QUESTION: usize = 16;

/// A request under the shipped thresholds.
fn shipped(text: &str) -> AssembleRequest {
    let mut request = prompted(vec![user(text)]);
    let gating = &mut request.policy.gating;
    gating.mode = Some(GateMode::Always);
    (gating.relevance, gating.best_relevance) = (None, None);
    gating.needs = Some(true);
    request
}

/// Finds what the retriever finds, in a space of so many turns, each hit as relevant as it says.
struct RatedRetriever {
    retriever: Arc<dyn Retriever>,
    relevance: f32,
    searched: u64,
}

/// Relevance of a search that leaves needs as they are.
const NEUTRAL: f32 = 0.02;

/// The gateway of a node whose searches are of so many turns and find every turn as relevant.
fn rated(node: &Node, relevance: f32, searched: u64) -> Gateway {
    Gateway {
        retriever: Arc::new(RatedRetriever {
            retriever: node.gateway.retriever.clone(),
            relevance,
            searched,
        }),
        ..node.gateway.clone()
    }
}

/// Assembles by needs alone.
async fn by_needs(node: &Node, request: AssembleRequest) -> Assembled {
    let gateway = rated(node, NEUTRAL, 200);
    gateway.assemble(&acme(), request).await.unwrap()
}

/// Name of the scorer of needs that a search moved.
fn is_of_reader(scorer: &str) -> bool {
    scorer.starts_with(&format!("{}(", SentenceReader::NAME))
}

#[async_trait]
impl Retriever for RatedRetriever {
    async fn search(&self, context: &Context, query: &Query) -> Result<Found, Fault> {
        let mut found = self.retriever.search(context, query).await?;
        found.searched = self.searched;
        for hit in &mut found.hits {
            hit.relevance = Some(self.relevance);
        }
        Ok(found)
    }
}

fn last_gate(answer: &Assembled) -> &GateEntry {
    let gate = answer.gates.last().unwrap();
    assert_eq!(gate.gate, Gate::Relevance, "{answer:?}");
    gate
}

fn weather(count: usize) -> Vec<NewTurn> {
    let texts = (0..count).map(|day| format!("The weather of day {day} is fine"));
    texts.map(|text| said(&text)).collect()
}

#[tokio::test]
async fn amp_059_amp_060_an_unneeded_hit_is_dropped_by_name_in_a_space_of_any_size() {
    let node = kettle().await;
    for turns in [3, 300] {
        if turns == 300 {
            node.told("ada", weather(297)).await;
        }
        let answer = by_needs(&node, shipped("The kettle?")).await;
        assert!(answer.block.contains("kettle broke"), "{answer:?}");
        assert!(!answer.block.contains("weather"), "{answer:?}");
        let dropped: Vec<_> = answer.dropped.iter().collect();
        assert!(!dropped.is_empty());
        for dropped in dropped {
            assert_eq!(dropped.reason, DropReason::BelowThreshold);
            assert!(dropped.relevance.is_some_and(|it| it < 1e-5));
        }
        let gate = last_gate(&answer);
        assert_eq!(
            (gate.outcome, gate.passed),
            (GateOutcome::Pass, 2),
            "{turns}"
        );
        assert!(gate.best_score > Some(0.99), "{gate:?}");
        assert!(is_of_reader(&gate.version), "{gate:?}");
        assert_eq!(answer.versions["scorer"], gate.version);
        assert!(answer.degraded.is_empty(), "{:?}", answer.degraded);
    }
}

#[tokio::test]
async fn amp_059_amp_095_where_nothing_is_needed_nothing_is_injected_in_a_space_of_any_size() {
    let node = kettle().await;
    for turns in [3, 300] {
        if turns == 300 {
            node.told("ada", weather(297)).await;
        }
        let answer = by_needs(&node, shipped("A lemonade recipe, please")).await;
        assert_eq!(answer.reason, Some(Reason::BelowThreshold), "{turns}");
        assert!(answer.block.is_empty() && answer.items.is_empty());
        let gate = last_gate(&answer);
        assert_eq!(gate.outcome, GateOutcome::Skip);
        let names = gate.bounds.iter().map(|bound| (&*bound.name, bound.met));
        let expected = [
            ("gating.best_relevance", false),
            ("gating.relevance", false),
        ];
        assert_eq!(names.collect::<Vec<_>>(), expected);
        assert_eq!(gate.threshold, Some(gate.bounds[0].bound));
    }
}

#[tokio::test]
async fn amp_059_needs_are_told_in_another_language() {
    let node = Node::new().await;
    let texts = ["Мой чайник сломался в субботу", "Сегодня хорошая погода"];
    node.told("ada", texts.map(said).to_vec()).await;
    let answer = by_needs(&node, shipped("Где чайник?")).await;
    assert!(answer.block.contains("чайник"), "{answer:?}");
    assert!(!answer.block.contains("погода"), "{answer:?}");
    let answer = by_needs(&node, shipped("Напиши стихи")).await;
    assert_eq!(answer.reason, Some(Reason::BelowThreshold));
}

#[tokio::test]
async fn amp_059_thresholds_of_a_policy_count_as_probabilities() {
    let node = kettle().await;
    // The first turn has both words, the third one of them.
    let asked = |relevance, best_relevance| {
        let mut request = shipped("The kettle broke?");
        let gating = &mut request.policy.gating;
        (gating.relevance, gating.best_relevance) = (relevance, best_relevance);
        by_needs(&node, request)
    };
    assert_eq!(asked(Some(0.5), None).await.items.len(), 2);
    assert_eq!(asked(Some(0.51), None).await.items.len(), 1);
    assert_eq!(asked(Some(0.5), Some(0.99)).await.items.len(), 2);
    let mut request = shipped("The kettle today?");
    request.policy.gating.best_relevance = Some(0.51);
    let answer = by_needs(&node, request).await;
    assert_eq!(answer.reason, Some(Reason::BelowThreshold));
    let bound = &last_gate(&answer).bounds[0];
    assert_eq!((bound.value, bound.bound), (0.5, 0.51));
}

#[tokio::test]
async fn amp_060_a_prompt_that_names_a_speaker_is_judged_by_the_relevance_of_the_search() {
    let node = kettle().await;
    for (relevance, injects) in [(0.019, false), (0.02, true)] {
        let gateway = rated(&node, relevance, 200);
        let request = shipped("Did Ada sell a thing?");
        let answer = gateway.assemble(&acme(), request).await.unwrap();
        assert_eq!(!answer.block.is_empty(), injects, "{answer:?}");
        assert!(!is_of_reader(&last_gate(&answer).version));
        assert!(answer.degraded.is_empty(), "{:?}", answer.degraded);
    }
    assert_eq!(node.reader.asked(), 0);
}

#[tokio::test]
async fn amp_059_the_relevance_of_the_search_moves_the_need() {
    let node = kettle().await;
    let asked = |relevance| {
        let gateway = rated(&node, relevance, 3);
        let mut request = shipped("The kettle today?");
        request.policy.gating.relevance = Some(0.6);
        async move { gateway.assemble(&acme(), request).await.unwrap() }
    };
    assert!(asked(NEUTRAL).await.items.is_empty());
    assert_eq!(asked(0.2).await.items.len(), 2);
}

#[tokio::test]
async fn a_reader_is_not_asked_where_no_threshold_counts() {
    let node = kettle().await;
    let answer = assembled(&node, prompted(vec![user("A lemonade recipe, please")])).await;
    assert_eq!(answer.items.len(), 3, "{answer:?}");
    assert_eq!(node.reader.asked(), 0);
    assert_eq!(last_gate(&answer).reason, Reason::SwitchedOff);
}

#[tokio::test]
async fn needs_are_asked_for_by_a_policy_alone() {
    let node = kettle().await;
    let mut request = shipped("The kettle?");
    request.policy.gating.needs = None;
    let answer = node.gateway.assemble(&acme(), request).await.unwrap();
    assert!(answer.degraded.is_empty() && !is_of_reader(&last_gate(&answer).version));
    assert_eq!(node.reader.asked(), 0);
}

#[tokio::test]
async fn amp_059_without_a_reader_the_relevance_of_the_search_stands_in_and_the_answer_says_so() {
    let node = kettle().await;
    node.reader.set_missing(true);
    for (relevance, searched, least, injects) in [
        (0.019, 200, 0.02, false),
        (0.02, 200, 0.02, true),
        (0.012, 199, 0.0125, false),
        (0.0125, 8, 0.0125, true),
        (0.0, 7, 0.0, true),
    ] {
        let gateway = rated(&node, relevance, searched);
        let answer = gateway.assemble(&acme(), shipped("The kettle?")).await;
        let answer = answer.unwrap();
        let case = format!("{relevance} of {searched}: {:?}", answer.gates);
        assert_eq!(!answer.block.is_empty(), injects, "{case}");
        let [degraded] = &answer.degraded[..] else {
            panic!("{:?}", answer.degraded);
        };
        assert!(
            degraded.starts_with("needs: the reader of turns"),
            "{degraded}"
        );
        let gate = last_gate(&answer);
        assert!(!is_of_reader(&gate.version), "{case}");
        assert_eq!(Some(gate.bounds[0].bound), Some(least), "{case}");
    }
}

/// Reader that answers the first questions as another does, and never the rest.
struct HangingReader {
    reader: SentenceReader,
    answers: Mutex<usize>,
}

impl HangingReader {
    fn after(answers: usize) -> Arc<Self> {
        Arc::new(Self {
            reader: SentenceReader::default(),
            answers: Mutex::new(answers),
        })
    }
}

#[async_trait]
impl TurnReader for HangingReader {
    async fn statements(
        &self,
        _: Vec<TurnInContext>,
    ) -> Result<ReaderAnswers<Vec<Statement>>, Fault> {
        pending().await
    }

    async fn relations(
        &self,
        _: Vec<TurnComparison>,
    ) -> Result<ReaderAnswers<Vec<RelationScores>>, Fault> {
        pending().await
    }

    async fn needs(&self, question: NeedQuestion) -> Result<PromptReading, Fault> {
        let left = {
            let mut answers = self.answers.lock().unwrap();
            let left = *answers;
            *answers = left.saturating_sub(1);
            left
        };
        match left {
            0 => pending().await,
            _ => self.reader.needs(question).await,
        }
    }
}

/// Asks by a reader that answers so many questions, and checks that the answer comes in time.
async fn asked_in_time(node: &Node, answers: usize, text: &str) -> Assembled {
    let gateway = Gateway {
        reader: HangingReader::after(answers),
        ..rated(node, NEUTRAL, 33)
    };
    let mut request = shipped(text);
    request.policy.failure.deadline_ms = Some(2_000);
    let began = Instant::now();
    let answer = gateway.assemble(&acme(), request).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(2));
    answer
}

#[tokio::test]
async fn amp_094_a_reader_that_hangs_costs_no_assembly_its_deadline() {
    let node = kettle().await;
    let answer = asked_in_time(&node, 0, "The kettle?").await;
    assert!(answer.block.contains("kettle broke"), "{answer:?}");
    let [degraded] = &answer.degraded[..] else {
        panic!("{:?}", answer.degraded);
    };
    assert!(degraded.starts_with("needs: "), "{degraded}");
}

#[tokio::test]
async fn turns_that_were_not_read_in_time_stay_only_beside_one_that_is_needed() {
    let node = kettle().await;
    node.told("ada", weather(30)).await;
    let answer = asked_in_time(&node, 1, "The kettle?").await;
    assert!(answer.block.contains("kettle broke"), "{answer:?}");
    let unread = 33 - LINES_A_QUESTION;
    let told = format!("needs: {unread} of 33 turns were not read in time");
    assert_eq!(answer.degraded, [told]);
    assert_eq!(answer.items.len(), 2 + unread, "{answer:?}");
    assert!(is_of_reader(&answer.versions["scorer"]));

    let answer = asked_in_time(&node, 1, "A lemonade recipe, please").await;
    assert_eq!(answer.reason, Some(Reason::BelowThreshold), "{answer:?}");
    assert!(answer.items.is_empty());
}

/// Reader that keeps what it was asked.
#[derive(Default)]
struct HeedingReader(Mutex<Vec<NeedQuestion>>);

#[async_trait]
impl TurnReader for HeedingReader {
    async fn statements(
        &self,
        _: Vec<TurnInContext>,
    ) -> Result<ReaderAnswers<Vec<Statement>>, Fault> {
        pending().await
    }

    async fn relations(
        &self,
        _: Vec<TurnComparison>,
    ) -> Result<ReaderAnswers<Vec<RelationScores>>, Fault> {
        pending().await
    }

    async fn needs(&self, question: NeedQuestion) -> Result<PromptReading, Fault> {
        self.0.lock().unwrap().push(question.clone());
        SentenceReader::default().needs(question).await
    }
}

#[tokio::test]
async fn the_reader_has_the_prompt_the_words_before_it_and_who_said_each_turn() {
    let node = kettle().await;
    let reply = NewTurn {
        role: Role::Assistant,
        ..said("A kettle of steel lasts")
    };
    node.told("ada", vec![reply]).await;
    let reader = Arc::new(HeedingReader::default());
    let gateway = Gateway {
        reader: reader.clone(),
        ..node.gateway.clone()
    };
    let messages = vec![
        message(Role::System, "Be brief."),
        user("It broke again"),
        message(Role::Assistant, "Oh no."),
        user("My"),
        user("kettle"),
    ];
    let request = AssembleRequest {
        prompt: prompted(messages).prompt,
        ..shipped("")
    };
    gateway.assemble(&acme(), request).await.unwrap();
    let asked = reader.0.lock().unwrap();
    let [question] = &asked[..] else {
        panic!("{asked:?}");
    };
    assert_eq!(question.prompt, "My\nkettle");
    assert_eq!(question.before, "User: It broke again Assistant: Oh no.");
    let of = |text: &str| question.lines.iter().find(|line| line.text == text);
    let [ada, assistant] = ["The weather is fine", "A kettle of steel lasts"].map(of);
    assert!(!ada.unwrap().is_assistant && assistant.unwrap().is_assistant);
    assert_eq!(ada.unwrap().speaker, "Ada");
}
