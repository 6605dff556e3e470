//! Contrast sets: a scenario in which something changes and two edits of it, each in one turn,
//! after which something else holds. The edits of `001` are `001a` and `001b`.

use std::collections::BTreeMap;

use super::LabelledScenario;

/// Letters of the edits, behind the number of the base.
const EDITS: [char; 2] = ['a', 'b'];

impl LabelledScenario {
    /// True for an edit of another scenario of a contrast set.
    pub fn is_edit(&self) -> bool {
        self.number.ends_with(EDITS)
    }

    /// Turns whose texts differ; none where the numbers of turns differ.
    fn differing_turns(&self, other: &Self) -> Option<usize> {
        let turns = self.turns.iter().zip(&other.turns);
        let differing = turns.filter(|(one, other)| one.said != other.said).count();
        (self.turns.len() == other.turns.len()).then_some(differing)
    }
}

/// Faults of a writer's triples: those that lack a version, and edits that are no edits.
pub(super) fn problems(scenarios: &[LabelledScenario]) -> Vec<String> {
    let mut triples: BTreeMap<&str, Vec<&LabelledScenario>> = BTreeMap::new();
    for scenario in scenarios {
        let base = scenario.number.trim_end_matches(EDITS);
        triples.entry(base).or_default().push(scenario);
    }
    let faults = triples.iter().filter_map(|(base, versions)| {
        let fault = fault(base, versions)?;
        Some(format!("{base}: {fault}"))
    });
    faults.collect()
}

fn fault(base: &str, versions: &[&LabelledScenario]) -> Option<&'static str> {
    let version = |number: &str| versions.iter().find(|it| it.number == number);
    let [first, second] = EDITS.map(|letter| version(&format!("{base}{letter}")));
    let (Some(base), Some(first), Some(second), 3) = (version(base), first, second, versions.len())
    else {
        return Some("a triple is a base and the edits a and b");
    };
    if !base.kind.changes() {
        return Some("nothing changes in the base");
    }
    let edits = [first, second];
    if edits.iter().any(|edit| edit.language != base.language) {
        return Some("the versions have several languages");
    }
    let is_edit = |edit: &&&LabelledScenario| base.differing_turns(edit) == Some(1);
    (!edits.iter().all(is_edit)).then_some("an edit differs from its base in other than one turn")
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::problems;

    const BASE: &str = "## 001 | en | plain_change\n@ 2025-01-14T18:40 Ilse: I'm in Emden.\n\
        @ 2025-02-14T18:40 Ilse: I've moved to Leer.\n";

    fn problems_of(text: &str) -> Vec<String> {
        problems(&read(text).unwrap())
    }

    fn edit(letter: char) -> String {
        let edit = BASE.replace("I've", "Grete's");
        let edit = edit.replace("plain_change", "other_person");
        edit.replace("001", &format!("001{letter}"))
    }

    #[test]
    fn a_whole_triple_has_no_fault() {
        let text = [BASE.to_owned(), edit('a'), edit('b')].concat();
        assert!(problems_of(&text).is_empty());
    }

    #[test]
    fn a_triple_that_is_broken_is_told() {
        for (text, fault) in [
            (
                [BASE.to_owned(), edit('a')].concat(),
                "001: a triple is a base and the edits a and b",
            ),
            (
                [edit('b').replace("001b", "001"), edit('a'), edit('b')].concat(),
                "001: nothing changes in the base",
            ),
            (
                [
                    BASE.to_owned(),
                    edit('a').replace("| en", "| de"),
                    edit('b'),
                ]
                .concat(),
                "001: the versions have several languages",
            ),
            (
                [
                    BASE.to_owned(),
                    edit('a').replace("Emden", "Jever"),
                    edit('b'),
                ]
                .concat(),
                "001: an edit differs from its base in other than one turn",
            ),
            (
                [BASE.to_owned(), BASE.replace("001", "001a"), edit('b')].concat(),
                "001: an edit differs from its base in other than one turn",
            ),
        ] {
            assert_eq!(problems_of(&text), [fault]);
        }
    }
}
