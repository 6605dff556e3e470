use std::collections::HashSet;

use super::*;

const SEEDS: std::ops::Range<u64> = 0..20;

#[test]
fn equal_seeds_tell_equal_chats() {
    assert_eq!(chat(3), chat(3));
    assert_ne!(chat(3), chat(4));
}

#[test]
fn every_link_is_said_in_a_session_of_its_own() {
    for seed in SEEDS {
        let chat = chat(seed);
        let turns = &chat.conversation.turns;
        assert_eq!(turns.len(), SESSIONS * SESSION);
        assert!(turns.is_sorted_by_key(|turn| turn.time));
        for (chain, question) in chat.chains.iter().zip(&chat.conversation.questions) {
            let said: HashSet<usize> = chain.links.iter().map(|link| link.turn).collect();
            assert_eq!(said, question.evidence.iter().copied().collect());
            let sessions: HashSet<&str> =
                said.iter().map(|at| turns[*at].session.as_str()).collect();
            assert_eq!(sessions.len(), chain.links.len());
            for link in &chain.links {
                let turn = &turns[link.turn];
                let text = turn.text.to_lowercase();
                let is_named = |name: &String| text.contains(&name.to_lowercase());
                assert!(is_named(&link.object), "{text}");
                assert!(
                    is_named(&link.subject) || turn.speaker == link.subject,
                    "{text}"
                );
            }
        }
    }
}

#[test]
fn a_question_names_the_ends_and_no_middle() {
    for seed in SEEDS {
        let chat = chat(seed);
        assert_eq!(chat.conversation.questions.len(), chat.chains.len());
        for (chain, question) in chat.chains.iter().zip(&chat.conversation.questions) {
            let [first, middles @ .., last] = &chain.entities[..] else {
                panic!("a chain has two ends");
            };
            assert_eq!(middles.len() + 1, chain.links.len());
            assert!(question.text.contains(first) && question.text.contains(last));
            let bare = |name: &String| name.trim_start_matches("the ").to_owned();
            let is_named = |name: &String| question.text.contains(&bare(name));
            assert!(!middles.iter().any(is_named), "{}", question.text);
        }
    }
}

#[test]
fn the_ends_are_spoken_of_more_often_than_an_answer_has_turns() {
    let chat = chat(1);
    let turns = &chat.conversation.turns;
    let crowded = chat.chains.iter().filter(|chain| {
        let ends = [&chain.entities[0], &chain.entities[chain.links.len()]];
        let ends = ends.map(|name| name.trim_start_matches("the "));
        let named = turns
            .iter()
            .filter(|turn| ends.iter().any(|end| turn.text.contains(end)));
        named.count() > 10
    });
    assert!(crowded.count() * 10 >= chat.chains.len() * 9);
}
