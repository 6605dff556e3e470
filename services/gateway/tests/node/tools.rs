//! What a model asks of memory by itself: rounds, budgets, what it may see, over several gateways.

use std::sync::Arc;

use async_trait::async_trait;
use memfleet_domain::access::{Grant, SpacePattern};
use memfleet_domain::assembly::{GateOutcome, ProviderFormat, Reason, Strategy, Termination};
use memfleet_domain::ids::{ExchangeName, SessionId};
use memfleet_domain::model_profile::ModelProfile;
use memfleet_domain::policy::Policy;
use memfleet_domain::{Fault, FaultKind};
use memfleet_gateway::Gateway;
use memfleet_gateway::settings::SettingsCache;
use memfleet_ports::access::{Caller, Proof};
use memfleet_ports::assembly::{AssembleRequest, Assembled, Assembly, Prompt};
use memfleet_ports::conformance::samples::session;
use memfleet_ports::context::Context;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::memory::{Memory, NewTurn};
use memfleet_ports::refresher::ForgetRequest;
use memfleet_ports::retriever::{Found, Query, Retriever};
use memfleet_ports::tools::{CloseRequest, SchemaRequest, ToolCall, ToolResult, Tools};

use crate::amp::{prompted, user};
use crate::assembling::assemble;
use crate::roles::{Node, acme, call_of, said, space};

const SEARCH: &str = "memfleet_memory_search";
const GET: &str = "memfleet_memory_get";

fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    let mut policy = Policy::default();
    policy.gating.relevance = Some(0.0);
    ToolCall {
        spaces: vec![space("ada")],
        session: session("now"),
        aliases: Vec::new(),
        exchange: ExchangeName::new("e1").unwrap(),
        call_id: id.into(),
        round: 0,
        name: name.into(),
        arguments: arguments.into(),
        filter: TurnFilter::default(),
        model: ModelProfile::default(),
        policy,
        tokenizer: None,
        now: None,
    }
}

pub fn search(id: &str, query: &str) -> ToolCall {
    call(id, SEARCH, &format!("{{\"query\":\"{query}\"}}"))
}

async fn run(gateway: &Gateway, call: ToolCall) -> ToolResult {
    gateway.execute_tool(&acme(), call).await.unwrap()
}

async fn told() -> Node {
    let node = Node::new().await;
    let of = |name: &str, text: &str| NewTurn {
        session: session(name),
        ..said(text)
    };
    let turns = vec![
        of("monday", "The kettle broke on Sunday"),
        of("tuesday", "The boat house needs a roof"),
        of("now", "The kettle is what we speak about"),
    ];
    node.told("ada", turns).await;
    node
}

/// Another gateway over the same store.
fn beside(node: &Node) -> Gateway {
    Gateway {
        settings: Arc::new(SettingsCache::new(node.store.clone())),
        keys: Arc::default(),
        rejections: Arc::default(),
        ..node.gateway.clone()
    }
}

#[tokio::test]
async fn amp_020_021_every_shape_has_both_tools_under_names_that_are_free() {
    let node = Node::new().await;
    let formats = ProviderFormat::ALL.iter().copied().map(Some);
    for format in formats.chain([None]) {
        let request = SchemaRequest {
            format,
            taken_names: vec![SEARCH.into()],
        };
        let tools = node.gateway.tool_schema(&acme(), request).await.unwrap();
        assert_eq!(tools.len(), 2);
        assert_eq!(tools[0].name, format!("{SEARCH}_2"));
        assert!(tools[0].tool.contains(&tools[0].name));
        assert!(tools[0].parameters.contains("\"required\":[\"query\"]"));
    }
    let named = call("c1", &format!("{SEARCH}_2"), "{\"query\":\"kettle\"}");
    assert!(!run(&told().await.gateway, named).await.is_error);
}

