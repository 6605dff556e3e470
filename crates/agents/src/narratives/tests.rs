use memfleet_domain::Scope;
use memfleet_domain::ids::{DerivationId, IdempotencyKey, SessionId, SpaceId, TenantId, TurnId};

use super::*;

fn turn(name: &str) -> TurnId {
    let scope = Scope {
        tenant: TenantId::new("acme").unwrap(),
        space: SpaceId::new("ada").unwrap(),
    };
    let batch = memfleet_domain::ids::BatchId::of_key(&scope, &IdempotencyKey::new(name).unwrap());
    TurnId::of_batch(batch, &SessionId::new("s").unwrap(), 0)
}

fn opening(vector: &[i8], words: u32) -> Opening {
    Opening {
        vector: Vector::new(vector),
        words,
    }
}

fn fragment(name: &str) -> DerivationId {
    DerivationId::of_fragment(turn(name))
}

fn narrative(name: &str) -> DerivationId {
    DerivationId::of_narrative(turn(name))
}

/// A garden and a boat were spoken of; the boat just now.
fn told() -> (Stories, Stretch) {
    let mut stories = Stories::default();
    let (garden, boat) = (opening(&[100, 0, 10], 12), opening(&[0, 100, 10], 12));
    stories.bind(fragment("garden"), narrative("garden"), &garden);
    stories.bind(fragment("boat"), narrative("boat"), &boat);
    let mut stretch = Stretch::default();
    stretch.push(&boat);
    (stories, stretch)
}

#[test]
fn what_is_like_the_last_fragment_goes_on_with_it() {
    let (stories, stretch) = told();
    let boat = fragment("boat");
    assert!(stories.goes_on(&opening(&[10, 100, 0], 12), boat, &stretch));
    assert!(!stories.goes_on(&opening(&[100, 10, 0], 12), boat, &stretch));
}

#[test]
fn what_is_short_and_like_nothing_goes_on_too() {
    let (stories, stretch) = told();
    let vague = |words| opening(&[10, 10, 100], words);
    assert!(stories.goes_on(&vague(6), fragment("boat"), &stretch));
    assert!(!stories.goes_on(&vague(30), fragment("boat"), &stretch));
}

#[test]
fn a_fragment_comes_to_an_end() {
    let (stories, _) = told();
    let boat = opening(&[0, 100, 10], 12);
    let mut stretch = Stretch::default();
    for _ in 0..LONGEST {
        assert!(stretch.runs == 0 || stories.goes_on(&boat, fragment("boat"), &stretch));
        stretch.push(&boat);
    }
    assert!(!stories.goes_on(&boat, fragment("boat"), &stretch));
}

#[test]
fn an_opening_is_part_of_the_story_that_is_most_like_it_or_begins_one() {
    let (stories, _) = told();
    assert_eq!(
        stories.story(&opening(&[90, 20, 0], 9)),
        Some(narrative("garden"))
    );
    assert_eq!(stories.story(&opening(&[0, 0, 100], 9)), None);
}

#[test]
fn without_vectors_it_all_goes_on_and_is_no_known_story() {
    let (stories, stretch) = told();
    let silent = opening(&[], 200);
    assert!(stories.goes_on(&silent, fragment("boat"), &stretch));
    assert_eq!(stories.story(&silent), None);
    assert_eq!(Vector::new(&[0, 0]), None);
}

#[test]
fn vectors_of_another_space_are_like_nothing() {
    let (stories, _) = told();
    assert_eq!(stories.story(&opening(&[100, 0], 12)), None);
}

#[test]
fn only_the_latest_fragments_are_remembered() {
    let mut stories = Stories::default();
    for at in 0..REMEMBERED + 10 {
        let id = fragment(&at.to_string());
        stories.bind(id, narrative("garden"), &opening(&[1, 2, 3], 5));
    }
    assert_eq!(stories.fragments.len(), REMEMBERED);
    let usual = stories.lengths / REMEMBERED as f32;
    assert!((usual - 6.0_f32.ln()).abs() < 1e-2);
}
