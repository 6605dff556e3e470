//! What every store of derived memory does.

mod changing;
mod expiring;
mod feeding;
mod following;
mod forgetting;
mod reading;
mod rebuilding;
mod restoring;

use memfleet_domain::derivation::{
    Body, Change, ChangeKind, Conflict, Contradiction, Derivation, Origin, Status,
};
use memfleet_domain::fact::{
    Claim, Clause, Draft, FactLine, FactName, Pattern, Stance, StatementLabels,
};
use memfleet_domain::ids::{ChangeId, ConflictId, DerivationId, TurnId};
use memfleet_domain::narrative::Fragment;
use memfleet_domain::statement::{NameKind, StatementKind, StatementOwner};
use memfleet_domain::time::{TimeRange, Timestamp};
use memfleet_domain::turn::AcceptedTurn;

use super::samples::{batch, home, indexed, instant, passages, turn};
use crate::knowledge::{Applied, Knowledge, Question, Revision, Rewrite, Work};
use crate::ledger::Ledger;

pub use self::changing::*;
pub use self::expiring::*;
pub use self::feeding::*;
pub use self::following::*;
pub use self::forgetting::*;
pub use self::reading::*;
pub use self::rebuilding::*;
pub use self::restoring::*;

/// Runs every case on a store.
#[macro_export]
macro_rules! knowledge_conformance {
    ($fresh:ident) => {
        $crate::conformance_cases!(
            $fresh,
            knowledge,
            [
                a_fact_reads_back_as_it_was_written,
                facts_are_found_by_claim_by_turn_and_by_what_held_when,
                fragments_are_found_by_their_narrative,
                pages_bring_every_derivation_once,
                a_chronicle_is_in_the_order_of_time,
                a_chronicle_is_of_what_is_asked_for,
                the_worthiest_facts_come_first_and_rules_have_none,
                conflicts_are_found_by_their_facts,
                another_space_has_facts_of_its_own,
                a_change_that_is_made_twice_is_one,
                a_version_that_skips_one_is_stale_and_leaves_nothing,
                a_fact_of_a_turn_that_is_not_there_is_stale,
                a_fact_of_a_turn_that_was_replaced_is_stale,
                the_past_reads_as_it_was_known,
                changes_are_listed_newest_first_with_what_they_wrote,
                a_change_that_was_undone_says_so,
                conflicts_keep_what_became_of_them,
                a_conflict_that_is_found_after_it_was_settled_is_found,
                a_possible_conflict_gives_way_to_one_that_is_found,
                an_index_hears_of_what_is_derived,
                an_index_hears_of_what_is_withdrawn,
                vectors_of_a_version_that_another_followed_are_left_alone,
                work_is_pending_until_the_stage_has_reached_the_head,
                spaces_of_a_tenant_are_pending_behind_the_first_of_each_other,
                one_worker_at_a_time_has_a_space,
                a_space_whose_claims_are_lost_is_left_alone_for_longer_each_time,
                progress_from_elsewhere_is_stale,
                what_a_forgotten_turn_stated_is_gone,
                what_drew_on_a_forgotten_turn_in_an_earlier_version_is_withdrawn,
                a_forget_counts_what_is_made_from_its_turns,
                forgetting_the_newer_fact_opens_the_older_again,
                forgetting_the_newer_fact_leaves_no_time_at_which_the_older_was_unknown,
                every_fact_that_a_forget_opens_is_a_change_of_its_own,
                forgetting_a_space_leaves_nothing_derived,
                turns_beside_forgotten_ones_are_pending_again,
                a_forget_has_a_bounded_part_of_the_session_read_again,
                what_a_rebuild_found_is_in_use_when_all_of_it_is_there,
                a_rebuild_tells_what_it_did_not_derive_again,
                a_rebuild_that_is_begun_twice_is_one,
                a_rebuild_forgets_what_is_forgotten,
                what_callers_decided_is_listed_with_its_history,
                a_history_takes_the_place_of_what_was_derived,
                a_history_takes_the_place_of_a_conflict_that_was_found,
                a_history_without_its_turns_or_of_another_state_is_stale,
                a_history_that_lacks_a_version_comes_back_equal,
                a_change_that_wrote_two_facts_comes_with_one,
                a_change_that_callers_built_on_stays_as_it_is,
                a_history_replaces_nothing_that_was_known_when_a_hold_began,
                a_history_replaces_what_was_derived_since_a_hold_began,
                earlier_versions_go_after_their_time,
                a_fact_that_was_succeeded_goes_after_its_time,
                what_was_withdrawn_or_ended_goes_after_its_time,
                what_a_caller_said_last_stays,
                what_a_forget_may_open_again_stays,
                a_chain_of_succeeded_facts_goes_whole,
                versions_of_a_space_on_hold_stay,
            ]
        );
    };
}

/// A statement of a turn in its own words, of its speaker, from an instant on.
pub fn statement(turn: &AcceptedTurn, words: &str, from: Timestamp) -> Derivation {
    let mut statement = fact(turn, turn.speaker.as_str(), words, from);
    let start = turn.content.text.find(words).expect("the turn says it");
    if let Body::Fact(draft) = &mut statement.body {
        words.clone_into(&mut draft.text);
        draft.clause = None;
        draft.statement = Some(StatementLabels {
            kind: StatementKind::State,
            kind_probability: 0.75,
            owner: StatementOwner::Speaker,
            owner_probability: 0.875,
            negated: 0.0,
            keep: 0.5,
            ends: 0.25,
            kept: false,
            vectors: None,
        });
        draft.line = Some(FactLine {
            text: words.to_owned(),
            bytes: start as u32..(start + words.len()) as u32,
            probability: 0.875,
        });
        draft.names = Vec::new();
        draft.claim.attribute = String::new();
        draft.evidence = start as u32..(start + words.len()) as u32;
        statement.id = DerivationId::of_fact(turn.id, &draft.claim, false);
    }
    statement
}

