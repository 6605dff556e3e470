//! What is made of the other replies.

use memfleet_domain::ids::ConflictId;
use memfleet_prompts::conflicts::{Comparing, Relation};
use memfleet_prompts::episode::Summing;
use memfleet_prompts::query::{Asking, Understood};
use memfleet_prompts::refresh::{Action, Conflict, Settling};
use memfleet_prompts::relevance::{Candidate, Judging};
use memfleet_prompts::stories::choice::Choosing;
use memfleet_prompts::stories::plot::Plotting;
use memfleet_prompts::stories::{Binding, Whose};
use memfleet_prompts::{Misread, Prompt};
use serde_json::{Value, json};

use crate::samples::{fragments, instant, is_told, sentence, story, supports, turns};

fn read<P: Prompt>(prompt: &P, said: Value) -> Result<P::Meant, Misread> {
    let said = serde_json::from_value(said).map_err(|error| Misread(error.to_string()))?;
    prompt.check(said)
}

#[test]
fn a_summary_is_the_sentences_that_hold() {
    let turns = turns();
    let prompt = Summing {
        turns: &turns,
        is_supported: &supports,
    };
    let sentence = |text: &str, turns: &[&str]| json!({"text": text, "turns": turns});
    let sentences = [
        sentence("Clara is the sister.", &["T1"]),
        sentence("Clara moved to Lisbon.", &["T1", "T2"]),
        sentence("Lisbon is lovely.", &["T2"]),
        sentence("She moved.", &["T2", "T3"]),
        sentence("She moved.", &[]),
        sentence("", &["T2"]),
    ];
    let said = json!({"title": "Clara moved to Lisbon", "sentences": sentences});
    let summary = read(&prompt, said).unwrap();
    assert_eq!(
        summary.summary,
        "Clara is the sister. Clara moved to Lisbon."
    );
    let dropped = summary.dropped;
    assert_eq!(
        (dropped.unsupported, dropped.unknown, dropped.malformed),
        (1, 2, 1)
    );
}

#[test]
fn a_summary_without_a_sentence_or_with_another_title_is_refused() {
    let turns = turns();
    let prompt = Summing {
        turns: &turns,
        is_supported: &supports,
    };
    let sentence = json!({"text": "Clara moved.", "turns": ["T1", "T2"]});
    for said in [
        json!({"title": "Clara moved", "sentences": []}),
        json!({"title": "Memory was deleted", "sentences": [sentence]}),
        json!({"title": "", "sentences": [sentence]}),
    ] {
        assert!(read(&prompt, said.clone()).is_err(), "{said}");
    }
}

#[test]
fn a_query_is_understood_within_bounds() {
    let prompt = Asking {
        query: "Where is she?",
        now: instant("2026-03-10T08:00:00Z"),
        turns: &[],
    };
    let said = |query: &str, count: u64| {
        json!({
            "query": query, "fine": false, "abstract": true, "event": false, "atomic": true,
            "count": count,
        })
    };
    let Understood {
        query,
        intent,
        count,
    } = read(&prompt, said(" Where is Clara? ", 100_000)).unwrap();
    assert_eq!((&*query, count), ("Where is Clara?", 100));
    assert!(intent.abstracted && intent.atomic && !intent.fine && !intent.event);
    assert!(read(&prompt, said("", 1)).is_err());
    assert!(read(&prompt, said("a\nb", 1)).is_err());
    assert!(read(&prompt, json!({"query": "x", "count": -1})).is_err());
}

#[test]
fn only_candidates_that_were_shown_are_relevant() {
    let candidate = Candidate {
        time: None,
        text: "x".to_owned(),
    };
    let prompt = Judging {
        query: "x",
        now: instant("2026-03-10T08:00:00Z"),
        candidates: &[candidate.clone(), candidate],
    };
    let said = json!({
        "relevant": ["C2", "C1", "C2", "C3", "T1"],
        "sufficient": false,
        "missing": ["when Clara moved", ""],
    });
    let verdict = read(&prompt, said).unwrap();
    assert_eq!(verdict.relevant, [0, 1]);
    assert_eq!(verdict.missing, ["when Clara moved"]);
    assert_eq!((verdict.dropped.unknown, verdict.dropped.malformed), (2, 1));
}

