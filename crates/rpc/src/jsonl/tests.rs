use proptest::prelude::*;

use super::*;
use crate::strategies;

const SPACE: &str = r#"{"record":"space","name":"ada","settings":{"language":null,"time_zone":"Europe/Zurich","retention_days":30,"retention_turns":null,"retention_superseded_days":null}}"#;
const TURN: &str = r#"{"record":"turn","id":"6ba7b810-9dad-81d1-80b4-00c04fd430c8","session":"s1","external_id":"m-1","speaker":"Ada","role":"user","content":{"text":"Hi\n","media":[{"uri":"file:a","mime_type":"","caption":"a dog"}]},"event_time":"2023-05-08T13:56:00Z","recorded_at":"2026-01-02T03:04:05.678901Z","metadata":{"a":"b"},"trust":"web","replaces":null,"position":7,"replaced":null}"#;

const RULES: &str =
    r#"{"record":"rules","hold":{"since":"2026-01-02T03:04:05Z","reason":"case 7"}}"#;

#[test]
fn the_documented_shape_is_the_written_one() {
    for line in [SPACE, RULES, TURN] {
        assert_eq!(write(&read(line).unwrap()), line);
    }
}

#[test]
fn what_may_be_absent_may_be_left_out_and_unknown_keys_are_skipped() {
    let line = TURN
        .replace(r#""external_id":"m-1","#, "")
        .replace(r#","replaced":null"#, r#","later":[1]"#);
    let Record::Turn(turn) = read(&line).unwrap() else {
        panic!("a turn was written")
    };
    assert_eq!((turn.accepted.external_id, turn.replaced), (None, None));
}

#[test]
fn times_in_another_zone_are_the_same_instant() {
    let line = TURN.replace("2023-05-08T13:56:00Z", "2023-05-08T15:56:00.0000009+02:00");
    assert_eq!(read(&line), read(TURN));
}

#[test]
fn a_line_that_is_no_record_says_why() {
    for line in [
        "",
        "[]",
        "{}",
        r#"{"record":"turn"}"#,
        r#"{"record":"fact"}"#,
    ] {
        assert_eq!(read(line).unwrap_err().reason, "RECORD_MALFORMED", "{line}");
    }
    let fault = read(&TURN.replace("s1", " ")).unwrap_err();
    assert!(fault.message.contains("must not be empty"), "{fault}");
}

#[test]
fn limits_hold_for_files_too() {
    let fault = read(&TURN.replace("Hi", &"x".repeat(65_536))).unwrap_err();
    assert_eq!(fault.fields[0].field, "turn.text");
}

proptest! {
    #[test]
    fn a_record_is_one_line_and_comes_back_equal(record in strategies::record()) {
        let line = write(&record);
        prop_assert!(!line.contains('\n'));
        prop_assert_eq!(read(&line), Ok(record));
    }
}

/// Files of a version that knew no other retention.
#[test]
fn settings_that_a_file_does_not_have_take_their_defaults() {
    let older = SPACE.replace(
        r#","retention_turns":null,"retention_superseded_days":null"#,
        "",
    );
    assert_ne!(older, SPACE);
    assert_eq!(read(&older).unwrap(), read(SPACE).unwrap());
}