/// A fact of a turn: `subject` has `value` from an instant on.
pub fn fact(turn: &AcceptedTurn, subject: &str, value: &str, from: Timestamp) -> Derivation {
    let claim = Claim {
        subject: subject.to_lowercase(),
        attribute: "residence".into(),
        value: value.to_lowercase(),
    };
    let draft = Draft {
        text: format!("{subject} lives in {value}."),
        clause: Some(Clause {
            pattern: Pattern::VerbComplement,
            subject: subject.into(),
            predicate: "live in".into(),
            object: None,
            complement: Some(value.into()),
            negated: false,
        }),
        statement: None,
        stance: Stance::States,
        said_at: Some(from),
        evidence: 0..4,
        valid: TimeRange::default(),
        related: Vec::new(),
        confidence: 0.75,
        line: None,
        names: vec![FactName {
            text: value.to_owned(),
            kind: NameKind::Place,
        }],
        topics: vec!["residence".to_owned()],
        claim,
    };
    let change = derived(turn.id);
    Derivation {
        id: DerivationId::of_fact(turn.id, &draft.claim, false),
        version: 1,
        body: Body::Fact(Box::new(draft)),
        turns: vec![turn.id],
        valid: TimeRange {
            start: Some(from),
            end: None,
        },
        known: TimeRange {
            start: Some(instant(1)),
            end: None,
        },
        origin: Origin::Extracted("sample-1".into()),
        change,
        succeeded_by: None,
    }
}

/// A fragment of a narrative, which a turn opens.
pub fn fragment(turn: &AcceptedTurn, narrative: DerivationId) -> Derivation {
    let body = Fragment {
        narrative,
        subplot: None,
        session: turn.session.clone(),
        headline: turn.content.text.clone(),
        span: TimeRange::default(),
        binder: "sample-1".into(),
    };
    Derivation {
        id: DerivationId::of_fragment(turn.id),
        body: Body::Fragment(Box::new(body)),
        ..fact(turn, "Ada", "Rome", instant(10))
    }
}

fn derived(turn: TurnId) -> ChangeId {
    ChangeId::of("derived", &[turn.as_bytes()])
}

/// The change that writes the first versions of these facts, all of one turn.
pub fn deriving(facts: &[&Derivation]) -> Rewrite {
    let revisions = facts.iter().map(|&fact| Revision {
        derivation: fact.clone(),
        passage: passages("lives there").pop(),
    });
    Rewrite {
        change: change(facts[0].change, ChangeKind::Derived, 1),
        revisions: revisions.collect(),
    }
}

fn change(id: ChangeId, kind: ChangeKind, seconds: i64) -> Change {
    Change {
        id,
        kind,
        at: instant(seconds),
        reason: "a sample".into(),
        conflict: None,
        reverts: None,
    }
}

/// The change that closes `older` where `newer` begins, made at a second.
pub fn closing(older: &Derivation, newer: &Derivation, seconds: i64) -> Rewrite {
    let conflict = ConflictId::of(older.id, newer.id);
    let id = ChangeId::of("updated", &[conflict.as_bytes()]);
    let mut closed = older.next(id);
    closed.valid.end = newer.valid.start;
    closed.succeeded_by = Some(newer.id);
    closed.known.start = Some(instant(seconds));
    Rewrite {
        change: Change {
            conflict: Some(conflict),
            ..change(id, ChangeKind::Updated, seconds)
        },
        revisions: vec![Revision {
            derivation: closed,
            passage: None,
        }],
    }
}

/// The conflict that [`closing`] settles.
pub fn conflict(older: &Derivation, newer: &Derivation) -> Conflict {
    Conflict {
        id: ConflictId::of(older.id, newer.id),
        older: older.id,
        newer: newer.id,
        contradiction: Contradiction::Functional,
        ends: newer.valid.start,
        found_at: instant(2),
        status: Status::Found,
        judge: "sample-1".into(),
        probability: None,
    }
}

/// Stores turns of [`home`], one batch.
async fn store(ledger: &impl Ledger, turns: &[&AcceptedTurn]) {
    let batch = batch("b", turns.iter().map(|&turn| turn.clone()).collect());
    ledger
        .commit(vec![indexed(batch, 1)])
        .await
        .expect("an answer");
}

/// Two turns of Ada's, and the facts that they state: Rome from second 10 on, Oslo from second 20 on.
async fn moved<S: Ledger + Knowledge>(
    store_: &S,
) -> (AcceptedTurn, AcceptedTurn, Derivation, Derivation) {
    let (rome, oslo) = (turn("1", "I live in Rome."), turn("2", "I moved to Oslo."));
    store(store_, &[&rome, &oslo]).await;
    let first = fact(&rome, "Ada", "Rome", instant(10));
    let second = fact(&oslo, "Ada", "Oslo", instant(20));
    make(store_, deriving(&[&first])).await;
    make(store_, deriving(&[&second])).await;
    (rome, oslo, first, second)
}

async fn make(knowledge: &impl Knowledge, rewrite: Rewrite) {
    let work = Work {
        rewrites: vec![rewrite],
        ..Work::default()
    };
    let applied = knowledge.apply(&home(), work).await.expect("an answer");
    assert_ne!(applied, Applied::Stale);
}

async fn all(knowledge: &impl Knowledge, question: &Question) -> Vec<Derivation> {
    let page = knowledge.derivations(&home(), question, 100, None).await;
    page.expect("an answer").items
}
