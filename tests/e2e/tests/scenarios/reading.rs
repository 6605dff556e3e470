//! Reading over the wire: one's own writes, filters, the past, neighbours, and the block of a prompt.

use anyhow::{Result, ensure};
use futures::TryStreamExt;
use memfleet_domain::ids::{SessionId, Speaker};
use memfleet_domain::ingestion::TurnState;
use memfleet_domain::time::{AsOf, TimeRange};
use memfleet_domain::turn::Role;
use memfleet_e2e::{call, listed};
use memfleet_ports::assembly::{AssembleRequest, Assembly};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::memory::{
    AnswerMode, AnswerPart, AnswerRequest, Memory, NewTurn, Outcome, RecallRequest, RememberRequest,
};
use memfleet_ports::retriever::{CandidateTrace, Hit, Query};

use crate::conversation::{found, noon, recall, remember, said, space, turns};
use crate::knowing::answered;
use crate::system::fresh;

#[tokio::test]
async fn a_read_with_the_token_sees_the_write_every_time() -> Result<()> {
    let fresh = fresh().await?;
    for (number, turn) in turns().into_iter().enumerate() {
        let text = turn.content.text.clone();
        let token = remember(&fresh.client, "noor", vec![turn]).await?;
        let request = recall("noor", &text, TurnFilter::default(), &[token]);
        let found = found(&fresh.client, request).await?;
        assert_eq!(found.len(), number + 1);
        assert!(found.contains(&text), "{text}: {found:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_question_finds_the_turn_that_answers_it() -> Result<()> {
    let fresh = fresh().await?;
    let token = remember(&fresh.client, "noor", turns()).await?;
    for (question, answer) in [
        (
            "What is Noor's dog afraid of?",
            "She is four and afraid of thunder.",
        ),
        (
            "Where does Sam's sister live?",
            "My sister moved to Trondheim for her doctorate.",
        ),
        (
            "Why does Noor need new travel documents?",
            "Biscuit chewed through my passport.",
        ),
    ] {
        let request = recall("noor", question, TurnFilter::default(), &[token]);
        let found = found(&fresh.client, request).await?;
        assert!(
            found[..3].contains(&answer.to_owned()),
            "{question}: {found:?}"
        );
    }
    Ok(())
}

const DISHES: [&str; 28] = [
    "lentils",
    "borscht",
    "tacos",
    "moussaka",
    "fondue",
    "ravioli",
    "pierogi",
    "laksa",
    "shakshuka",
    "schnitzel",
    "ceviche",
    "gumbo",
    "haddock",
    "tempura",
    "congee",
    "frittata",
    "samosas",
    "bratwurst",
    "gazpacho",
    "crepes",
    "jollof",
    "kimchi",
    "meatloaf",
    "nachos",
    "oatmeal",
    "porridge",
    "udon",
    "trout",
];

#[tokio::test]
async fn a_question_that_names_a_day_finds_that_day_first_in_a_diary() -> Result<()> {
    let fresh = fresh().await?;
    let lunch = |(dish, day): (&&str, u32)| {
        let text = format!("For lunch there was {dish} today.");
        said(&format!("day-{day}"), "Noor", day, &text)
    };
    let mut diary: Vec<_> = DISHES.iter().zip(1..).map(lunch).collect();
    let mut fair = said("calendar", "Noor", 1, "The lunch of the reunion is booked.");
    fair.event_time = Some("2098-02-01T12:00:00Z".parse()?);
    diary.push(fair);
    let token = remember(&fresh.client, "diary", diary).await?;
    // Without `now`: it is noon of Sunday, 28 May, although one turn is dated ahead.
    let mut asked: Vec<(String, u32)> = (1..=28).map(|day| (format!("{day} May"), day)).collect();
    asked.extend((1..=27).map(|ago| (format!("{ago} days ago"), 28 - ago)));
    asked.extend((1..=28).map(|day| (format!("2023-05-{day:02}"), day)));
    asked.push(("last Thursday".to_owned(), 25));
    asked.push(("yesterday".to_owned(), 27));
    let mut missed = Vec::new();
    for (when, day) in &asked {
        let question = match when.split(' ').next_back() {
            Some("May") => format!("What was there for lunch on {when}?"),
            _ => format!("What was there for lunch {when}?"),
        };
        let request = recall("diary", &question, TurnFilter::default(), &[token]);
        let found = found(&fresh.client, request).await?;
        if !found[0].contains(DISHES[*day as usize - 1]) {
            missed.push((question, found[0].clone()));
        }
    }
    assert!(
        missed.is_empty(),
        "{} of {}: {missed:?}",
        missed.len(),
        asked.len()
    );
    Ok(())
}

#[tokio::test]
async fn a_question_is_answered_with_the_turn_that_says_so_or_not_at_all() -> Result<()> {
    let fresh = fresh().await?;
    let token = remember(&fresh.client, "noor", turns()).await?;
    let asked = async |question: &str| {
        let request = recall("noor", question, TurnFilter::default(), &[token]);
        let request = AnswerRequest {
            query: request.query,
            wait_for: request.wait_for,
            mode: AnswerMode::Auto,
        };
        answered(&fresh.client, request).await
    };
    let parts = asked("What is my greyhound called?").await?;
    let [
        AnswerPart::Text(text),
        AnswerPart::Citation(cited),
        AnswerPart::End(end),
    ] = &parts[..]
    else {
        panic!("{parts:?}")
    };
    assert!(text.contains("Biscuit"), "{text}");
    assert!(cited.quote.contains("called Biscuit"), "{cited:?}");
    assert_eq!((end.outcome, &end.model), (Outcome::Answered, &None));
    let parts = asked("What is the name of Sam's boat?").await?;
    let [AnswerPart::End(end)] = &parts[..] else {
        panic!("{parts:?}")
    };
    assert_eq!(end.outcome, Outcome::Abstained);
    Ok(())
}

#[tokio::test]
async fn filters_narrow_searches_and_listings_alike() -> Result<()> {
    let fresh = fresh().await?;
    let token = remember(&fresh.client, "noor", turns()).await?;
    let none = TurnFilter::default;
    let session = |name: &str| vec![SessionId::new(name).unwrap()];
    let filters = [
        (
            TurnFilter {
                sessions: session("monday"),
                ..none()
            },
            3,
        ),
        (
            TurnFilter {
                excluded_sessions: session("monday"),
                ..none()
            },
            4,
        ),
        (
            TurnFilter {
                speakers: vec![Speaker::new("Noor")?],
                ..none()
            },
            4,
        ),
        (
            TurnFilter {
                roles: vec![Role::Assistant],
                ..none()
            },
            1,
        ),
        (
            TurnFilter {
                metadata: vec![("day".into(), "9".into())],
                ..none()
            },
            2,
        ),
        (
            TurnFilter {
                time: TimeRange {
                    start: Some(noon(9)),
                    end: Some(noon(20)),
                },
                ..none()
            },
            2,
        ),
        (
            TurnFilter {
                as_of: AsOf {
                    known_at: None,
                    happened_by: Some(noon(9)),
                },
                ..none()
            },
            5,
        ),
    ];
    for (filter, expected) in filters {
        let request = recall("noor", "Biscuit", filter.clone(), &[token]);
        let found = found(&fresh.client, request).await?;
        assert_eq!(found.len(), expected, "{filter:?}");
        let page = memfleet_ports::memory::PageRequest::default();
        let listed = fresh
            .client
            .list(&call(), &space("noor"), &filter, page, &[token])
            .await?;
        assert_eq!(listed.items.len(), expected, "{filter:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_corrected_turn_is_remembered_as_it_was_known_at_the_time() -> Result<()> {
    let fresh = fresh().await?;
    let first = said("monday", "Noor", 8, "My flight leaves on Friday.");
    let token = remember(&fresh.client, "noor", vec![first]).await?;
    let flight = |filter| recall("noor", "When does the flight leave?", filter, &[token]);
    let request = flight(TurnFilter::default());
    let known = fresh.client.recall(&call(), request).await?;
    let old = &known.hits[0].turn.accepted;

    let mut edit = said("monday", "Noor", 8, "My flight leaves on Sunday.");
    edit.replaces = Some(old.id);
    let token = remember(&fresh.client, "noor", vec![edit]).await?;
    let mut now = flight(TurnFilter::default());
    now.wait_for.push(token);
    assert_eq!(
        found(&fresh.client, now).await?,
        ["My flight leaves on Sunday."]
    );
    let then = TurnFilter {
        as_of: AsOf {
            known_at: Some(old.recorded_at),
            happened_by: None,
        },
        ..TurnFilter::default()
    };
    assert_eq!(
        found(&fresh.client, flight(then)).await?,
        ["My flight leaves on Friday."]
    );
    let history = fresh
        .client
        .history(&call(), &space("noor"), old.id)
        .await?;
    assert_eq!(history.len(), 2);
    assert!(history[0].replaced.is_some() && history[1].replaced.is_none());
    Ok(())
}

#[tokio::test]
async fn neighbours_and_explanations_come_when_asked_for() -> Result<()> {
    let fresh = fresh().await?;
    let token = remember(&fresh.client, "noor", turns()).await?;
    let plain = recall(
        "noor",
        "How old is the dog?",
        TurnFilter::default(),
        &[token],
    );
    let asked = RecallRequest {
        query: Query {
            neighbours: 1,
            explain: true,
            ..plain.query
        },
        ..plain
    };
    let found = fresh.client.recall(&call(), asked).await?;
    let hits = found.hits.iter();
    let question = |hit: &&Hit| hit.turn.accepted.content.text.starts_with("How old");
    let hit = hits.clone().find(question).unwrap();
    assert_eq!(hit.neighbours.len(), 2);
    assert!(hits.clone().all(|hit| !hit.signals.is_empty()));
    let explanation = found.explanation.as_ref().unwrap();
    for (hit, place) in hits.clone().zip(1..) {
        let is_it = |it: &&CandidateTrace| it.turn == hit.turn.accepted.id;
        let candidate = explanation.shown.iter().find(is_it).unwrap();
        assert_eq!(candidate.hit, Some(place));
        assert!(!candidate.sources.is_empty() && !candidate.stages.is_empty());
    }
    Ok(())
}

#[tokio::test]
async fn the_block_of_a_prompt_fits_its_budget() -> Result<()> {
    let fresh = fresh().await?;
    let token = remember(&fresh.client, "noor", turns()).await?;
    for budget in [1, 20, 45, 60, 100, 1_000] {
        let query = recall(
            "noor",
            "What happened to the passport?",
            TurnFilter::default(),
            &[],
        );
        let request = AssembleRequest {
            wait_for: vec![token],
            ..AssembleRequest::ungated(query.query, budget)
        };
        let block = fresh.client.assemble(&call(), request).await?;
        let texts = [block.block.clone()];
        let counted = fresh
            .client
            .count_tokens(&call(), "o200k_base", &texts)
            .await?
            .counts;
        assert!(counted[0] <= budget, "{budget}: {}", block.block);
        if budget == 1_000 {
            assert!(block.block.contains("Biscuit chewed"), "{}", block.block);
            assert!(block.block.contains("2023-05-20"), "{}", block.block);
        }
    }
    Ok(())
}

#[tokio::test]
async fn edits_right_behind_their_originals_replace_them() -> Result<()> {
    let fresh = fresh().await?;
    let client = &fresh.client;
    for round in 0..8 {
        let name = format!("edits-{round}");
        let texts: Vec<_> = (0..30).map(|n| format!("Turn {n}.")).collect();
        let told = texts.iter().map(|text| said("monday", "Noor", 8, text));
        let request = |turns| RememberRequest {
            space: space(&name),
            turns,
            idempotency_key: None,
        };
        let receipt = client.remember(&call(), request(told.collect())).await?;
        let last = receipt.turns[29].id;
        let edit = |text: &str, replaces| NewTurn {
            replaces: Some(replaces),
            ..said("monday", "Noor", 9, text)
        };
        let edits = request(vec![edit("An edit.", last)]);
        let first = client.remember(&call(), edits).await?;
        // Both name the original, and one the edit: the last of them stands.
        let edits = request(vec![edit("A later edit.", last)]);
        let second = client.remember(&call(), edits).await?;
        let edits = request(vec![edit("The last edit.", first.turns[0].id)]);
        let third = client.remember(&call(), edits).await?;
        for batch in [first.batch, second.batch, third.batch] {
            let states = client.watch(&call(), &space(&name), batch).await?;
            let states: Vec<_> = states.try_collect().await?;
            let state = states.last().map(|turn| (turn.state, turn.reason.clone()));
            ensure!(
                state == Some((TurnState::Stored, None)),
                "round {round}: {state:?}"
            );
        }
        let turns = listed(client, &space(&name), &TurnFilter::default()).await?;
        let turns = turns.into_iter().map(|turn| turn.accepted.content.text);
        let turns: Vec<_> = turns.filter(|text| text.contains("edit")).collect();
        ensure!(turns == ["The last edit."], "round {round}: {turns:?}");
    }
    Ok(())
}
