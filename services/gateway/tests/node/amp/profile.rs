//! The section *who this is*: statements of the person who speaks, whatever the prompt is.

mod away;

use std::sync::Arc;

use async_trait::async_trait;
use memfleet_assembly::{Nonce, Template, parse};
use memfleet_domain::assembly::{Decision, FailurePolicy, GateMode, Granularity, Reason, Strategy};
use memfleet_domain::derivation::{Body, Derivation, Origin, Status};
use memfleet_domain::ids::{ChangeId, ExchangeName, Speaker};
use memfleet_domain::policy::Policy;
use memfleet_domain::statement::{StatementKind, StatementOwner};
use memfleet_domain::turn::Role;
use memfleet_domain::{Fault, FaultKind};
use memfleet_gateway::Gateway;
use memfleet_ports::assembly::{AssembleRequest, Assembled, AssembledItem, Assembly};
use memfleet_ports::conformance::knowledge::{closing, conflict, deriving, fact, statement};
use memfleet_ports::conformance::samples::instant;
use memfleet_ports::context::Context;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::knowledge::{Applied, Knowledge, Work};
use memfleet_ports::ledger::Ledger;
use memfleet_ports::memory::{Memory, NewTurn};
use memfleet_ports::policies::Policies;
use memfleet_ports::refresher::ForgetRequest;
use memfleet_ports::retriever::{Found, Query, Retriever};

use super::{assembled, prompted, said_in, session, user};
use crate::roles::{Node, acme, space};
use away::AwayKnowledge;

/// What somebody said, with what the reader makes of it.
struct Stated {
    by: &'static str,
    words: &'static str,
    keep: f32,
    kind: StatementKind,
    owner: StatementOwner,
}

/// A lasting statement about the speaker.
fn state(by: &'static str, words: &'static str, keep: f32) -> Stated {
    Stated {
        by,
        words,
        keep,
        kind: StatementKind::State,
        owner: StatementOwner::Speaker,
    }
}

fn speaker(name: &str) -> Speaker {
    Speaker::new(name).unwrap()
}

async fn apply(node: &Node, name: &str, work: Work) {
    let scope = acme().scope(&space(name));
    let applied = node.store.apply(&scope, work).await.unwrap();
    assert_ne!(applied, Applied::Stale);
}

/// Remembers a turn for each statement, in session `monday` of a space, a second apart; the facts.
async fn stating(node: &Node, name: &str, stated: &[Stated]) -> Vec<Derivation> {
    let turns = stated.iter().enumerate().map(|(at, stated)| NewTurn {
        speaker: speaker(stated.by),
        event_time: Some(instant(at as i64)),
        ..said_in("monday", stated.words)
    });
    let receipt = node.told(name, turns.collect()).await;
    let scope = acme().scope(&space(name));
    let ids: Vec<_> = receipt.turns.iter().map(|turn| turn.id).collect();
    let turns = node.store.turns(&scope, &ids).await.unwrap();
    let mut facts = Vec::new();
    for (at, (turn, stated)) in turns.iter().zip(stated).enumerate() {
        let mut fact = statement(&turn.accepted, stated.words, instant(at as i64));
        if let Body::Fact(draft) = &mut fact.body
            && let Some(labels) = &mut draft.statement
        {
            (labels.keep, labels.kind, labels.owner) = (stated.keep, stated.kind, stated.owner);
        }
        facts.push(fact);
    }
    let rewrites = facts.iter().map(|fact| deriving(&[fact])).collect();
    let work = Work {
        rewrites,
        ..Work::default()
    };
    apply(node, name, work).await;
    node.clock.set(10_000);
    facts
}

/// A node on which Ada and Ben said who they are.
async fn known() -> (Node, Vec<Derivation>) {
    let node = Node::new().await;
    let stated = [
        state("Ada", "I live in Rome.", 0.7),
        state("Ada", "My cat is called Pixel.", 0.9),
        state("Ben", "I live in Oslo.", 0.95),
        state("Ada", "i live in Rome", 0.65),
    ];
    let facts = stating(&node, "ada", &stated).await;
    (node, facts)
}

