//! Files as users have them, up to the turns that are sent.

use memfleet_domain::turn::Role;
use serde_json::json;

use super::*;

fn file(content: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::with_suffix(".json").unwrap();
    fs::write(file.path(), content).unwrap();
    file
}

#[test]
fn the_sample_conversation_is_read_as_the_plain_format() {
    let sample = Path::new("data/sample-conversation.json");
    let (format, conversations) = read(sample, None).unwrap();
    assert_eq!((format, conversations.len()), (Format::Plain, 1));
    let turns = &conversations[0].turns;
    assert!((70..=90).contains(&turns.len()));
    assert!(
        turns
            .iter()
            .all(|turn| turn.event_time.is_some() && turn.external_id.is_some())
    );
    let mut sessions = turns
        .iter()
        .map(|turn| turn.session.as_str())
        .collect::<Vec<_>>();
    sessions.dedup();
    assert!(sessions.len() >= 8);
    assert!(turns.iter().any(|turn| turn.role == Role::Assistant));
    assert!(turns.iter().any(|turn| !turn.content.media.is_empty()));
}

#[test]
fn a_message_list_is_one_session_of_a_space_named_like_the_file() {
    let list = file(
        &json!([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}])
            .to_string(),
    );
    let (format, mut conversations) = read(list.path(), None).unwrap();
    let conversation = conversations.remove(0);
    assert_eq!(
        (format, conversation.name.as_str()),
        (Format::Openai, name_of(list.path()).as_str())
    );
    let name = conversation.name.clone();
    let (space, turns) = placed(conversation, None).unwrap();
    assert_eq!(
        (space.as_str(), turns[0].session.as_str()),
        (name.as_str(), name.as_str())
    );
}

#[test]
fn in_a_shared_space_sessions_carry_the_name_of_their_conversation() {
    let list = file(
        r#"[{"conversation_id": "c1", "messages": [{"id": 1, "role": "user", "session": 4, "content": "hi"}]}]"#,
    );
    let conversation = read(list.path(), None).unwrap().1.remove(0);
    let shared = SpaceId::new("team").unwrap();
    let (space, turns) = placed(conversation, Some(&shared)).unwrap();
    assert_eq!((space, turns[0].session.as_str()), (shared, "c1/4"));
}

#[test]
fn a_format_that_is_named_is_not_guessed() {
    let list = file(r#"[{"role": "user", "content": "hi"}]"#);
    assert_eq!(
        read(list.path(), Some(Format::Anthropic)).unwrap().0,
        Format::Anthropic
    );
}

#[test]
fn a_file_that_cannot_be_read_is_named_with_the_fix() {
    let unknown = file(r#"{"text": "hi"}"#);
    let error = read(unknown.path(), None).unwrap_err();
    assert_eq!(error.exit(), Exit::Usage);
    assert!(
        error.to_string().contains(&name_of(unknown.path()))
            && error.to_string().contains("--format")
    );
    assert_eq!(
        read(Path::new("nowhere.json"), None).unwrap_err().exit(),
        Exit::NotFound
    );
}