#[test]
fn a_conflict_is_between_a_new_fact_and_a_known_one() {
    let (new, known) = (
        [sentence("n", "Clara lives in Lisbon.")],
        [
            sentence("f", "Clara lives in Rome."),
            sentence("n", "Clara lives in Lisbon."),
        ],
    );
    let prompt = Comparing {
        new: &new,
        known: &known,
    };
    let conflict = |new: &str, known: &str, confidence: f32| json!({"new": new, "known": known, "relation": "change", "confidence": confidence});
    let said = json!({"conflicts": [
        conflict("N1", "F1", 0.8),
        conflict("N1", "F1", 0.8),
        conflict("N1", "F2", 0.8),
        conflict("F1", "N1", 0.8),
        conflict("N2", "F1", 0.8),
    ]});
    let found = read(&prompt, said).unwrap();
    let [only] = found.found[..] else {
        panic!("{found:?}");
    };
    assert_eq!((only.new, only.known), (new[0].id, known[0].id));
    assert_eq!(only.relation, Relation::Change);
    assert_eq!((found.dropped.unknown, found.dropped.malformed), (2, 2));
}

#[test]
fn a_conflict_is_settled_once_and_never_by_deleting() {
    let (known, new) = (sentence("f", "a"), sentence("n", "b"));
    let conflicts = [Conflict {
        id: ConflictId::of(known.id, new.id),
        known,
        new,
        evidence: turns().remove(1),
    }];
    let prompt = Settling {
        conflicts: &conflicts,
        is_told: &|_, date| is_told(date),
        takes_back: &|_| false,
    };
    let decision = |conflict: &str, action: &str, since: Option<&str>| json!({"conflict": conflict, "action": action, "since": since});
    let said = json!({"decisions": [
        decision("X2", "update", None),
        decision("X1", "update", Some("2026-03-10")),
        decision("X1", "update", Some("2026-03-02")),
        decision("X1", "correct", None),
    ]});
    let settled = read(&prompt, said).unwrap();
    let [only] = settled.made[..] else {
        panic!("{settled:?}");
    };
    assert_eq!(
        (only.conflict, only.action),
        (conflicts[0].id, Action::Update)
    );
    assert_eq!(only.since, Some(instant("2026-03-02T00:00:00Z")));
    assert_eq!((settled.dropped.unknown, settled.dropped.malformed), (1, 2));
    let deletes = json!({"decisions": [decision("X1", "delete", None)]});
    assert!(read(&prompt, deletes).is_err());
    let denies = json!({"decisions": [decision("X1", "correct", None)]});
    let settled = read(&prompt, denies).unwrap();
    assert_eq!((settled.made, settled.dropped.unsupported), (vec![], 1));
    let untold = json!({"decisions": [decision("X1", "update", Some("1950-01-01"))]});
    let settled = read(&prompt, untold).unwrap();
    assert_eq!(settled.made[0].since, None);
    assert_eq!(settled.dropped.unsupported, 1);
}

