//! One change at a time against a small released API.

use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver};

use super::*;

const RELEASED: &str = r#"
syntax = "proto3";
package api;
message Turn {
  string id = 1;
  int64 position = 2;
  repeated string tags = 3;
  oneof body { string text = 4; bytes media = 5; }
  enum Role { ROLE_UNSPECIFIED = 0; ROLE_USER = 1; }
  message Part { string text = 1; }
}
service Memory { rpc Recall(Turn) returns (Turn); rpc Watch(Turn) returns (stream Turn); }
"#;

struct OneFile<'a>(&'a str);

impl FileResolver for OneFile<'_> {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        match name {
            "api.proto" => File::from_source(name, self.0),
            other => Err(protox::Error::file_not_found(other)),
        }
    }
}

fn compile(source: &str) -> FileDescriptorSet {
    let mut resolver = ChainFileResolver::new();
    resolver.add(GoogleFileResolver::new());
    let source: &'static str = source.to_owned().leak();
    resolver.add(OneFile(source));
    protox::Compiler::with_file_resolver(resolver)
        .open_file("api.proto")
        .unwrap()
        .file_descriptor_set()
}

/// The breaking changes when `from` is replaced with `to` in the released API.
fn changing(from: &str, to: &str) -> Vec<String> {
    assert!(RELEASED.contains(from));
    breaking_changes(&compile(RELEASED), &compile(&RELEASED.replace(from, to)))
}

#[test]
fn additions_are_compatible() {
    assert_eq!(
        changing("string id = 1;", "string id = 1; string speaker = 9;"),
        [""; 0]
    );
    assert_eq!(
        changing("ROLE_USER = 1;", "ROLE_USER = 1; ROLE_TOOL = 2;"),
        [""; 0]
    );
    assert_eq!(
        changing("rpc Recall", "rpc Forget(Turn) returns (Turn); rpc Recall"),
        [""; 0]
    );
}

#[test]
fn a_removed_field_needs_its_number_and_its_name_reserved() {
    assert!(changing("int64 position = 2;", "")[0].contains("api.Turn.position was removed"));
    assert_eq!(changing("int64 position = 2;", "reserved 2;").len(), 1);
    assert_eq!(
        changing("int64 position = 2;", "reserved 2; reserved \"position\";"),
        [""; 0]
    );
}

#[test]
fn a_field_keeps_its_number_name_type_label_and_oneof() {
    for (from, to, what) in [
        (
            "int64 position = 2;",
            "int64 position = 7;",
            "renumbered from 2 to 7",
        ),
        (
            "int64 position = 2;",
            "int64 place = 2;",
            "name changed from position to place",
        ),
        (
            "int64 position = 2;",
            "int64 position = 2 [json_name = \"at\"];",
            "JSON name changed from position to at",
        ),
        (
            "int64 position = 2;",
            "string position = 2;",
            "type changed from int64 to string",
        ),
        (
            "int64 position = 2;",
            "Part position = 2;",
            "type changed from int64 to api.Turn.Part",
        ),
        (
            "repeated string tags = 3;",
            "string tags = 3;",
            "label changed from repeated to optional",
        ),
        ("bytes media = 5; }", "} bytes media = 5;", "oneof changed"),
    ] {
        let changes = changing(from, to);
        assert!(
            changes.iter().any(|change| change.contains(what)),
            "{what:?} is not in {changes:?}"
        );
    }
}

#[test]
fn presence_may_be_added_to_a_field() {
    assert_eq!(
        changing("int64 position = 2;", "optional int64 position = 2;"),
        [""; 0]
    );
}

#[test]
fn an_enum_keeps_its_values_unless_they_are_reserved() {
    assert!(changing("ROLE_USER = 1;", "")[0].contains("api.Turn.Role.ROLE_USER was removed"));
    assert!(changing("ROLE_USER = 1;", "ROLE_HUMAN = 1;")[0].contains("renamed"));
    assert_eq!(
        changing("ROLE_USER = 1;", "reserved 1; reserved \"ROLE_USER\";"),
        [""; 0]
    );
}

#[test]
fn a_service_keeps_its_methods_and_their_shapes() {
    assert!(
        changing("rpc Recall(Turn) returns (Turn);", "")[0]
            .contains("api.Memory/Recall was removed")
    );
    assert!(
        changing("returns (stream Turn)", "returns (Turn)")[0].contains("api.Memory/Watch changed")
    );
    assert!(
        changing("service Memory", "service Recollection")[0]
            .contains("service api.Memory was removed")
    );
}

#[test]
fn nested_messages_are_guarded_too() {
    assert!(
        changing("message Part { string text = 1; }", "")[0]
            .contains("message api.Turn.Part was removed")
    );
}