/// A request that asks for the section of Ada; gate 3 lets nothing in.
fn asking(text: &str) -> AssembleRequest {
    let mut request = open(text);
    request.policy.gating.relevance = Some(1.0);
    request
}

/// A request that asks for the section of Ada, and for all memory that fits.
fn open(text: &str) -> AssembleRequest {
    let mut request = prompted(vec![user(text)]);
    request.policy.selection.profile = Some(true);
    request.speaker = Some(speaker("Ada"));
    request
}

/// The section as it stands in the block, which begins with it.
fn section(answer: &Assembled) -> &str {
    let profile = answer
        .profile
        .as_ref()
        .unwrap_or_else(|| panic!("{answer:?}"));
    let end = format!("</memory nonce=\"{}\">", profile.nonce);
    let at = answer.block.find(&end).unwrap() + end.len();
    &answer.block[..at]
}

/// The words of the lines of the section.
fn lines(answer: &Assembled) -> Vec<String> {
    let Some(profile) = &answer.profile else {
        return Vec::new();
    };
    let read = parse(&answer.block, Nonce::new(&profile.nonce), Template::turns());
    read.unwrap().into_iter().map(|line| line.text).collect()
}

fn of_profile(answer: &Assembled) -> Vec<&AssembledItem> {
    let items = answer.items.iter();
    items
        .filter(|item| item.granularity == Granularity::Profile)
        .collect()
}

const ADA: [&str; 2] = ["My cat is called Pixel.", "I live in Rome."];

#[tokio::test]
async fn a_prompt_that_gate_3_stops_has_the_section_and_tells_so() {
    let (node, facts) = known().await;
    let answer = assembled(&node, asking("Write my mum a birthday text")).await;
    assert_eq!(answer.decision, Decision::Injected);
    assert_eq!(answer.reason, Some(Reason::BelowThreshold));
    let nonce = &answer.profile.as_ref().unwrap().nonce;
    assert_eq!(
        answer.block,
        format!(
            "<memory nonce=\"{nonce}\">\nwho this is\nAda (2023-11-14): My cat is called Pixel.\n\
             Ada (2023-11-14): I live in Rome.\n</memory nonce=\"{nonce}\">"
        )
    );
    assert_eq!(answer.edits[0].text.trim(), answer.block);
    assert_eq!(answer.items.len(), 2);
    for (item, fact) in of_profile(&answer).into_iter().zip([&facts[1], &facts[0]]) {
        assert_eq!(item.turn(), Some(fact.turns[0]));
        assert_eq!(item.sources[1].id, fact.id.to_string());
        assert_eq!((item.valid, Some(item.score)), (fact.valid, fact.worth()));
    }
    let told = answer.profile.as_ref().unwrap();
    assert_eq!((&*told.speaker, told.tokens), ("Ada", answer.tokens));
    assert!(told.tokens <= 150 && answer.budget.added_tokens >= told.tokens);
    assert!(answer.degraded.is_empty(), "{:?}", answer.degraded);
    let kept = &node.gateway.injections;
    let kept = kept.get(&acme().tenant, answer.injection.unwrap()).await;
    let kept = kept.unwrap().unwrap();
    assert_eq!(kept.turns.len(), 2);
    assert!(!kept.record.contains("Ada") && !kept.record.contains("Pixel"));
}