#[tokio::test]
async fn amp_022_023_rounds_are_counted_over_two_gateways_that_take_turns() {
    let node = told().await;
    let gateways = [node.gateway.clone(), beside(&node)];
    let limited = |id: &str, query: &str| {
        let mut call = search(id, query);
        call.policy.tools.rounds = Some(2);
        call
    };
    let first = run(&gateways[0], limited("c1", "kettle broke")).await;
    assert!(first.text.contains("kettle broke"), "{}", first.text);
    assert_eq!((first.rounds_used, first.must_finalize), (1, false));
    let second = run(&gateways[1], limited("c2", "boat house")).await;
    assert_eq!((second.rounds_used, second.must_finalize), (2, true));
    assert!(second.tokens_used >= first.tokens_used);
    let third = run(&gateways[0], limited("c3", "roof")).await;
    assert!(third.items.is_empty());
    assert!(third.termination.is_some());
    let again = run(&gateways[1], limited("c1", "kettle broke")).await;
    assert_eq!(again, first);
}

#[tokio::test]
async fn amp_022_no_rounds_reach_nothing() {
    let node = told().await;
    let mut none = search("c1", "kettle");
    none.policy.tools.rounds = Some(0);
    let result = run(&node.gateway, none).await;
    assert_eq!(result.termination, Some(Termination::RoundLimit));
    assert!(result.items.is_empty() && result.must_finalize);
}

#[tokio::test]
async fn amp_029_030_what_was_given_does_not_come_again_and_all_fits_the_budget() {
    let node = told().await;
    let of_round = |id: &str, query: &str| {
        let mut call = search(id, query);
        call.policy.budget.exchange_tokens = Some(400);
        call.policy.tools.rounds = Some(9);
        call
    };
    let first = run(&node.gateway, of_round("c1", "kettle")).await;
    let second = run(&node.gateway, of_round("c2", "kettle roof")).await;
    let ids = |result: &ToolResult| -> Vec<_> {
        result.items.iter().map(|item| item.id.clone()).collect()
    };
    assert!(!ids(&first).is_empty());
    assert!(ids(&first).iter().all(|id| !ids(&second).contains(id)));
    let repeated = run(&node.gateway, of_round("c3", " KETTLE? ")).await;
    assert!(
        repeated.text.contains("already returned"),
        "{}",
        repeated.text
    );
    assert_eq!(repeated.termination, Some(Termination::RepeatedQuery));
    assert!(repeated.tokens_used <= 400);
}

#[tokio::test]
async fn amp_031_025_wrong_arguments_are_told_and_the_second_time_tools_are_given_up() {
    let node = told().await;
    let wrong = |id: &str| ToolCall {
        model: ModelProfile {
            name: "small".into(),
            ..ModelProfile::default()
        },
        ..call(id, SEARCH, "{\"query\":")
    };
    let first = run(&node.gateway, wrong("c1")).await;
    assert!(first.is_error && !first.must_finalize, "{first:?}");
    let second = run(&node.gateway, wrong("c2")).await;
    assert_eq!(second.termination, Some(Termination::ToolsRejected));
    assert_eq!(
        fallback(&node, "small").await,
        Some(Reason::ToolsUnsupported)
    );
    assert_eq!(fallback(&node, "large").await, Some(Reason::ToolsOffered));
    node.clock.set(3_601);
    assert_eq!(fallback(&node, "small").await, Some(Reason::ToolsOffered));
}

/// Why an assembly that wants tools went as it did.
async fn fallback(node: &Node, model: &str) -> Option<Reason> {
    of_body(node, model, "").await
}

async fn of_body(node: &Node, model: &str, more: &str) -> Option<Reason> {
    let request = wanting_tools(model, more);
    let answer = node.gateway.assemble(&acme(), request).await.unwrap();
    answer.reason
}

fn wanting_tools(model: &str, more: &str) -> AssembleRequest {
    let body = format!(
        "{{\"model\":\"{model}\",\"messages\":[{{\"role\":\"user\",\"content\":\"kettle broke\"}}]{more}}}"
    );
    let mut request = AssembleRequest {
        prompt: Prompt::Provider {
            format: ProviderFormat::OpenaiChat,
            body: body.into_bytes(),
        },
        ..assemble("ada", "kettle broke", 2_000)
    };
    request.policy.exclusion.in_prompt = Some(false);
    request.policy.placing.strategies = Some(vec![Strategy::Tool, Strategy::Append]);
    request
}

