//! Match of the facts that a language model finds in a turn with the statements of the turn: by the
//! bytes that they rest on.

use std::ops::Range;

use memfleet_domain::derivation::{Derivation, Origin};
use memfleet_domain::fact::Draft;

/// Place of the statement of the same words as a fact: the one that shares most bytes with it, at
/// least half of the shorter one of the two.
pub(crate) fn of_same_words(fact: &Draft, statements: &[&Derivation]) -> Option<usize> {
    let mut best = None;
    for (place, statement) in statements.iter().enumerate() {
        let Some(said) = statement.fact() else {
            continue;
        };
        let (own, other) = (&fact.evidence, &said.evidence);
        let shared = own
            .end
            .min(other.end)
            .saturating_sub(own.start.max(other.start));
        let shorter = length(own).min(length(other));
        let is_best = best.is_none_or(|(_, most)| shared > most);
        if shared > 0 && 2 * u64::from(shared) >= u64::from(shorter) && is_best {
            best = Some((place, shared));
        }
    }
    best.map(|(place, _)| place)
}

fn length(bytes: &Range<u32>) -> u32 {
    bytes.end.saturating_sub(bytes.start)
}

/// True for a statement of the reader of turns that has no clause. A caller's correction is left
/// alone.
pub(crate) fn lacks_clause(statement: &Derivation) -> bool {
    let is_extracted = matches!(statement.origin, Origin::Extracted(_));
    let fact = statement.fact();
    is_extracted && fact.is_some_and(|fact| fact.statement.is_some() && fact.clause.is_none())
}

/// Facts of a model with the places of the statements that they give their clauses to, each the
/// first of its statement. Where its statement says yes a fact that says no is left out, and the
/// other way round; so is one whose statement has a clause, or that has no statement.
pub(crate) fn matched(facts: Vec<Draft>, statements: &[&Derivation]) -> Vec<(usize, Draft)> {
    let mut matched: Vec<(usize, Draft)> = Vec::new();
    for fact in facts {
        let place = of_same_words(&fact, statements).filter(|place| {
            let statement = statements[*place];
            let is_free = matched.iter().all(|(other, _)| other != place);
            let denies = statement.fact().is_some_and(Draft::is_negated);
            is_free && lacks_clause(statement) && denies == fact.is_negated()
        });
        matched.extend(place.map(|place| (place, fact)));
    }
    matched
}

#[cfg(test)]
mod tests {
    use memfleet_domain::derivation::Body;
    use memfleet_ports::conformance::knowledge::{fact, statement};
    use memfleet_ports::conformance::samples::{instant, turn};

    use super::*;

    const SAID: &str = "I live in Rome. I sing.";

    fn stated() -> [Derivation; 2] {
        let turn = turn("1", SAID);
        ["I live in Rome.", "I sing."].map(|words| statement(&turn, words, instant(1)))
    }

    /// A fact of a model that rests on these bytes.
    fn found(evidence: Range<u32>) -> Draft {
        let fact = fact(&turn("1", SAID), "Ada", "Rome", instant(1));
        let Body::Fact(draft) = fact.body else {
            unreachable!("it is a fact");
        };
        Draft { evidence, ..*draft }
    }

    fn draft(derivation: &mut Derivation) -> &mut Draft {
        match &mut derivation.body {
            Body::Fact(draft) => draft,
            _ => unreachable!("it is a fact"),
        }
    }

    #[test]
    fn a_fact_goes_with_the_statement_that_shares_most_of_its_words() {
        let stated = stated();
        let statements: Vec<&Derivation> = stated.iter().collect();
        for (evidence, expected) in [
            (0..14, Some(0)),
            (2..6, Some(0)),
            (0..23, Some(0)),
            (16..23, Some(1)),
            (12..23, Some(1)),
            (13..16, Some(0)),
            (14..23, Some(1)),
            (30..40, None),
            (5..5, None),
        ] {
            let place = of_same_words(&found(evidence.clone()), &statements);
            assert_eq!(place, expected, "{evidence:?}");
        }
        // Two of five bytes are too few.
        let (early, _) = stated.split_at(1);
        let early: Vec<&Derivation> = early.iter().collect();
        assert_eq!(of_same_words(&found(13..18), &early), None);
    }

    #[test]
    fn a_statement_has_one_clause_and_denies_what_it_denies() {
        let places = |stated: &[Derivation; 2], facts: Vec<Draft>| {
            let statements: Vec<&Derivation> = stated.iter().collect();
            let matched = matched(facts, &statements).into_iter();
            matched.map(|(place, _)| place).collect::<Vec<_>>()
        };
        let both = || vec![found(16..23), found(0..14), found(0..10)];
        assert_eq!(places(&stated(), both()), [1, 0]);
        let mut denied = stated();
        if let Some(labels) = &mut draft(&mut denied[0]).statement {
            labels.negated = 0.75;
        }
        assert_eq!(places(&denied, both()), [1]);
        let mut with_clause = stated();
        draft(&mut with_clause[1]).clause = found(0..1).clause;
        assert_eq!(places(&with_clause, both()), [0]);
        let mut corrected = stated();
        corrected[0].origin = Origin::Corrected;
        assert_eq!(places(&corrected, both()), [1]);
    }
}
