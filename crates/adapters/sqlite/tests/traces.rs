//! After an erase no byte of what was forgotten is in any file of the store.

use std::collections::HashSet;
use std::path::Path;

use memfleet_domain::Scope;
use memfleet_domain::graph::Triplet;
use memfleet_domain::ids::{ExchangeName, InjectionId, SpaceId, TurnId};
use memfleet_domain::turn::{AcceptedTurn, Media};
use memfleet_ports::conformance::graph::{named, says, writing};
use memfleet_ports::conformance::samples::{
    batch_in, embedding_space, indexed, instant, passages, scope, session, speaker, turn_in,
    without_vectors,
};
use memfleet_ports::erasure::Erasure;
use memfleet_ports::exchanges::{Entry, Exchange, Exchanges};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::graph::Graph;
use memfleet_ports::injections::{Injection, Injections};
use memfleet_ports::ledger::{Ledger, TextVectors};
use memfleet_ports::queue::{Bounds, DeadLetter, IngestQueue};
use memfleet_sqlite::{Options, SqliteStore};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

/// The random letters of every mark are unlike anything else in the files.
struct Marks(StdRng);

impl Marks {
    fn next(&mut self) -> String {
        (0..16)
            .map(|_| char::from(self.0.random_range(b'a'..=b'z')))
            .collect()
    }

    /// A turn with marks wherever a caller can put words, of one word or up to 25 KiB (more than a page).
    fn turn(&mut self, scope: &Scope, name: &str) -> Marked {
        let words = match self.0.random_range(0..10) {
            0 => 1,
            1 if self.0.random_ratio(1, 4) => self.0.random_range(1_000..1_500),
            _ => self.0.random_range(3..60),
        };
        let marks: Vec<String> = (0..words.min(40) + 3).map(|_| self.next()).collect();
        let text: Vec<&str> = (0..words)
            .map(|n| marks[n % (marks.len() - 3)].as_str())
            .collect();
        let [key, value, caption] = marks.last_chunk::<3>().expect("at least 4 marks");
        let mut turn = turn_in(scope, name, &self.next(), &text.join(" "));
        turn.metadata = [(key.clone(), value.clone())].into();
        turn.content.media = vec![Media {
            uri: format!("https://example.org/{caption}"),
            mime_type: String::new(),
            caption: caption.clone(),
        }];
        Marked { turn, marks }
    }
}

impl Marks {
    /// A turn of 2 to 5 KiB, of marks that are not said again.
    fn long_turn(&mut self, scope: &Scope, name: &str) -> Marked {
        let count = self.0.random_range(120..300);
        let marks: Vec<String> = (0..count).map(|_| self.next()).collect();
        Marked {
            turn: turn_in(scope, name, &self.next(), &marks.join(" ")),
            marks,
        }
    }
}

#[derive(Clone)]
struct Marked {
    turn: AcceptedTurn,
    marks: Vec<String>,
}

/// Length of a remnant that is searched for: shorter ones would be found by chance among so many random letters.
const REMNANT: usize = 12;

/// Every run of letters of that length in the marks, so that a torn one is found too.
fn windows<'a>(marked: impl IntoIterator<Item = &'a Marked>) -> HashSet<[u8; REMNANT]> {
    let marks = marked.into_iter().flat_map(|marked| &marked.marks);
    marks
        .flat_map(|mark| mark.as_bytes().array_windows::<REMNANT>().copied())
        .collect()
}

/// How many places in the store's files hold one of the windows.
fn count(directory: &Path, windows: &HashSet<[u8; REMNANT]>) -> usize {
    let mut found = 0;
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let bytes = std::fs::read(entry.expect("an entry").path()).expect("read");
        found += bytes
            .array_windows::<REMNANT>()
            // Most of a file is no letters, and hashing is slow.
            .filter(|window| window.iter().all(u8::is_ascii_lowercase) && windows.contains(*window))
            .count();
    }
    found
}

async fn commit(store: &SqliteStore, scope: &Scope, key: &str, acceptance: u64, turns: &[Marked]) {
    let turns = turns.iter().map(|marked| marked.turn.clone()).collect();
    let mut told = indexed(batch_in(scope, key, turns), acceptance);
    if acceptance.is_multiple_of(3) {
        told = without_vectors(told);
    }
    store.commit(vec![told]).await.expect("commit");
}

