//! What facts say of entities (Amory section 3.2, semanticization): subject, predicate and object of each, in the keys that facts are compared by.
//! And what callers say of two names.

use std::collections::HashMap;

use memfleet_domain::derivation::{Body, Derivation, Kind};
use memfleet_domain::fact::{Claim, Clause, Draft, Pattern};
use memfleet_domain::graph::{Entity, Identity, Triplet};
use memfleet_domain::ids::EntityId;

use crate::facts::{claim, key};

/// Predicate between the speaker of a statement and a name in it.
const MENTIONS: &str = "mentions";

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

/// Whether derivations of a kind say something of entities.
pub fn relates(kind: Kind) -> bool {
    matches!(kind, Kind::Fact | Kind::Identity)
}

/// What a derivation says of its subject and others. "Ada moved" says nothing; "Ada gave Ben a book" says something of two.
pub fn relations(derivation: &Derivation) -> Vec<Relation> {
    match &derivation.body {
        Body::Fact(fact) if fact.claim.subject.is_empty() => Vec::new(),
        Body::Fact(fact) if fact.is_statement() => of_statement(derivation, fact),
        Body::Fact(fact) => match &fact.clause {
            Some(clause) => of_clause(derivation, fact, clause, &fact.claim),
            None => Vec::new(),
        },
        Body::Identity(identity) => vec![of_identity(derivation, identity)],
        _ => Vec::new(),
    }
}

/// What derivations say of entities, and these, each once.
pub fn told<'d>(
    derivations: impl IntoIterator<Item = &'d Derivation>,
) -> (Vec<Entity>, Vec<Triplet>) {
    let mut entities: HashMap<EntityId, Entity> = HashMap::new();
    let mut triplets = Vec::new();
    for relation in derivations.into_iter().flat_map(relations) {
        for entity in [relation.subject, relation.object] {
            entities.entry(entity.id).or_insert(entity);
        }
        triplets.push(relation.triplet);
    }
    (entities.into_values().collect(), triplets)
}

