//! Turns, facts, and checks that take a fact whose words are all in its turn.

use memfleet_domain::fact::{Claim, Clause, Draft, Stance};
use memfleet_domain::ids::{DerivationId, ExternalId, SessionId, SpaceId, TenantId, TurnId};
use memfleet_domain::{Scope, Timestamp};
use memfleet_prompts::Press;
use memfleet_prompts::conflicts::Sentence;
use memfleet_prompts::facts::{Checks, Facts};
use memfleet_prompts::handles::Turn;
use memfleet_prompts::stories::Story;
use memfleet_prompts::stories::plot::Fragment;

pub fn press() -> Press {
    Press::new([7; 32])
}

pub fn instant(text: &str) -> Timestamp {
    text.parse().unwrap()
}

pub fn tenant() -> TenantId {
    TenantId::new("acme").unwrap()
}

pub fn turn_id(name: &str) -> TurnId {
    let scope = Scope {
        tenant: tenant(),
        space: SpaceId::new("ada").unwrap(),
    };
    let session = SessionId::new("s").unwrap();
    TurnId::of_external(&scope, &session, &ExternalId::new(name).unwrap())
}

pub fn turn(name: &str, speaker: &str, text: &str) -> Turn {
    Turn {
        id: turn_id(name),
        said_at: instant("2026-03-09T10:00:00Z"),
        speaker: speaker.to_owned(),
        text: text.to_owned(),
    }
}

pub fn turns() -> Vec<Turn> {
    vec![
        turn("1", "Ben", "How is your sister Clara?"),
        turn(
            "2",
            "Ada",
            "She moved to Lisbon last week.\nI don't like it.",
        ),
    ]
}

fn claim(clause: &Clause) -> Claim {
    Claim {
        subject: clause.subject.to_lowercase(),
        attribute: clause.predicate.clone(),
        value: clause.complement.clone().unwrap_or_default(),
    }
}

fn has_words(text: &str, among: &[&Turn]) -> bool {
    let among: Vec<_> = among.iter().map(|turn| turn.text.to_lowercase()).collect();
    let words = text.split(|character: char| !character.is_alphanumeric());
    let mut words = words.filter(|word| word.len() > 3);
    words.all(|word| among.iter().any(|text| text.contains(&word.to_lowercase())))
}

pub fn supports(text: &str, turns: &[&Turn]) -> bool {
    has_words(text, turns)
}

fn is_supported(draft: &Draft, turn: &Turn, all: &[Turn]) -> bool {
    let related = all.iter().filter(|other| draft.related.contains(&other.id));
    let among: Vec<_> = std::iter::once(turn).chain(related).collect();
    has_words(&draft.text, &among)
}

/// A turn tells of March 2026 and takes nothing back.
fn as_told(mut draft: Draft, _: &Turn) -> (Draft, u32) {
    let given = (draft.valid.start, draft.stance);
    draft.valid.start = draft.valid.start.filter(|date| is_told(*date));
    draft.stance = Stance::States;
    let untold = [given.0 != draft.valid.start, given.1 != draft.stance];
    (draft, untold.map(u32::from).iter().sum())
}

/// Whether a date is in March 2026.
pub fn is_told(date: Timestamp) -> bool {
    date.to_rfc3339().starts_with("2026-03")
}

pub fn facts(turns: &[Turn]) -> Facts<'_> {
    Facts {
        turns,
        earlier: 1,
        known: &[],
        checks: Checks {
            claim: &claim,
            is_supported: &is_supported,
            as_told: &as_told,
        },
    }
}

pub fn sentence(name: &str, text: &str) -> Sentence {
    let claim = Claim {
        subject: name.to_owned(),
        attribute: String::new(),
        value: String::new(),
    };
    Sentence {
        id: DerivationId::of_fact(turn_id(name), &claim, false),
        text: text.to_owned(),
        speaker: None,
        from: Some(instant("2025-01-01T00:00:00Z")),
        until: None,
    }
}

pub fn story(headline: &str) -> Story {
    Story {
        headline: headline.to_owned(),
        owner: "Ada".to_owned(),
        characters: vec!["Ada".to_owned(), "Ben".to_owned()],
        subplots: vec!["A flat at the river".to_owned()],
    }
}

pub fn fragments() -> [Fragment; 2] {
    let fragment = |at: &str, text: &str| Fragment {
        said_at: instant(at),
        text: text.to_owned(),
    };
    [
        fragment("2026-03-09T10:00:00Z", "Ada: Clara moved to Lisbon."),
        fragment("2026-03-10T10:00:00Z", "Ada: She bakes bread there."),
    ]
}