#[tokio::test]
async fn the_section_is_the_same_whatever_the_prompt_is_and_begins_the_block() {
    let (node, _) = known().await;
    let first = assembled(&node, asking("Write my mum a birthday text")).await;
    let found = assembled(&node, open("Where does Ben live?")).await;
    assert!(found.block.len() > section(&found).len(), "{}", found.block);
    assert_eq!(section(&found), section(&first));
    assert_eq!(found.reason, None);
    let (own, other) = (&found.profile.as_ref().unwrap().nonce, &found.nonce);
    assert!(!other.is_empty() && own != other);
    let rest = parse(&found.block, Nonce::new(other), Template::turns()).unwrap();
    assert_eq!(rest.len() + 2, found.items.len());
    // Another conversation, a later day, a smaller budget for the rest, another turn without facts.
    node.clock.set(90_000);
    node.told("ada", vec![said_in("tuesday", "The weather is fine.")])
        .await;
    let mut later = open("What is my cat called?");
    later.query.session = Some(session("wednesday"));
    later.query.now = Some(instant(80_000));
    later.policy.budget.max_tokens = Some(300);
    let later = assembled(&node, later).await;
    assert_eq!(section(&later), section(&first));
}

#[tokio::test]
async fn the_form_of_the_block_is_that_of_the_section() {
    let (node, _) = known().await;
    let mut plain = asking("Write my mum a birthday text");
    plain.policy.format.trust = Some(memfleet_domain::assembly::TrustMode::Plain);
    plain.policy.format.template = Some("cited".to_owned());
    let answer = assembled(&node, plain).await;
    assert!(
        answer
            .block
            .contains("\nwho this is\n[p1] Ada (2023-11-14): My cat is called Pixel.\n[p2] Ada")
    );
    assert_eq!(answer.items[0].citation_key, "p1");
    assert_eq!(answer.profile.unwrap().nonce, "");
}

#[tokio::test]
async fn lasting_statements_of_the_speaker_alone_are_in_it_those_of_callers_first() {
    use StatementKind::{Event, General, Hearsay, Instruction, Passing, Plan, Quote, State};
    use StatementOwner::{Addressee, Group, Person, Speaker as Own};

    let node = Node::new().await;
    let of = |kind, owner| Stated {
        kind,
        owner,
        ..state("Ada", "", 0.9)
    };
    let stated = [
        (of(Event, Own), "I broke my leg in May."),
        (of(Plan, Own), "I move to Oslo in June."),
        (of(Instruction, Own), "Call me Al."),
        (of(State, Group), "We have two children."),
        (of(Hearsay, Own), "They say that I snore."),
        (of(Quote, Own), "I am a pirate."),
        (of(Passing, Own), "I am tired."),
        (of(General, Own), "I think, therefore I am."),
        (of(State, Person), "My brother is a nurse."),
        (of(State, Addressee), "You are kind."),
    ];
    let stated = stated.map(|(stated, words)| Stated { words, ..stated });
    let facts = stating(&node, "ada", &stated).await;
    let scope = acme().scope(&space("ada"));
    let turn = node.store.turns(&scope, &facts[0].turns).await.unwrap();
    let mut by_model = fact(&turn[0].accepted, "Ada", "Rome", instant(5));
    let mut of_caller = fact(&turn[0].accepted, "Ada", "Bergen", instant(5));
    of_caller.origin = Origin::Corrected;
    by_model.change = ChangeId::of("derived", &[b"once more"]);
    of_caller.change = by_model.change;
    let work = Work {
        rewrites: vec![deriving(&[&by_model, &of_caller])],
        ..Work::default()
    };
    apply(&node, "ada", work).await;
    let answer = assembled(&node, asking("Write my mum a birthday text")).await;
    assert_eq!(
        lines(&answer),
        [
            "Ada lives in Bergen.",
            "I broke my leg in May.",
            "I move to Oslo in June.",
            "Call me Al.",
            "We have two children."
        ]
    );
}

