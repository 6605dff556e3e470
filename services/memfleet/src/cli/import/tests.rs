//! Files as users have them, up to the turns that are sent.

use std::fs;

use memfleet_domain::turn::Role;
use serde_json::json;

use super::*;

fn opened(file: &Path, format: Option<Format>) -> Result<Content, Error> {
    read(file, Source::open(file)?, format)
}

fn file(content: impl AsRef<[u8]>) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::with_suffix(".json").unwrap();
    fs::write(file.path(), content).unwrap();
    file
}

#[test]
fn the_sample_conversation_is_read_as_the_plain_format() {
    let sample = Path::new("data/sample-conversation.json");
    let content = opened(sample, None).unwrap();
    let conversations = content.conversations;
    assert_eq!((content.format, conversations.len()), (Format::Plain, 1));
    let turns = conversations[0].turns.iter().map(|turn| &turn.value);
    let turns = turns.collect::<Vec<_>>();
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
        json!([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}])
            .to_string(),
    );
    let mut content = opened(list.path(), None).unwrap();
    let conversation = content.conversations.remove(0);
    assert_eq!(
        (content.format, conversation.name.as_str()),
        (Format::Openai, name_of(list.path()).as_str())
    );
    let name = conversation.name.clone();
    let (space, turns) = placed(conversation, None).unwrap();
    assert_eq!(
        (space.as_str(), turns[0].value.session.as_str()),
        (name.as_str(), name.as_str())
    );
}

#[test]
fn in_a_shared_space_sessions_carry_the_name_of_their_conversation() {
    let list = file(
        r#"[{"conversation_id": "c1", "messages": [{"id": 1, "role": "user", "session": 4, "content": "hi"}]}]"#,
    );
    let conversation = opened(list.path(), None).unwrap().conversations.remove(0);
    let shared = SpaceId::new("team").unwrap();
    let (space, turns) = placed(conversation, Some(&shared)).unwrap();
    let session = turns[0].value.session.as_str();
    assert_eq!((space, session), (shared, "c1/4"));
}

#[test]
fn a_format_that_is_named_is_not_guessed() {
    let list = file(r#"[{"role": "user", "content": "hi"}]"#);
    assert_eq!(
        opened(list.path(), Some(Format::Anthropic)).unwrap().format,
        Format::Anthropic
    );
}

#[test]
fn a_file_that_cannot_be_read_is_named_with_the_fix() {
    let unknown = file(r#"{"text": "hi"}"#);
    let error = opened(unknown.path(), None).unwrap_err();
    assert_eq!(error.exit(), Exit::Usage);
    assert!(
        error.to_string().contains(&name_of(unknown.path()))
            && error.to_string().contains("--format")
    );
    assert_eq!(
        opened(Path::new("nowhere.json"), None).unwrap_err().exit(),
        Exit::NotFound
    );
}

/// The texts of a file's turns, and the places of what was left out.
fn outcome(bytes: impl AsRef<[u8]>) -> (Vec<String>, Vec<String>) {
    let file = file(bytes);
    let content = opened(file.path(), None).unwrap();
    let turns = content.conversations.into_iter().flat_map(|one| one.turns);
    let places = content.left_out.into_iter().map(|one| one.place);
    (
        turns.map(|turn| turn.value.content.text).collect(),
        places.collect(),
    )
}

#[test]
fn one_message_that_cannot_be_read_does_not_refuse_the_others() {
    let good = r#"{"role": "user", "content": "we sail on Friday"}"#;
    for bad in [
        r#"{"role": "user", "content": "half an emoji \ud83d here"}"#,
        r#"{"role": "user", "content": {"type": "image_url", "image_url": {"url": "https://a.example/r.jpg"}}}"#,
        r#"{"role": "user", "content": 7}"#,
        r#"{"role": "bot", "content": "hi"}"#,
        r#"{"content": "hi"}"#,
        r#"{"role": "user", "content": "hi", "created_at": "soon"}"#,
        "null",
    ] {
        let seen = outcome(format!("[{bad}, {good}]"));
        let expected = |place: &str| (vec!["we sail on Friday".to_owned()], vec![place.to_owned()]);
        assert_eq!(seen, expected("messages[0]"), "{bad}");
        assert_eq!(
            outcome(format!("{good}\n{bad}\n")),
            expected("line 2"),
            "{bad}"
        );
    }
    let cut = format!("{good}\n{good}\n{{\"role\": \"us");
    assert_eq!(outcome(cut).1, ["line 3"]);
    let latin = [
        good.as_bytes(),
        b"\n{\"role\": \"user\", \"content\": \"caf\xe9\"}",
    ]
    .concat();
    assert_eq!(outcome(latin).1, ["line 2"]);
}

#[test]
fn what_is_only_written_otherwise_is_read() {
    for message in [
        "\u{feff}[{\"role\": \"user\", \"content\": \"hi\"}]",
        r#"{"conversation_id": "c7", "messages": [{"role": "user", "content": "hi"}]}"#,
        r#"[{"role": "user", "content": "hi", "created_at": "2025-03-04T10:00:00"}]"#,
        r#"[{"role": "user", "content": "hi", "created_at": "2025-03-04 10:00:00+0100"}]"#,
        r#"[{"role": "user", "content": "hi", "timestamp": "1741000000"}]"#,
        r#"[{"role": "human", "content": {"type": "text", "text": "hi"}}]"#,
    ] {
        let expected = (vec!["hi".to_owned()], vec![]);
        assert_eq!(outcome(message), expected, "{message}");
    }
    let long = json!([{"role": "user", "name": "n".repeat(200), "content": "hi"}]);
    assert_eq!(outcome(long.to_string()).0, ["hi"]);
}

#[test]
fn a_file_of_which_nothing_can_be_read_is_refused_with_the_first_problem() {
    let list = file(r#"[{"role": "bot", "content": "hi"}]"#);
    let error = opened(list.path(), None).unwrap_err();
    assert_eq!(error.exit(), Exit::Usage);
    assert!(error.to_string().contains("messages[0]: role"), "{error}");
}