/// What a request is given that names its exchange; `more` is of its body.
async fn in_exchange(node: &Node, more: &str) -> Assembled {
    let mut request = wanting_tools("small", more);
    request.query.session = Some(session("later"));
    request.exchange = ExchangeName::new("e9").ok();
    node.gateway.assemble(&acme(), request).await.unwrap()
}

const NO_TOOLS: &str =
    r#","tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"none""#;

#[tokio::test]
async fn amp_025_006_an_exchange_whose_tools_are_rejected_gets_a_block() {
    let node = told().await;
    let offered = in_exchange(&node, "").await;
    assert_eq!(offered.reason, Some(Reason::ToolsOffered));
    for id in ["c1", "c2"] {
        let wrong = ToolCall {
            model: ModelProfile {
                name: "small".into(),
                ..ModelProfile::default()
            },
            ..call(id, SEARCH, "{\"query\":")
        };
        run(&node.gateway, wrong).await;
    }
    let given = in_exchange(&node, "").await;
    assert_eq!(given.reason, Some(Reason::ToolsUnsupported));
    assert!(given.block.contains("kettle broke"), "{given:?}");
    let again = in_exchange(&node, "").await;
    assert_eq!((&again.block, &again.edits), (&given.block, &given.edits));
}

#[tokio::test]
async fn amp_006_034_a_block_that_an_exchange_has_stays_where_tools_are_allowed_later() {
    let node = told().await;
    let given = in_exchange(&node, NO_TOOLS).await;
    assert_eq!(given.reason, Some(Reason::ToolChoiceConflict));
    assert_eq!(given.edits.len(), 1);
    let again = in_exchange(&node, "").await;
    assert_eq!((&again.block, &again.edits), (&given.block, &given.edits));
    assert_eq!(again.strategy_used, Strategy::Append);
}

#[tokio::test]
async fn amp_065_067_069_tools_take_their_part_of_the_budget() {
    let node = told().await;
    let mut request = wanting_tools("m", "");
    request.model.window_tokens = Some(20_000);
    let offered = node
        .gateway
        .assemble(&acme(), request.clone())
        .await
        .unwrap();
    assert_eq!(offered.reason, Some(Reason::ToolsOffered));
    let cost = offered.budget.added_tokens;
    for (tokens, reason) in [
        (cost, Reason::ToolsOffered),
        (cost - 1, Reason::BudgetTooSmall),
        (0, Reason::BudgetZero),
    ] {
        request.policy.budget.max_tokens = Some(tokens);
        let answer = node
            .gateway
            .assemble(&acme(), request.clone())
            .await
            .unwrap();
        assert_eq!(answer.reason, Some(reason), "{tokens}");
        let is_offered = reason == Reason::ToolsOffered;
        assert_eq!(answer.edits.len(), if is_offered { 2 } else { 0 });
    }
    request.policy.budget.max_tokens = None;
    request.policy.budget.reserved_output_tokens = Some(19_999);
    let full = node.gateway.assemble(&acme(), request).await.unwrap();
    assert_eq!(full.reason, Some(Reason::NoHeadroom));
    assert!(full.edits.is_empty());
}

#[tokio::test]
async fn amp_029_065_results_of_tools_fit_what_the_prompt_leaves_of_the_window() {
    let node = told().await;
    let mut request = wanting_tools("m", "");
    request.model.window_tokens = Some(5_000);
    request.policy.budget.reserved_output_tokens = Some(4_000);
    request.policy.budget.percent_of_window = Some(50.0);
    request.query.session = Some(session("later"));
    let offered = node
        .gateway
        .assemble(&acme(), request.clone())
        .await
        .unwrap();
    let used = offered.budget.prompt_tokens + offered.budget.added_tokens;
    assert!(offered.budget.prompt_tokens > 0, "{:?}", offered.budget);
    let mut call = search("c1", "kettle");
    call.session = session("later");
    call.exchange = offered.exchange.unwrap();
    call.model.window_tokens = Some(5_000);
    call.policy.budget = request.policy.budget;
    let result = run(&node.gateway, call).await;
    let all = result.tokens_used + result.tokens_remaining;
    assert!(all > 0 && all <= 1_000 - used, "{all} beside {used}");
}