#[tokio::test]
async fn a_statement_that_was_taken_back_leaves_and_changes_the_section() {
    let (node, facts) = known().await;
    let before = assembled(&node, asking("Write my mum a birthday text")).await;
    assert_eq!(lines(&before), ADA);
    let newer = stating(&node, "ada", &[state("Ada", "Oslo is my home now.", 0.8)]).await;
    for older in [&facts[0], &facts[3]] {
        let found = conflict(older, &newer[0]);
        let work = Work {
            found: vec![found.clone()],
            ..Work::default()
        };
        apply(&node, "ada", work).await;
        let mut closed = closing(older, &newer[0], 30);
        closed.revisions[0].derivation.valid.end = Some(instant(50));
        let work = Work {
            rewrites: vec![closed],
            settled: vec![(found.id, Status::Settled)],
            ..Work::default()
        };
        apply(&node, "ada", work).await;
    }
    let after = assembled(&node, asking("Write my mum a birthday text")).await;
    assert_eq!(
        lines(&after),
        ["My cat is called Pixel.", "Oslo is my home now."]
    );
    let nonce = |answer: &Assembled| answer.profile.as_ref().unwrap().nonce.clone();
    assert_ne!(nonce(&before), nonce(&after));
    // As of a day before it.
    let mut past = asking("Write my mum a birthday text");
    past.query.filter.as_of.happened_by = Some(instant(40));
    assert!(lines(&assembled(&node, past).await).contains(&"I live in Rome.".to_owned()));
}

#[tokio::test]
async fn statements_of_others_are_never_in_it_not_in_the_same_exchange_either() {
    let (node, _) = known().await;
    let asked = |name: Option<&str>| {
        let mut request = asking("Write my mum a birthday text");
        request.query.session = Some(session("today"));
        request.exchange = Some(ExchangeName::new("one").unwrap());
        request.speaker = name.map(speaker);
        request
    };
    let of_ada = assembled(&node, asked(Some("Ada"))).await;
    assert_eq!(lines(&of_ada), ADA);
    let again = assembled(&node, asked(Some("Ada"))).await;
    assert_eq!(again.gates[0].reason, Reason::Sticky);
    assert_eq!(
        (&again.block, &again.profile),
        (&of_ada.block, &of_ada.profile)
    );
    let of_ben = assembled(&node, asked(Some("Ben"))).await;
    assert_eq!(lines(&of_ben), ["I live in Oslo."]);
    for stranger in ["ada", "ADA", "The Ada", "Cleo"] {
        let answer = assembled(&node, asked(Some(stranger))).await;
        assert_eq!(
            (answer.block.as_str(), answer.profile),
            ("", None),
            "{stranger}"
        );
        assert_eq!(answer.decision, Decision::Skipped);
    }
}

#[tokio::test]
async fn the_one_user_of_the_session_speaks_where_nobody_is_named() {
    let (node, _) = known().await;
    let reply = NewTurn {
        speaker: speaker("Bot"),
        role: Role::Assistant,
        ..said_in("tuesday", "Hello!")
    };
    node.told("ada", vec![said_in("tuesday", "Hi there."), reply])
        .await;
    let asked = |name: Option<&str>| {
        let mut request = asking("Write my mum a birthday text");
        request.query.session = name.map(session);
        request.speaker = None;
        request
    };
    assert_eq!(lines(&assembled(&node, asked(Some("tuesday"))).await), ADA);
    for (name, problem) in [
        (
            Some("monday"),
            "profile: several users spoke in the session",
        ),
        (Some("new"), "profile: no user spoke in the session yet"),
        (None, "profile: "),
    ] {
        let answer = assembled(&node, asked(name)).await;
        assert_eq!(answer.profile, None);
        let told = answer.degraded.iter().any(|it| it.starts_with(problem));
        assert!(told, "{name:?}: {:?}", answer.degraded);
    }
}

