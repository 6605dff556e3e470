//! Answers as they arrive.

use memfleet_domain::ids::TurnId;
use memfleet_prompts::answer::{Citations, Part};
use proptest::prelude::*;

use crate::samples::{turn_id, turns};

fn read(pieces: &[&str]) -> (Vec<Part>, u32) {
    let turns = turns();
    let mut citations = Citations::of(&turns);
    let mut parts: Vec<Part> = Vec::new();
    for piece in pieces {
        parts.extend(citations.push(piece));
    }
    parts.extend(citations.finish());
    (parts, citations.unknown)
}

fn words(parts: &[Part]) -> String {
    let text = |part: &Part| match part {
        Part::Text(text) => text.clone(),
        _ => String::new(),
    };
    parts.iter().map(text).collect()
}

fn cited(parts: &[Part]) -> Vec<TurnId> {
    let cited = parts.iter().filter_map(|part| match part {
        Part::Cites(turn) => Some(*turn),
        _ => None,
    });
    cited.collect()
}

#[test]
fn citations_are_turns_wherever_the_pieces_break() {
    for pieces in [
        &["In Lisbon [T2], she says [T1, T2]."][..],
        &["In Lis", "bon [", "T", "2", "], she says [T1", ", T2]", "."],
    ] {
        let (parts, unknown) = read(pieces);
        assert_eq!(words(&parts), "In Lisbon , she says .");
        assert_eq!(cited(&parts), [turn_id("2"), turn_id("1"), turn_id("2")]);
        assert_eq!(unknown, 0);
    }
}

#[test]
fn what_was_not_shown_is_not_cited() {
    let (parts, unknown) = read(&["Yes [T9][T0] [T1]."]);
    assert_eq!((words(&parts).as_str(), unknown), ("Yes  .", 2));
    assert_eq!(cited(&parts), [turn_id("1")]);
}

#[test]
fn other_brackets_are_text() {
    let text = "A list [1, 2] of [things], an open [bracket";
    let (parts, unknown) = read(&[text]);
    assert_eq!((words(&parts).as_str(), unknown), (text, 0));
}

#[test]
fn no_answer_is_told_apart_from_an_answer() {
    for pieces in [
        &["NOT_IN_MEMORY"][..],
        &[" NOT_", "IN_MEMORY", ". Sorry"],
        &[],
        &[" "],
    ] {
        assert_eq!(read(pieces).0, [Part::Abstains], "{pieces:?}");
    }
    let (parts, _) = read(&["NOT", "hing is known."]);
    assert_eq!(words(&parts), "NOThing is known.");
    assert_eq!(words(&read(&["NOT_IN"]).0), "NOT_IN");
}

proptest! {
    #[test]
    fn no_text_is_lost_or_held_back(text in "[a-z\\[\\] T1,]{1,80}", cut in 0usize..80) {
        let (head, tail) = text.split_at(cut.min(text.len()));
        let (parts, whole) = (read(&[head, tail]).0, read(&[&text]).0);
        prop_assert_eq!(words(&parts), words(&whole));
        prop_assert_eq!(cited(&parts), cited(&whole));
    }
}
