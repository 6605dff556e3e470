//! What facts say of entities (Amory section 3.2, semanticization): subject, predicate and object of each, in the keys that facts are compared by.

use memfleet_domain::derivation::Derivation;
use memfleet_domain::fact::{Draft, Pattern};
use memfleet_domain::graph::{Entity, Triplet};

use crate::facts::key;

/// A triplet and its ends.
#[derive(Debug, Clone, PartialEq)]
pub struct Relation {
    /// Of whom it is said.
    pub subject: Entity,
    /// Of what else.
    pub object: Entity,
    /// What.
    pub triplet: Triplet,
}

/// What a fact says of its subject and others. "Ada moved" says nothing; "Ada gave Ben a book" says something of two.
pub fn relations(derivation: &Derivation) -> Vec<Relation> {
    let Some(fact) = derivation.fact().filter(|it| !it.claim.subject.is_empty()) else {
        return Vec::new();
    };
    let subject = Entity::new(&fact.claim.subject, &fact.clause.subject);
    let mut relations: Vec<Relation> = Vec::new();
    for object in objects(fact) {
        if relations.iter().any(|it| it.object.id == object.id) {
            continue;
        }
        let triplet = Triplet {
            fact: derivation.id,
            subject: subject.id,
            predicate: fact.claim.attribute.clone(),
            object: object.id,
            negated: fact.clause.negated,
            valid: derivation.valid,
            confidence: fact.confidence,
            turns: derivation.turns.clone(),
        };
        relations.push(Relation {
            subject: subject.clone(),
            object,
            triplet,
        });
    }
    relations
}

/// The value of the claim, in the words of the clause where they are those; of two objects both.
fn objects(fact: &Draft) -> Vec<Entity> {
    let clause = &fact.clause;
    let parts = || [&clause.object, &clause.complement].into_iter().flatten();
    if clause.pattern == Pattern::VerbObjectObject {
        let both = parts().map(|name| (key(name), name));
        let both = both.filter(|(key, _)| !key.is_empty());
        return both.map(|(key, name)| Entity::new(&key, name)).collect();
    }
    let value = &fact.claim.value;
    if value.is_empty() {
        return Vec::new();
    }
    let name = parts().find(|name| key(name) == *value).unwrap_or(value);
    vec![Entity::new(value, name)]
}

#[cfg(test)]
mod tests {
    use memfleet_domain::derivation::Body;
    use memfleet_ports::conformance::knowledge::fact;
    use memfleet_ports::conformance::samples::{instant, turn};

    use super::*;

    fn with(change: impl FnOnce(&mut Draft)) -> Derivation {
        let mut fact = fact(&turn("1", "I live in Rome."), "Ada", "Rome", instant(10));
        if let Body::Fact(draft) = &mut fact.body {
            change(draft);
        }
        fact
    }

    fn names(relations: &[Relation]) -> Vec<(&str, &str, &str)> {
        let names = relations.iter().map(|it| {
            let (subject, object) = (it.subject.name.as_str(), it.object.name.as_str());
            (subject, it.triplet.predicate.as_str(), object)
        });
        names.collect()
    }

    #[test]
    fn a_fact_relates_its_subject_to_its_value() {
        let fact = with(|_| {});
        let relations = relations(&fact);
        assert_eq!(names(&relations), [("Ada", "residence", "Rome")]);
        let triplet = &relations[0].triplet;
        assert_eq!((triplet.fact, triplet.valid), (fact.id, fact.valid));
        assert_eq!(triplet.turns, fact.turns);
    }

    #[test]
    fn of_two_objects_both_are_related() {
        let gave = with(|draft| {
            draft.clause.pattern = Pattern::VerbObjectObject;
            draft.clause.object = Some("Ben".into());
            draft.clause.complement = Some("a book".into());
            draft.claim.attribute = "give".into();
        });
        let expected = [("Ada", "give", "Ben"), ("Ada", "give", "a book")];
        assert_eq!(names(&relations(&gave)), expected);
    }

    #[test]
    fn what_has_no_object_relates_nothing() {
        let moved = with(|draft| draft.claim.value.clear());
        assert_eq!(relations(&moved), []);
    }
}