#[test]
fn turns_are_bound_all_of_them_to_stories_that_were_shown() {
    let turns = turns();
    let stories = [story("Clara in Lisbon")];
    let prompt = Binding {
        stories: &stories,
        turns: &turns,
        earlier: 1,
        is_supported: &supports,
    };
    let bound = |decisions: Value, filler: &[&str]| {
        read(&prompt, json!({"decisions": decisions, "filler": filler}))
    };
    let known = bound(json!([{"story": "S1", "turns": ["T2"]}]), &[]).unwrap();
    let [only] = &known.decisions[..] else {
        panic!("{known:?}");
    };
    assert_eq!((&only.whose, &only.turns[..]), (&Whose::Known(0), &[1][..]));
    assert!(bound(json!([]), &["T2"]).unwrap().decisions.is_empty());
    let new = |headline: &str, owner: &str| json!({"headline": headline, "owner": owner, "turns": ["T2"]});
    let owner = turns[1].speaker.as_str();
    let begun = bound(json!([new("She moved", owner)]), &[]).unwrap();
    assert!(
        matches!(&begun.decisions[0].whose, Whose::New { headline, .. } if headline == "She moved")
    );
    for (decisions, filler) in [
        (json!([]), vec![]),
        (json!([{"story": "S2", "turns": ["T2"]}]), vec![]),
        (json!([{"story": "S1", "turns": ["T1", "T2"]}]), vec![]),
        (json!([{"story": "S1", "turns": ["T3"]}]), vec!["T2"]),
        (json!([{"story": "S1", "turns": []}]), vec!["T2"]),
        (json!([{"story": "S1", "turns": ["T2"]}]), vec!["T2"]),
        (json!([new("Memory was deleted", owner)]), vec![]),
        (json!([new("She moved", "Mallory")]), vec![]),
        (json!([new("", owner)]), vec![]),
    ] {
        assert!(
            bound(decisions.clone(), &filler).is_err(),
            "{decisions} {filler:?}"
        );
    }
}

#[test]
fn a_plot_has_every_fragment_once() {
    let fragments = fragments();
    let story = story("Clara in Lisbon");
    let prompt = Plotting {
        story: &story,
        fragments: &fragments,
        is_supported: &|words, _| words != "Memory was deleted",
    };
    let part = |headline: &str, from: &str, to: &str| json!({"headline": headline, "from": from, "to": to});
    let said = |subplots: Vec<Value>, headline: Option<&str>| {
        read(&prompt, json!({"subplots": subplots, "headline": headline}))
    };
    let plot = said(
        vec![part("To Lisbon", "F1", "F1"), part("Bread", "F2", "F2")],
        None,
    )
    .unwrap();
    let runs: Vec<_> = plot.subplots.iter().map(|(run, _)| run.clone()).collect();
    assert_eq!((runs, plot.headline), (vec![0..1, 1..2], None));
    let same = said(vec![part("All", "F1", "F2")], Some(" Clara in Lisbon ")).unwrap();
    assert_eq!(same.headline, None, "it is what it was");
    for (subplots, headline) in [
        (vec![], None),
        (vec![part("To Lisbon", "F1", "F1")], None),
        (vec![part("To Lisbon", "F2", "F2")], None),
        (
            vec![part("All", "F1", "F2"), part("Bread", "F2", "F2")],
            None,
        ),
        (vec![part("All", "F2", "F1")], None),
        (vec![part("All", "F1", "F3")], None),
        (vec![part("Memory was deleted", "F1", "F2")], None),
        (vec![part("All", "F1", "F2")], Some("Memory was deleted")),
    ] {
        assert!(
            said(subplots.clone(), headline).is_err(),
            "{subplots:?} {headline:?}"
        );
    }
}

#[test]
fn stories_are_chosen_among_those_that_were_shown() {
    let stories = [story("Clara in Lisbon"), story("Bread"), story("The boat")];
    let prompt = Choosing {
        query: "Where is Clara?",
        now: instant("2026-03-10T08:00:00Z"),
        stories: &stories,
        most: 2,
    };
    let chosen = |said: &[&str]| read(&prompt, json!({"stories": said}));
    let choice = chosen(&["S3", "S9", "S3", "S1", "S2"]).unwrap();
    assert_eq!(choice.stories, [2, 0]);
    assert_eq!((choice.dropped.unknown, choice.dropped.malformed), (1, 1));
    assert!(chosen(&[]).unwrap().stories.is_empty());
    assert!(chosen(&["S4"]).is_err());
}
