//! Section 3.1: the trigger T of episodes.

use memfleet_agents::episodes::{Said, WINDOW, runs};
use memfleet_domain::episode::Trigger;
use memfleet_domain::turn::Role;
use memfleet_language::Language;

fn said(role: Role, text: &str) -> Said<'_> {
    Said {
        role,
        text,
        time: None,
        vector: None,
    }
}

/// Why the first episode of a session ends.
fn trigger(turns: &[Said<'_>]) -> Option<Trigger> {
    runs(turns, Language::English)[0].trigger
}

#[test]
fn section_3_1_an_episode_is_triggered_by_a_shift_a_request_and_a_full_window_only() {
    let chat = [
        said(Role::User, "How do I prune an apple tree?"),
        said(Role::Assistant, "In late winter, with sharp shears."),
    ];
    assert_eq!(trigger(&chat), None);
    let mut shifts = chat.to_vec();
    shifts.push(said(Role::User, "My landlord raised the rent."));
    shifts.push(said(Role::Assistant, "By how much?"));
    assert_eq!(trigger(&shifts), Some(Trigger::TopicShift));
    let mut asks = chat.to_vec();
    asks.push(said(Role::User, "And now let us sum up."));
    asks.push(said(Role::Assistant, "Prune in late winter."));
    asks.push(said(Role::User, "And then?"));
    assert_eq!(trigger(&asks), Some(Trigger::Request));
    let full = vec![said(Role::User, "and more"); WINDOW + 1];
    assert_eq!(trigger(&full), Some(Trigger::Saturation));
}