/// Relations that the clause of a fact says, by what it claims.
fn of_clause(
    derivation: &Derivation,
    fact: &Draft,
    clause: &Clause,
    claim: &Claim,
) -> Vec<Relation> {
    let subject = subject(claim, clause);
    let mut relations: Vec<Relation> = Vec::new();
    for object in objects(claim, clause) {
        if relations.iter().any(|it| it.object.id == object.id) {
            continue;
        }
        let triplet = Triplet {
            fact: derivation.id,
            subject: subject.id,
            predicate: claim.attribute.clone(),
            object: object.id,
            negated: clause.negated,
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

/// Relations of a statement: what its clause says, where it has one, and that its speaker mentions
/// each other name in it.
fn of_statement(derivation: &Derivation, fact: &Draft) -> Vec<Relation> {
    let clause = fact.clause.as_ref();
    let said = clause.map(|clause| of_clause(derivation, fact, clause, &claim(clause)));
    let mut relations = said.unwrap_or_default();
    let related = relations
        .iter()
        .flat_map(|it| [it.subject.id, it.object.id]);
    let related: Vec<EntityId> = related.collect();
    let subject = Entity::new(&fact.claim.subject, &fact.claim.subject);
    let names = fact.names.iter();
    let named = names.map(|name| Entity::new(&key(&name.text), &name.text));
    let is_other = |object: &Entity| object.id != subject.id && !related.contains(&object.id);
    let mentions = named.filter(is_other).map(|object| Relation {
        triplet: Triplet {
            fact: derivation.id,
            subject: subject.id,
            predicate: MENTIONS.to_owned(),
            object: object.id,
            negated: false,
            valid: derivation.valid,
            confidence: fact.confidence,
            turns: derivation.turns.clone(),
        },
        subject: subject.clone(),
        object,
    });
    relations.extend(mentions);
    relations
}

/// A caller's word is sure.
fn of_identity(derivation: &Derivation, identity: &Identity) -> Relation {
    let (subject, object) = (&identity.entity, &identity.other);
    Relation {
        subject: subject.clone(),
        object: object.clone(),
        triplet: Triplet {
            fact: derivation.id,
            subject: subject.id,
            predicate: Identity::PREDICATE.to_owned(),
            object: object.id,
            negated: !identity.same,
            valid: derivation.valid,
            confidence: 1.0,
            turns: derivation.turns.clone(),
        },
    }
}

/// Whom the claim is about, in the words of the clause: "Noor", where its subject is "Noor's name".
fn subject(claim: &Claim, clause: &Clause) -> Entity {
    let (of, named) = (&claim.subject, clause.subject.as_str());
    let mut owners = named.match_indices("'s ").map(|(at, _)| &named[..at]);
    let name = match key(named) == *of {
        true => Some(named),
        false => owners.find(|owner| key(owner) == *of),
    };
    Entity::new(of, name.unwrap_or(of))
}

/// The value of the claim, in the words of the clause where they are those; of two objects both.
fn objects(claim: &Claim, clause: &Clause) -> Vec<Entity> {
    let parts = || [&clause.object, &clause.complement].into_iter().flatten();
    if clause.pattern == Pattern::VerbObjectObject {
        let both = parts().map(|name| (key(name), name));
        let both = both.filter(|(key, _)| !key.is_empty());
        return both.map(|(key, name)| Entity::new(&key, name)).collect();
    }
    let value = &claim.value;
    if value.is_empty() {
        return Vec::new();
    }
    let name = parts().find(|name| key(name) == *value).unwrap_or(value);
    vec![Entity::new(value, name)]
}

#[cfg(test)]
mod tests {
    use memfleet_domain::derivation::Body;
    use memfleet_domain::fact::FactName;
    use memfleet_domain::statement::NameKind;
    use memfleet_ports::conformance::knowledge::{fact, statement};
    use memfleet_ports::conformance::samples::{instant, turn};

    use super::*;

    fn with(change: impl FnOnce(&mut Draft)) -> Derivation {
        let mut fact = fact(&turn("1", "I live in Rome."), "Ada", "Rome", instant(10));
        if let Body::Fact(draft) = &mut fact.body {
            change(draft);
        }
        fact
    }

    fn clause(draft: &mut Draft) -> &mut Clause {
        draft.clause.as_mut().unwrap()
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
    fn who_has_an_attribute_goes_by_their_own_name() {
        for (subject, key, expected) in [
            ("Ada's nickname", "ada", "Ada"),
            ("Ada's sister's name", "ada's sister", "Ada's sister"),
            ("The name of it", "ada", "ada"),
        ] {
            let fact = with(|draft| {
                clause(draft).subject = subject.into();
                draft.claim.subject = key.into();
            });
            let entity = &relations(&fact)[0].subject;
            assert_eq!((&*entity.key, &*entity.name), (key, expected));
        }
    }

    #[test]
    fn of_two_objects_both_are_related() {
        let gave = with(|draft| {
            clause(draft).pattern = Pattern::VerbObjectObject;
            clause(draft).object = Some("Ben".into());
            clause(draft).complement = Some("a book".into());
            draft.claim.attribute = "give".into();
        });
        let expected = [("Ada", "give", "Ben"), ("Ada", "give", "a book")];
        assert_eq!(names(&relations(&gave)), expected);
    }

    #[test]
    fn a_statement_relates_its_speaker_to_the_names_in_it() {
        let statement = with(|draft| {
            draft.clause = None;
            let name = |text: &str| FactName {
                text: text.into(),
                kind: NameKind::Place,
            };
            draft.names = vec![name("Oslo"), name("Ada")];
        });
        let relations = relations(&statement);
        assert_eq!(names(&relations), [("ada", "mentions", "Oslo")]);
    }

    #[test]
    fn a_statement_with_a_clause_relates_what_it_says_and_the_other_names() {
        let said = "I live in Rome with Ben.";
        let statement = statement(&turn("1", said), said, instant(10));
        let with_clause = |clause: Option<Clause>| {
            let mut statement = statement.clone();
            if let Body::Fact(draft) = &mut statement.body {
                let name = |text: &str| FactName {
                    text: text.into(),
                    kind: NameKind::Person,
                };
                draft.names = vec![name("Rome"), name("Ben")];
                draft.clause = clause;
            }
            statement
        };
        let clause = with(|_| {}).fact().and_then(|fact| fact.clause.clone());
        let expected = [("Ada", "residence", "Rome"), ("ada", "mentions", "Ben")];
        assert_eq!(names(&relations(&with_clause(clause))), expected);
        let expected = [("ada", "mentions", "Rome"), ("ada", "mentions", "Ben")];
        assert_eq!(names(&relations(&with_clause(None))), expected);
    }

    #[test]
    fn what_has_no_object_relates_nothing() {
        let moved = with(|draft| draft.claim.value.clear());
        assert_eq!(relations(&moved), []);
    }
}