/// Turns of two tenants and three spaces, interleaved so that pages split, with edits and late vectors.
async fn fill(store: &SqliteStore, marks: &mut Marks, scopes: &[Scope]) -> Vec<Vec<Marked>> {
    let mut told: Vec<Vec<Marked>> = vec![Vec::new(); scopes.len()];
    for round in 0..40 {
        for (scope, told) in scopes.iter().zip(&mut told) {
            let mut turns: Vec<_> = (0..3)
                .map(|n| marks.turn(scope, &format!("s{}", (round + n) % 7)))
                .collect();
            if let Some(old) = told.last() {
                turns[0].turn.replaces = Some(old.turn.id);
            }
            turns[1].turn.speaker = speaker("Ben");
            turns[2].turn.event_time = Some(instant(i64::from(round)));
            commit(store, scope, &round.to_string(), round as u64, &turns).await;
            told.extend(turns);
        }
    }
    let space = embedding_space("1");
    for waiting in store
        .without_vectors(&space, 1_000)
        .await
        .expect("without vectors")
    {
        let text = &waiting.turn.accepted.content.text;
        let vectors = passages(text)
            .into_iter()
            .filter_map(|passage| passage.vectors)
            .collect();
        let id = waiting.turn.accepted.id;
        let made = [TextVectors::of_turn(id, vectors)];
        let attached = store.attach_vectors(&waiting.scope, &space, &made);
        attached.await.expect("attach");
    }
    told
}

#[tokio::test]
async fn nothing_of_a_forgotten_turn_is_left_in_any_file() {
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let store = SqliteStore::open(directory.path().join("memfleet.db"), Options::default())
        .await
        .expect("open");
    let mut marks = Marks(StdRng::seed_from_u64(7));
    let scopes = [
        scope("acme", "ada"),
        scope("acme", "bob"),
        scope("globex", "ada"),
    ];
    let told = fill(&store, &mut marks, &scopes).await;
    let none = TurnFilter::default;
    let some: Vec<_> = told[0]
        .iter()
        .step_by(17)
        .map(|marked| marked.turn.id)
        .collect();
    for (scope, filter) in [
        (
            0,
            TurnFilter {
                turns: some,
                ..none()
            },
        ),
        (
            0,
            TurnFilter {
                sessions: vec![session("s3")],
                ..none()
            },
        ),
        (
            1,
            TurnFilter {
                speakers: vec![speaker("Ben")],
                ..none()
            },
        ),
        (
            1,
            TurnFilter {
                time: memfleet_domain::time::TimeRange {
                    start: Some(instant(10)),
                    end: Some(instant(20)),
                },
                ..none()
            },
        ),
        (2, none()),
    ] {
        let erased = store.erase(&scopes[scope], &filter).await.expect("erase");
        assert!(!erased.turns.is_empty());
        let gone: HashSet<_> = erased.turns.into_iter().collect();
        let (gone, stay): (Vec<&Marked>, Vec<&Marked>) = told[scope]
            .iter()
            .partition(|marked| gone.contains(&marked.turn.id));
        assert_eq!(count(directory.path(), &windows(gone)), 0, "{filter:?}");
        assert!(
            stay.is_empty() || count(directory.path(), &windows(stay)) > 0,
            "the search finds what is there"
        );
    }
}

#[tokio::test]
async fn nothing_is_left_of_what_was_never_stored() {
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let store = SqliteStore::open(directory.path().join("memfleet.db"), Options::default())
        .await
        .expect("open");
    let mut marks = Marks(StdRng::seed_from_u64(8));
    let home = scope("acme", "ada");
    let mut told = Vec::new();
    for round in 0..40 {
        let turns: Vec<_> = (0..4)
            .map(|n| marks.turn(&home, &format!("s{n}")))
            .collect();
        let accepted = turns.iter().map(|marked| marked.turn.clone()).collect();
        store
            .publish(
                &batch_in(&home, &round.to_string(), accepted),
                instant(0),
                Bounds::NONE,
            )
            .await
            .expect("publish");
        told.extend(turns);
    }
    for delivery in store.take(60).await.expect("take") {
        let letter = DeadLetter {
            acceptance: delivery.acceptance,
            batch: delivery.batch,
            reason: "POISON: x".into(),
            failed_at: instant(1),
            attempts: 5,
        };
        store.dead_letter(&letter).await.expect("dead letter");
    }
    let filter = TurnFilter {
        sessions: vec![session("s1"), session("s2")],
        ..TurnFilter::default()
    };
    assert_eq!(
        store
            .erase(&home, &filter)
            .await
            .expect("erase")
            .undelivered,
        80
    );
    let (gone, stay): (Vec<&Marked>, Vec<&Marked>) = told
        .iter()
        .partition(|marked| filter.sessions.contains(&marked.turn.session));
    assert_eq!(count(directory.path(), &windows(gone)), 0);
    assert!(count(directory.path(), &windows(stay)) > 0);
    store
        .erase(&home, &TurnFilter::default())
        .await
        .expect("erase");
    assert_eq!(count(directory.path(), &windows(&told)), 0);
}

