//! The block of a prompt: inside its budget whatever that is, with the words that answer.

use memfleet_domain::FaultKind;
use memfleet_domain::derivation::{Body, Derivation};
use memfleet_domain::ids::DerivationId;
use memfleet_domain::narrative::{Momentum, Narrative};
use memfleet_domain::space::SpaceSettings;
use memfleet_domain::turn::AcceptedTurn;
use memfleet_ports::assembly::{AssembleRequest, AssembledItem, Assembly};
use memfleet_ports::conformance::knowledge::{deriving, fragment};
use memfleet_ports::conformance::samples::{instant, session};
use memfleet_ports::knowledge::{Knowledge, Work};
use memfleet_ports::ledger::Ledger;
use memfleet_ports::memory::{Memory, NewTurn};

use crate::roles::{Node, acme, recall, said, space};

/// A request for the block of one space, with excerpts.
pub fn assemble(name: &str, text: &str, budget_tokens: u32) -> AssembleRequest {
    let mut query = recall(name, text, &[]).query;
    query.k = 100;
    AssembleRequest::ungated(query, budget_tokens)
}

/// Long turns in several scripts over several days; one sentence of one of them names the lighthouse.
async fn long_conversation() -> Node {
    let node = Node::new().await;
    let filler = [
        "We went to the market and bought bread, cheese and a bottle of wine. ",
        "昨日は雨が降っていたので、家で本を読みました。",
        "Погода была хорошая, и мы пошли гулять. ",
        "Status: {\"ok\": true, \"items\": [1, 2, 3]}! ",
    ];
    let turn = |n: usize| {
        let mut text = filler[n % 4].repeat(3 + n);
        if n == 9 {
            text.push_str("My grandmother kept the lighthouse of Skagen. ");
            text.push_str(&filler[0].repeat(8));
        }
        NewTurn {
            session: session(&format!("s{}", n / 4)),
            event_time: (!n.is_multiple_of(5)).then(|| instant(n as i64 * 40_000)),
            ..said(&text)
        }
    };
    node.told("ada", (0..16).map(turn).collect()).await;
    node
}

/// A block of narratives alone.
fn of_narratives(narratives: &[DerivationId], text: &str) -> AssembleRequest {
    AssembleRequest {
        narratives: narratives.to_vec(),
        ..assemble("ada", text, 1_000)
    }
}

#[tokio::test]
async fn a_narrative_is_told_in_order_and_nothing_else() {
    let node = Node::new().await;
    let told = [
        "The roof of the boat house leaks.",
        "Bread costs four crowns at the market.",
        "The carpenter mends the roof on Friday.",
    ];
    let receipt = node.told("ada", told.map(said).to_vec()).await;
    let ids: Vec<_> = receipt.turns.iter().map(|turn| turn.id).collect();
    let scope = acme().scope(&space("ada"));
    let turns = node.store.turns(&scope, &ids).await.unwrap();
    let [roof, bread, carpenter] = [0, 1, 2].map(|place| &turns[place].accepted);
    let [house, market] = [roof, bread].map(|turn| DerivationId::of_narrative(turn.id));
    let rewrites = [
        deriving(&[&narrative(roof, house), &fragment(roof, house)]),
        deriving(&[&narrative(bread, market), &fragment(bread, market)]),
        deriving(&[&fragment(carpenter, house)]),
    ];
    let work = Work {
        rewrites: rewrites.to_vec(),
        ..Work::default()
    };
    node.store.apply(&scope, work).await.unwrap();
    let block = async |request| node.gateway.assemble(&acme(), request).await;
    // Without a query, with one, and where the filter leaves one turn of it.
    for text in ["", "What does the market cost?"] {
        let assembled = block(of_narratives(&[house], text)).await.unwrap();
        let items: Vec<_> = assembled
            .items
            .iter()
            .filter_map(AssembledItem::turn)
            .collect();
        assert_eq!(items, [roof.id, carpenter.id], "{}", assembled.block);
    }
    let mut filtered = of_narratives(&[house], "");
    filtered.query.filter.turns = vec![bread.id, carpenter.id];
    let items = block(filtered).await.unwrap().items;
    assert_eq!(
        items
            .iter()
            .filter_map(AssembledItem::turn)
            .collect::<Vec<_>>(),
        [carpenter.id]
    );
    let mut nothing = of_narratives(&[house], "");
    nothing.query.filter.turns = vec![bread.id];
    assert_eq!(block(nothing).await.unwrap().block, "");
    let both = block(of_narratives(&[house, market], "")).await.unwrap();
    assert_eq!(both.items.len(), 3);
    let unknown = of_narratives(&[house, DerivationId::from_bytes([7; 16])], "");
    assert_eq!(block(unknown).await.unwrap_err().kind, FaultKind::NotFound);
}

/// The story that a turn begins.
pub fn narrative(turn: &AcceptedTurn, id: DerivationId) -> Derivation {
    let body = Narrative {
        headline: turn.content.text.clone(),
        owner: turn.speaker.clone(),
        characters: vec![turn.speaker.clone()],
        subplots: Vec::new(),
        momentum: Momentum::Active,
        author: "sample-1".into(),
    };
    Derivation {
        id,
        body: Body::Narrative(Box::new(body)),
        ..fragment(turn, id)
    }
}