#[tokio::test]
async fn amp_034_a_choice_of_the_caller_passes_the_tools_over() {
    let node = told().await;
    let more = r#","tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"none""#;
    assert_eq!(
        of_body(&node, "m", more).await,
        Some(Reason::ToolChoiceConflict)
    );
}

#[tokio::test]
async fn amp_032_098_the_running_session_stays_out_of_searches_and_readings() {
    let node = told().await;
    let result = run(&node.gateway, search("c1", "kettle")).await;
    assert!(result.items.iter().all(|item| item.session != "now"));
    let own = call("c2", SEARCH, r#"{"query":"kettle","session":"now"}"#);
    let refused = run(&node.gateway, own).await;
    assert!(refused.is_error && refused.items.is_empty(), "{refused:?}");
    let mut other = search("c1", "kettle is what");
    other.session = session("later");
    let seen = run(&node.gateway, other).await;
    let id = &seen.items.iter().find(|it| it.session == "now").unwrap().id;
    let read = call("c3", GET, &format!("{{\"ids\":[\"{id}\"]}}"));
    let refused = run(&node.gateway, read).await;
    assert!(refused.is_error && refused.items.is_empty(), "{refused:?}");
}

#[tokio::test]
async fn amp_119_120_ids_of_others_are_refused_in_the_words_of_unknown_ones() {
    let node = told().await;
    let found = run(&node.gateway, search("c1", "kettle")).await;
    let id = &found.items[0].id;
    let read = |call_id: &str, id: &str| call(call_id, GET, &format!("{{\"ids\":[\"{id}\"]}}"));
    let own = run(&node.gateway, read("c2", id)).await;
    assert!(own.text.contains("kettle broke"), "{}", own.text);
    let unknown = run(
        &node.gateway,
        read("c3", "018f2b6c-7a35-8d6e-9c41-5b0a7d3e2f10"),
    )
    .await;
    let stranger = call_of("other", std::time::Duration::from_mins(1));
    let theirs = vec![NewTurn {
        session: SessionId::new("x").unwrap(),
        ..said("Nothing")
    }];
    let request = crate::roles::request("ada", theirs);
    memfleet_ports::memory::Memory::remember(&node.gateway, &stranger, request)
        .await
        .unwrap();
    node.settle().await;
    let taken = node.gateway.execute_tool(&stranger, read("c2", id)).await;
    let taken = taken.unwrap();
    assert_eq!((taken.is_error, &taken.text), (true, &unknown.text));
}

#[tokio::test]
async fn amp_024_an_exchange_is_closed_once_and_its_time_ends() {
    let node = told().await;
    let found = run(&node.gateway, search("c1", "kettle")).await;
    let close = CloseRequest {
        session: session("now"),
        exchange: ExchangeName::new("e1").unwrap(),
        termination: None,
        model: String::new(),
    };
    let closed = node.gateway.close_turn(&acme(), close).await.unwrap();
    assert_eq!(closed.termination, Termination::ModelAnswered);
    assert_eq!(closed.turns.len(), found.items.len());
    assert_eq!(closed.tokens_used, found.tokens_used);
    let mut late = search("c1", "kettle");
    late.exchange = ExchangeName::new("e2").unwrap();
    run(&node.gateway, late.clone()).await;
    node.clock.set(61);
    late.call_id = "c2".into();
    let late = run(&node.gateway, late).await;
    assert_eq!(late.termination, Some(Termination::Deadline));
}

#[tokio::test]
async fn amp_026_memory_that_was_forced_and_not_asked_for_is_not_given_unasked() {
    let node = told().await;
    let ask = || {
        let mut request = prompted(vec![user("Do you remember my kettle?")]);
        request.query.session = Some(session("now"));
        request.policy.gating.mode = None;
        request.policy.placing.strategies = Some(vec![Strategy::Tool, Strategy::Append]);
        request
    };
    let offered = node.gateway.assemble(&acme(), ask()).await.unwrap();
    assert_eq!(offered.gates[0].outcome, GateOutcome::Force);
    assert_eq!(offered.reason, Some(Reason::ToolsOffered));
    let close = CloseRequest {
        session: session("now"),
        exchange: offered.exchange.clone().unwrap(),
        termination: None,
        model: String::new(),
    };
    let closed = node.gateway.close_turn(&acme(), close).await.unwrap();
    assert_eq!(closed.termination, Termination::ModelAnswered);
    let of_tools = offered.budget.added_tokens;
    assert!(of_tools > 100, "{of_tools}");
    assert_eq!((closed.tokens_used, closed.turns.len()), (of_tools, 0));
    // The same call again offers tools again. One call with memory in it is for the caller to ask for.
    let again = node.gateway.assemble(&acme(), ask()).await.unwrap();
    assert_eq!(
        (again.reason, again.block.as_str()),
        (Some(Reason::ToolsOffered), "")
    );
    let mut retry = ask();
    retry.exchange = Some(ExchangeName::new("again").unwrap());
    retry.policy.placing.strategies = Some(vec![Strategy::Append]);
    let retried = node.gateway.assemble(&acme(), retry).await.unwrap();
    assert!(retried.block.contains("kettle broke"), "{retried:?}");
}

/// Words are forgotten, not what was counted.
#[tokio::test]
async fn amp_022_a_forget_in_the_middle_of_an_exchange_gives_no_rounds_and_no_tokens_back() {
    let node = told().await;
    let limited = |id: &str, query: &str| {
        let mut call = search(id, query);
        call.policy.tools.rounds = Some(2);
        call
    };
    let first = run(&node.gateway, limited("c1", "kettle broke")).await;
    let gone = first.items[0].turn().unwrap();
    let request = ForgetRequest {
        space: space("ada"),
        filter: TurnFilter {
            turns: vec![gone],
            ..TurnFilter::default()
        },
        everything: false,
        dry_run: false,
    };
    node.gateway.forget(&acme(), request).await.unwrap();
    let second = run(&beside(&node), limited("c2", "boat house")).await;
    assert_eq!((second.rounds_used, second.must_finalize), (2, true));
    assert!(second.tokens_used >= first.tokens_used);
    assert!(!second.text.contains("kettle broke"));
    let third = run(&node.gateway, limited("c3", "roof")).await;
    assert_eq!(third.termination, Some(Termination::RoundLimit));
    assert!(third.items.is_empty());
}

/// Somebody of the same tenant who reaches another space.
fn of_bob() -> Context {
    let stranger = Caller {
        tenant: acme().tenant,
        name: "a key".into(),
        grant: Grant {
            spaces: vec![SpacePattern::new("bob").unwrap()],
            ..Grant::ALL
        },
        is_operator: false,
        calls_per_minute: None,
        proof: Proof::Open,
    };
    Context {
        caller: Some(stranger.into()),
        ..acme()
    }
}

#[tokio::test]
async fn amp_119_nobody_takes_part_in_an_exchange_of_spaces_that_he_does_not_reach() {
    let node = told().await;
    let bob = of_bob();
    let one = call("c1", SEARCH, r#"{"query":"kettle broke","limit":1}"#);
    run(&node.gateway, one).await;
    for id in ["x1", "x2"] {
        let wrong = ToolCall {
            spaces: vec![space("bob")],
            model: ModelProfile {
                name: "small".into(),
                ..ModelProfile::default()
            },
            ..call(id, SEARCH, "{\"query\":")
        };
        let own = node.gateway.execute_tool(&bob, wrong).await.unwrap();
        assert_eq!(own.rounds_used, if id == "x1" { 1 } else { 2 });
    }
    let next = run(&node.gateway, search("c2", "boat house")).await;
    assert_eq!((next.rounds_used, next.termination), (2, None));
    assert!(!next.items.is_empty());
    assert_eq!(fallback(&node, "small").await, Some(Reason::ToolsOffered));
}

#[tokio::test]
async fn amp_032_relevance_counts_in_rounds_too() {
    let node = told().await;
    let mut strict = search("c1", "kettle");
    strict.policy.gating.relevance = Some(0.999);
    let nothing = run(&node.gateway, strict).await;
    assert!(nothing.items.is_empty() && !nothing.is_error, "{nothing:?}");
    assert!(
        !run(&node.gateway, search("c2", "kettle broke"))
            .await
            .items
            .is_empty()
    );
}

/// A retriever that is away.
struct Away;

#[async_trait]
impl Retriever for Away {
    async fn search(&self, _: &Context, _: &Query) -> Result<Found, Fault> {
        Err(Fault::new(FaultKind::Unavailable, "AWAY", "is away"))
    }
}

#[tokio::test]
async fn amp_022_023_rounds_count_while_memory_is_away_and_what_was_asked_may_be_asked_again() {
    let node = told().await;
    let away = Gateway {
        retriever: Arc::new(Away),
        ..node.gateway.clone()
    };
    let first = run(&away, search("c1", "kettle")).await;
    assert!(first.is_error && !first.must_finalize, "{first:?}");
    let again = run(&node.gateway, search("c1", "kettle")).await;
    assert!(
        !again.items.is_empty() && again.rounds_used == 2,
        "{again:?}"
    );
    let last = run(&away, search("c3", "boat house")).await;
    assert!(last.is_error && last.must_finalize, "{last:?}");
}

#[tokio::test]
async fn amp_031_a_wrong_field_is_named_and_takes_no_tools_from_the_model() {
    let node = told().await;
    for (id, arguments, named) in [
        ("c1", r#"{"q":"kettle"}"#, "`q`"),
        (
            "c2",
            r#"{"query":"kettle","time_from":"yesterday"}"#,
            "`time_from` must be an instant",
        ),
    ] {
        let told = run(&node.gateway, call(id, SEARCH, arguments)).await;
        assert!(told.is_error && told.text.contains(named), "{}", told.text);
        assert_eq!(told.termination, None);
    }
    let right = run(&node.gateway, search("c3", "kettle")).await;
    assert!(!right.items.is_empty());
}

#[tokio::test]
async fn amp_119_an_exchange_of_spaces_that_a_credential_does_not_reach_is_none_to_it() {
    let node = told().await;
    let found = run(&node.gateway, search("c1", "kettle")).await;
    let close = |termination| CloseRequest {
        session: session("now"),
        exchange: ExchangeName::new("e1").unwrap(),
        termination: Some(termination),
        model: String::new(),
    };
    let context = of_bob();
    let told = node
        .gateway
        .close_turn(&context, close(Termination::UpstreamError));
    let told = told.await.unwrap();
    assert_eq!(
        (told.rounds_used, told.tokens_used, told.turns.len()),
        (0, 0, 0)
    );
    let owner = acme();
    let closed = node
        .gateway
        .close_turn(&owner, close(Termination::ModelAnswered));
    let closed = closed.await.unwrap();
    assert_eq!(closed.termination, Termination::ModelAnswered);
    assert_eq!(closed.turns.len(), found.items.len());
}

#[tokio::test]
async fn an_exchange_that_another_caller_closes_before_it_begins_is_none_of_its_owners() {
    let (node, stranger, owner) = (told().await, of_bob(), acme());
    let close = |termination| CloseRequest {
        session: session("now"),
        exchange: ExchangeName::new("e1").unwrap(),
        termination: Some(termination),
        model: String::new(),
    };
    let theirs = node
        .gateway
        .close_turn(&stranger, close(Termination::UpstreamError));
    theirs.await.unwrap();
    let found = run(&node.gateway, search("c1", "kettle")).await;
    assert!(
        !found.items.is_empty() && found.termination.is_none(),
        "{found:?}"
    );
    let again = node
        .gateway
        .close_turn(&stranger, close(Termination::UpstreamError));
    assert_eq!(again.await.unwrap().turns.len(), 0);
    let closed = node
        .gateway
        .close_turn(&owner, close(Termination::ModelAnswered));
    let closed = closed.await.unwrap();
    assert_eq!(closed.termination, Termination::ModelAnswered);
    assert_eq!(closed.turns.len(), found.items.len());
}