#[tokio::test]
async fn the_section_is_within_its_tokens_and_within_the_whole_budget() {
    let (node, _) = known().await;
    let more = [
        state("Ada", "I work as a nurse in the children's hospital.", 0.85),
        state("Ada", "My brother Leo is two years younger than me.", 0.84),
        state("Ada", "I am allergic to almonds and to cats' hair.", 0.83),
    ];
    let told = stating(&node, "ada", &more).await;
    assert_eq!(told.len(), 3);
    let asked = async |most: Option<u32>, budget: u32| {
        let mut request = open("What is my cat called?");
        request.policy.budget.profile_tokens = most;
        request.policy.budget.max_tokens = Some(budget);
        assembled(&node, request).await
    };
    let whole = asked(None, 1_000).await;
    assert_eq!(lines(&whole).len(), 5);
    let tokens = whole.profile.as_ref().unwrap().tokens;
    let less = asked(Some(tokens - 12), 1_000).await;
    assert!((1..5).contains(&lines(&less).len()), "{less:?}");
    assert!(less.profile.as_ref().unwrap().tokens <= tokens - 12);
    assert!(less.items.len() > lines(&less).len());
    let small = asked(None, tokens - 12).await;
    assert!((1..5).contains(&lines(&small).len()), "{small:?}");
    assert_eq!(lines(&small)[0], ADA[0]);
    assert!(small.budget.added_tokens <= tokens - 12 && small.tokens <= tokens - 12);
    let nothing = asked(Some(0), 1_000).await;
    assert!(nothing.profile.is_none() && !nothing.block.is_empty());
    let nothing = asked(None, 0).await;
    assert_eq!(
        (nothing.profile, nothing.reason),
        (None, Some(Reason::BudgetZero))
    );
    // Caps of items are for the rest.
    let mut capped = open("What is my cat called?");
    capped.policy.budget.max_items = Some(1);
    let capped = assembled(&node, capped).await;
    assert_eq!((lines(&capped).len(), capped.items.len()), (5, 6));
}

#[tokio::test]
async fn a_forgotten_turn_leaves_the_section_and_what_was_written_down() {
    let (node, facts) = known().await;
    let asked = || {
        let mut request = asking("Write my mum a birthday text");
        request.query.session = Some(session("today"));
        request
    };
    let before = assembled(&node, asked()).await;
    let forget = ForgetRequest {
        space: space("ada"),
        filter: TurnFilter {
            turns: vec![facts[1].turns[0]],
            ..TurnFilter::default()
        },
        everything: false,
        dry_run: false,
    };
    node.gateway.forget(&acme(), forget).await.unwrap();
    let kept = &node.gateway.injections;
    let kept = kept.get(&acme().tenant, before.injection.unwrap()).await;
    let kept = kept.unwrap().unwrap();
    assert!(kept.forgotten && kept.block.is_none());
    let after = assembled(&node, asked()).await;
    assert_eq!(lines(&after), ["I live in Rome."]);
}

#[tokio::test]
async fn what_is_to_be_hidden_or_excluded_is_not_in_it() {
    let node = Node::new().await;
    let stated = [
        state("Ada", "The code of my door is 4711.", 0.9),
        state("Ada", "I live in Rome.", 0.8),
    ];
    stating(&node, "ada", &stated).await;
    let mut hidden = asking("Write my mum a birthday text");
    hidden.policy.format.redactions = Some(vec!["[0-9]{4}".to_owned()]);
    let answer = assembled(&node, hidden.clone()).await;
    let shown = ["The code of my door is [redacted].", "I live in Rome."];
    assert_eq!(lines(&answer), shown);
    hidden.policy.format.redactions = Some(vec!["^I live.*".to_owned(), "Ada".to_owned()]);
    let answer = assembled(&node, hidden).await;
    assert!(!answer.block.contains("Ada") && !answer.block.contains("Rome"));
    let mut running = asking("Write my mum a birthday text");
    running.query.session = Some(session("monday"));
    assert_eq!(assembled(&node, running.clone()).await.profile, None);
    running.policy.exclusion.running_session = Some(false);
    running.exchange = Some(ExchangeName::new("another").unwrap());
    assert_eq!(lines(&assembled(&node, running).await).len(), 2);
    let mut filtered = asking("Write my mum a birthday text");
    filtered.query.filter.sessions = vec![session("tuesday")];
    assert_eq!(assembled(&node, filtered).await.profile, None);
}