#[tokio::test]
async fn the_block_never_exceeds_its_budget_and_says_its_true_size() {
    let node = long_conversation().await;
    let budgets = (0..40).chain((40..400).step_by(23)).chain([2_000, 100_000]);
    for budget in budgets {
        for tokenizer in ["o200k_base", "cl100k_base", "bytes"] {
            let request = AssembleRequest {
                tokenizer: Some(tokenizer.to_owned()),
                ..assemble("ada", "Who kept the lighthouse?", budget)
            };
            let block = node.gateway.assemble(&acme(), request).await.unwrap();
            let counted = node
                .gateway
                .count_tokens(&acme(), tokenizer, std::slice::from_ref(&block.block))
                .await
                .unwrap();
            assert_eq!(counted.counts, [block.tokens], "{tokenizer} {budget}");
            assert!(block.tokens <= budget, "{tokenizer} {budget}");
            assert_eq!(block.items.is_empty(), block.block.is_empty());
        }
    }
}

#[tokio::test]
async fn a_long_turn_is_cut_to_the_sentence_that_answers() {
    let node = long_conversation().await;
    // The tag of a block is random and takes some more tokens or fewer: the sentence fits beside any.
    let request = assemble("ada", "Who kept the lighthouse of Skagen?", 160);
    let cut = node
        .gateway
        .assemble(&acme(), request.clone())
        .await
        .unwrap();
    assert!(cut.block.contains("lighthouse of Skagen"), "{}", cut.block);
    assert!(cut.items.iter().any(|item| item.excerpt));
    let mut whole = request;
    whole.policy.selection.excerpts = Some(false);
    let whole = node.gateway.assemble(&acme(), whole).await.unwrap();
    assert!(whole.items.iter().all(|item| !item.excerpt));
}

#[tokio::test]
async fn items_are_bounded_in_number_and_size() {
    let node = long_conversation().await;
    let mut request = assemble("ada", "Who kept the lighthouse?", 10_000);
    request.policy.budget.max_items = Some(2);
    request.policy.budget.max_item_tokens = Some(60);
    let block = node.gateway.assemble(&acme(), request).await.unwrap();
    assert!((1..=2).contains(&block.items.len()), "{block:?}");
    assert!(
        block.items.iter().all(|item| item.tokens <= 60),
        "{block:?}"
    );
    assert!(block.left_out > 0);
}

#[tokio::test]
async fn what_two_spaces_hold_comes_in_the_order_of_time_with_dates_of_the_first_space() {
    let node = Node::new().await;
    let at = |second, text: &str| NewTurn {
        event_time: Some(instant(second)),
        ..said(text)
    };
    // The samples' time begins on 14 November 2023 at 22:13 UTC, which is the next day in Tokyo.
    node.told("team", vec![at(0, "The kettle was bought")])
        .await;
    node.told("ada", vec![at(90_000, "The kettle broke")]).await;
    let tokyo = SpaceSettings {
        time_zone: "Asia/Tokyo".parse().unwrap(),
        ..SpaceSettings::default()
    };
    node.gateway
        .put_space(&acme(), &space("ada"), tokyo)
        .await
        .unwrap();
    let mut request = assemble("ada", "kettle", 500);
    request.query.spaces.push(space("team"));
    let block = node.gateway.assemble(&acme(), request).await.unwrap().block;
    let place = |words: &str| {
        block
            .find(words)
            .unwrap_or_else(|| panic!("{words}: {block}"))
    };
    assert!(place("2023-11-15") < place("was bought"));
    assert!(place("was bought") < place("2023-11-16"));
    assert!(place("2023-11-16") < place("broke"));
}

#[tokio::test]
async fn sessions_without_dates_come_in_the_order_in_which_they_were_told() {
    let node = Node::new().await;
    let on = |day: &str, text: &str| NewTurn {
        session: session(day),
        ..said(text)
    };
    node.told("ada", vec![on("first", "kettle")]).await;
    node.clock.set(60);
    node.told("ada", vec![on("second", "We talked about a kettle")])
        .await;
    let request = assemble("ada", "kettle", 500);
    let found = node.gateway.assemble(&acme(), request).await.unwrap();
    assert!(found.items[0].score < found.items[1].score);
    let text = found.block;
    assert!(
        text.contains("Ada: kettle\n\nAda: We talked about a kettle"),
        "{text}"
    );
}

#[tokio::test]
async fn neighbours_enter_the_block_once_and_behind_what_was_found() {
    let node = Node::new().await;
    let texts = ["Hello", "My kettle broke", "On a Sunday", "Bye"];
    node.told("ada", texts.map(said).to_vec()).await;
    let asked = |neighbours, max_items| {
        let mut request = assemble("ada", "kettle broke", 500);
        request.query.k = 1;
        request.query.neighbours = neighbours;
        request.policy.budget.max_items = max_items;
        request
    };
    for (neighbours, max_items, expected) in [
        (0, None, &texts[1..2]),
        (1, None, &texts[..3]),
        (2, None, &texts[..]),
        (2, Some(1), &texts[1..2]),
    ] {
        let request = asked(neighbours, max_items);
        let found = node.gateway.assemble(&acme(), request).await.unwrap();
        let lines = found.block.lines();
        let told = lines.filter_map(|line| line.strip_prefix("Ada: "));
        assert_eq!(told.collect::<Vec<_>>(), expected);
        assert_eq!(found.items.len(), expected.len());
    }
}

#[tokio::test]
async fn nothing_found_is_an_empty_block_and_an_unknown_tokenizer_a_named_field() {
    let node = Node::new().await;
    node.told("ada", vec![said("Hello")]).await;
    let mut request = assemble("ada", "hello", 100);
    request.query.filter.sessions = vec![session("never")];
    let block = node
        .gateway
        .assemble(&acme(), request.clone())
        .await
        .unwrap();
    assert_eq!((block.block.as_str(), block.tokens), ("", 0));
    request.tokenizer = Some("gpt-99".to_owned());
    let fault = node.gateway.assemble(&acme(), request).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::InvalidArgument);
    assert_eq!(fault.fields[0].field, "tokenizer");
}