/// Tells turns of about a quarter of a page, first without vectors and then with them, in random order, and edits of some
/// of them: rows grow, pages are split and rebuilt, and that leaves copies of rows where no delete finds them.
async fn churn(store: &SqliteStore, marks: &mut Marks, home: &Scope) -> Vec<Marked> {
    let mut told: Vec<Marked> = Vec::new();
    for round in 0..24 {
        let mut turns: Vec<_> = (0..50)
            .map(|n| marks.long_turn(home, &format!("s{}", n % 5)))
            .collect();
        for turn in turns.iter_mut().filter(|_| round > 12).step_by(2) {
            let old = marks.0.random_range(0..told.len());
            turn.turn.replaces = Some(told[old].turn.id);
        }
        let accepted = turns.iter().map(|marked| marked.turn.clone()).collect();
        let batch = batch_in(home, &format!("churn {round}"), accepted);
        let batch = without_vectors(indexed(batch, round));
        store.commit(vec![batch]).await.expect("commit");
        told.extend(turns);
    }
    let space = embedding_space("1");
    let waiting = store.without_vectors(&space, 10_000).await;
    let mut waiting = waiting.expect("without vectors");
    waiting.shuffle(&mut marks.0);
    for turn in waiting {
        let accepted = turn.turn.accepted;
        let passages = passages(&accepted.content.text).into_iter();
        let vectors = passages.filter_map(|passage| passage.vectors).collect();
        let made = [TextVectors::of_turn(accepted.id, vectors)];
        let attached = store.attach_vectors(home, &space, &made);
        attached.await.expect("attach");
    }
    told
}

/// Deleting rows is not enough, however they are overwritten: without the scrub that follows an erase this test finds copies on
/// pages that SQLite rebuilt.
#[tokio::test]
async fn nothing_is_left_on_pages_that_were_rebuilt() {
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let store = SqliteStore::open(directory.path().join("memfleet.db"), Options::default())
        .await
        .expect("open");
    let mut marks = Marks(StdRng::seed_from_u64(9));
    let home = scope("acme", "ada");
    let mut left = churn(&store, &mut marks, &home).await;
    let mut gone = Vec::new();
    for _ in 0..3 {
        left.shuffle(&mut marks.0);
        let filter = TurnFilter {
            turns: left[..200].iter().map(|marked| marked.turn.id).collect(),
            ..TurnFilter::default()
        };
        let erased = store.erase(&home, &filter).await.expect("erase");
        let erased: HashSet<_> = erased.turns.into_iter().collect();
        let (now, rest): (Vec<_>, Vec<_>) = left
            .into_iter()
            .partition(|marked| erased.contains(&marked.turn.id));
        gone.extend(now);
        left = rest;
        assert_eq!(count(directory.path(), &windows(&gone)), 0);
    }
    assert!(count(directory.path(), &windows(&left)) > 0);
}

#[tokio::test]
async fn what_the_graph_is_told_after_a_forget_is_not_written() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = scope("acme", "ada");
    let path = directory.path().join("memfleet.db");
    let store = SqliteStore::open(&path, Options::default()).await;
    let store = store.expect("open");
    let said = turn_in(&home, "s", "1", "I live in Rome.");
    let batch = batch_in(&home, "k", vec![said.clone()]);
    store.commit(vec![indexed(batch, 1)]).await.expect("commit");
    let filter = TurnFilter {
        turns: vec![said.id],
        ..TurnFilter::default()
    };
    store.erase(&home, &filter).await.expect("erase");
    let (ada, rome) = (named("Ada"), named("Rome"));
    let triplet = Triplet {
        turns: vec![said.id],
        ..says(1, &ada, "residence", &rome)
    };
    let late = writing(&[&ada, &rome], &[triplet]);
    store.write(&home, late).await.expect("write");
    let entities = store.entities(&home, "", 10, None).await;
    assert_eq!(entities.expect("an answer").items, []);
}