#[tokio::test]
async fn only_the_spaces_of_the_call_are_read() {
    let (node, _) = known().await;
    stating(&node, "team", &[state("Ada", "I lead the team.", 0.8)]).await;
    let mut request = asking("Write my mum a birthday text");
    assert_eq!(lines(&assembled(&node, request.clone()).await), ADA);
    request.query.spaces = vec![space("team")];
    let of_team = assembled(&node, request.clone()).await;
    assert_eq!(lines(&of_team), ["I lead the team."]);
    request.query.spaces = vec![space("ada"), space("team")];
    let of_both = assembled(&node, request).await;
    assert_eq!(lines(&of_both), [ADA[0], "I lead the team.", ADA[1]]);
}

#[tokio::test]
async fn it_is_asked_for_by_a_policy_and_not_where_memory_is_never_wanted() {
    let (node, _) = known().await;
    let mut request = asking("Write my mum a birthday text");
    request.policy.selection.profile = None;
    let without = assembled(&node, request.clone()).await;
    assert_eq!(
        (without.profile, without.decision),
        (None, Decision::Skipped)
    );
    let mut policy = Policy::default();
    policy.selection.profile = Some(true);
    let call = acme();
    let put = node
        .gateway
        .put_policy(&call, Some(space("ada")), policy, None);
    put.await.unwrap();
    assert_eq!(lines(&assembled(&node, request.clone()).await), ADA);
    for (mode, text, reason) in [
        (GateMode::Never, "Write my mum a text", Reason::GateNever),
        (GateMode::Auto, "thanks a lot", Reason::Pleasantry),
    ] {
        let mut never = asking(text);
        never.policy.gating.mode = Some(mode);
        let answer = assembled(&node, never).await;
        assert_eq!((answer.block.as_str(), answer.reason), ("", Some(reason)));
    }
    request.policy.placing.strategies = Some(vec![Strategy::Tool]);
    let tools = assembled(&node, request).await;
    assert_eq!(tools.profile, None);
    let told = tools
        .degraded
        .iter()
        .any(|it| it.starts_with("profile: memory tools"));
    assert!(told, "{:?}", tools.degraded);
}

#[tokio::test]
async fn without_facts_of_the_store_the_block_goes_out_and_says_so() {
    let (node, _) = known().await;
    let gateway = Gateway {
        knowledge: Arc::new(AwayKnowledge),
        ..node.gateway.clone()
    };
    let request = open("What is my cat called?");
    let answer = gateway.assemble(&acme(), request).await.unwrap();
    assert!(answer.block.contains("Pixel") && answer.profile.is_none());
    let told = answer.degraded.iter().any(|it| it.starts_with("profile: "));
    assert!(told, "{:?}", answer.degraded);
}

/// A retriever that finds nothing, or fails.
struct PoorRetriever {
    fails: bool,
}

#[async_trait]
impl Retriever for PoorRetriever {
    async fn search(&self, _: &Context, _: &Query) -> Result<Found, Fault> {
        match self.fails {
            true => Err(Fault::new(FaultKind::Unavailable, "AWAY", "is away")),
            false => Ok(Found::default()),
        }
    }
}

#[tokio::test]
async fn a_search_that_fails_or_finds_nothing_leaves_the_section() {
    let (node, _) = known().await;
    for (fails, reason) in [
        (false, Reason::NothingFound),
        (true, Reason::RetrievalUnavailable),
    ] {
        let gateway = Gateway {
            retriever: Arc::new(PoorRetriever { fails }),
            ..node.gateway.clone()
        };
        let mut request = asking("What is my cat called?");
        request.policy.failure.policy = Some(FailurePolicy::Open);
        request.query.session = Some(session("today"));
        // What failed is asked for once more by the next request of the exchange.
        for _ in 0..2 {
            let answer = gateway.assemble(&acme(), request.clone()).await.unwrap();
            assert_eq!(lines(&answer), ADA);
            assert_eq!(answer.reason, Some(reason));
            assert_eq!(answer.degraded.is_empty(), !fails, "{:?}", answer.degraded);
        }
        request.policy.failure.policy = Some(FailurePolicy::Closed);
        request.exchange = Some(ExchangeName::new(format!("closed {fails}")).unwrap());
        let answer = gateway.assemble(&acme(), request).await;
        assert_eq!(answer.is_err(), fails);
    }
}
