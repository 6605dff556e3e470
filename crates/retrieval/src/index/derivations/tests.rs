use super::*;
use crate::fixture::{derivation, id};
use memfleet_domain::derivation::Kind;

fn derived(name: u32, turns: &[u32], text: &str) -> IndexedDerivation {
    derivation(Kind::Episode, name, turns, text)
}

#[test]
fn a_derivation_is_found_by_each_of_its_turns_until_it_is_withdrawn() {
    let mut derivations = Derivations::default();
    let one = derived(1, &[1, 2], "the garden");
    derivations.put(&one);
    derivations.put(&one);
    derivations.put(&derived(2, &[2], "the piano"));
    assert_eq!(derivations.of(id(2)).count(), 2);
    assert_eq!(derivations.of(id(1)).next().map(|it| it.id), Some(one.id));
    assert_eq!(derivations.passages().alive(), 2);
    derivations.remove(one.id);
    derivations.remove(one.id);
    assert_eq!(derivations.of(id(1)).count(), 0);
    assert_eq!(derivations.of(id(2)).count(), 1);
}

#[test]
fn what_comes_from_a_forgotten_turn_goes_with_it() {
    let mut derivations = Derivations::default();
    derivations.put(&derived(1, &[1, 2], "the garden"));
    derivations.put(&derived(2, &[3], "the piano"));
    derivations.forget(id(2));
    assert_eq!(derivations.of(id(1)).count(), 0);
    assert_eq!(derivations.passages().alive(), 1);
}

#[test]
fn compaction_keeps_what_is_there() {
    let mut derivations = Derivations::default();
    for name in 0..1_000 {
        derivations.put(&derived(name, &[name], "the garden"));
    }
    for name in 0..900 {
        derivations.forget(id(name));
    }
    assert!(derivations.passages().rows() < 1_000);
    for name in 900..1_000 {
        let row = derivations.of(id(name)).next().unwrap().row;
        assert_eq!(derivations.at(row).turns, [id(name)]);
    }
}