/// An exchange and an injection that hold the words of some turns; states are written again and again, and their rows grow.
async fn prompt(store: &SqliteStore, home: &Scope, number: u64, told: &[Marked]) {
    let turns: Vec<(SpaceId, TurnId)> = told
        .iter()
        .map(|marked| (home.space.clone(), marked.turn.id))
        .collect();
    let words: Vec<_> = told
        .iter()
        .flat_map(|marked| marked.marks.clone())
        .collect();
    let mut exchange = Exchange {
        session: session("s"),
        name: ExchangeName::new(number.to_string()).expect("a name"),
        state: words.join(" "),
        tally: String::new(),
        tokens: 1,
        turns: turns.clone(),
        updated_at: instant(1),
        expires_at: instant(100),
    };
    for version in [None, Some(1), Some(2)] {
        let put = Exchanges::keep(store, &home.tenant, Entry::of(&exchange, version)).await;
        put.expect("put");
        exchange.state = format!("{} {}", exchange.state, words.join(" "));
    }
    let mut id = [0; 16];
    id[..8].copy_from_slice(&number.to_be_bytes());
    let injection = Injection {
        id: InjectionId::from_bytes(id),
        at: instant(1),
        caller: "somebody".into(),
        request_id: "r".into(),
        session: None,
        exchange: None,
        spaces: vec![home.space.clone()],
        decision: "INJECTED".into(),
        block: Some(words.join("\n")),
        block_hash: Some([0; 32]),
        record: "{}".into(),
        turns,
        expires_at: Some(instant(100)),
        forgotten: false,
    };
    let added = Injections::append(store, &home.tenant, &[injection]).await;
    added.expect("append");
}

#[tokio::test]
async fn nothing_of_a_forgotten_turn_is_left_of_any_prompt() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("memfleet.db");
    let store = SqliteStore::open(&path, Options::default()).await;
    let store = store.expect("open");
    let mut marks = Marks(StdRng::seed_from_u64(11));
    let home = scope("acme", "ada");
    let mut told = Vec::new();
    // More than wait to be listed by their turns.
    for round in 0..90 {
        let turns: Vec<_> = (0..3).map(|_| marks.turn(&home, "s")).collect();
        commit(&store, &home, &round.to_string(), round, &turns).await;
        prompt(&store, &home, round, &turns).await;
        told.extend(turns);
    }
    let some: Vec<_> = told.iter().step_by(7).cloned().collect();
    let filter = TurnFilter {
        turns: some.iter().map(|marked| marked.turn.id).collect(),
        ..TurnFilter::default()
    };
    store.erase(&home, &filter).await.expect("erase");
    assert_eq!(count(directory.path(), &windows(&some)), 0);
    // What a gateway still has of them, it writes later.
    for (number, marked) in (1_000..).zip(&some) {
        prompt_late(&store, &home, number, marked).await;
    }
    assert_eq!(count(directory.path(), &windows(&some)), 0);
    assert!(count(directory.path(), &windows(&told)) > 0);
    let everything = TurnFilter::default();
    store.erase(&home, &everything).await.expect("erase");
    assert_eq!(count(directory.path(), &windows(&told)), 0);
}

async fn prompt_late(store: &SqliteStore, home: &Scope, number: u64, marked: &Marked) {
    prompt(store, home, number, std::slice::from_ref(marked)).await;
    let name = ExchangeName::new(number.to_string()).expect("a name");
    let kept = Exchanges::get(store, &home.tenant, &session("s"), &name, instant(1)).await;
    let kept = kept.expect("get").expect("an exchange");
    assert!(kept.forgotten && kept.exchange.state.is_empty());
}

#[tokio::test]
async fn nothing_is_left_of_a_prompt_that_is_past_its_time() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("memfleet.db");
    let store = SqliteStore::open(&path, Options::default()).await;
    let store = store.expect("open");
    let mut marks = Marks(StdRng::seed_from_u64(12));
    let home = scope("acme", "ada");
    let mut told = Vec::new();
    for number in 0..40 {
        let turn = marks.turn(&home, "s");
        prompt(&store, &home, number, std::slice::from_ref(&turn)).await;
        told.push(turn);
    }
    assert!(count(directory.path(), &windows(&told)) > 0);
    let later = instant(1_000);
    let ended = Exchanges::expire(&store, later).await.expect("expire");
    assert_eq!(ended, 40);
    let everything = Injections::expire(&store, later).await.expect("expire");
    assert_eq!(everything, 40);
    store.scrub().await.expect("scrub");
    assert_eq!(count(directory.path(), &windows(&told)), 0);
}
