//! The chats in other languages are whole: each has its turns, questions and evidence, and a
//! counterpart by another writer.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use memfleet_evaluation::{Conversation, Dataset};

/// Languages that have a chat in each part.
const LANGUAGES: usize = 19;

/// The chats of a part by language.
fn chats(part: &str) -> Vec<(String, Conversation)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = folder.join("data/languages").join(part);
    let files = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let chat = |file: &PathBuf| {
        let language = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let mut conversations = Dataset::load(file).unwrap().conversations;
        assert_eq!(conversations.len(), 1, "{}", file.display());
        (language, conversations.remove(0))
    };
    files.iter().map(chat).collect()
}

#[test]
fn each_language_has_two_whole_chats() {
    for part in ["dev", "test"] {
        let chats = chats(part);
        assert_eq!(chats.len(), LANGUAGES, "{part}");
        for (language, chat) in chats {
            assert!(chat.turns.len() >= 150, "{part} {language}");
            assert_eq!(chat.questions.len(), 16, "{part} {language}");
            let turns: BTreeSet<&str> = chat.turns.iter().map(|turn| turn.id.as_str()).collect();
            assert_eq!(turns.len(), chat.turns.len(), "{part} {language}");
            assert!(chat.turns.iter().all(|turn| turn.time.is_some()));
            for question in &chat.questions {
                let count = question.evidence.len();
                assert!((1..=3).contains(&count), "{language} {}", question.text);
            }
        }
    }
}

#[test]
fn nobody_wrote_for_both_parts() {
    let writers = |part| -> BTreeSet<String> {
        let writer = |chat: &Conversation| chat.id.split_once('-').unwrap().0.to_owned();
        chats(part).iter().map(|(_, chat)| writer(chat)).collect()
    };
    assert!(writers("dev").is_disjoint(&writers("test")));
}
