//! Every violation is named, with the path of its field; defaults are filled in.

use memfleet_domain::policy::Policy;
use std::collections::BTreeMap;

use memfleet_domain::turn::{Role, Trust};
use memfleet_domain::{Fault, FaultKind};
use memfleet_ports::memory::AnswerMode;
use prost_types::Timestamp;

use crate::convert::{Checked, accept, understand};
use crate::proto;

/// The fields at fault, each with its description.
pub(super) fn violations<M: Checked<Value: std::fmt::Debug>>(request: M) -> Vec<(String, String)> {
    let fault = accept(request).unwrap_err();
    assert_eq!(
        (fault.kind, fault.reason.as_ref()),
        (FaultKind::InvalidArgument, "INVALID_FIELD")
    );
    fault
        .fields
        .into_iter()
        .map(|violation| (violation.field, violation.description))
        .collect()
}

/// Their names.
pub(super) fn fields<M: Checked<Value: std::fmt::Debug>>(request: M) -> Vec<String> {
    violations(request)
        .into_iter()
        .map(|(field, _)| field)
        .collect()
}

fn said(text: &str) -> proto::NewTurn {
    proto::NewTurn {
        session: "s".into(),
        text: text.into(),
        ..Default::default()
    }
}

fn remember(turns: Vec<proto::NewTurn>) -> proto::RememberRequest {
    proto::RememberRequest {
        space: "ada".into(),
        turns,
        ..Default::default()
    }
}

fn recall() -> proto::RecallRequest {
    proto::RecallRequest {
        query: "dogs".into(),
        spaces: vec!["ada".into()],
        ..Default::default()
    }
}

fn assemble() -> proto::AssembleRequest {
    proto::AssembleRequest {
        spaces: vec!["ada".into()],
        budget_tokens: Some(100),
        ..Default::default()
    }
}

fn strings(count: usize) -> Vec<String> {
    vec!["x".to_owned(); count]
}

#[test]
fn all_violations_of_a_turn_come_at_once() {
    let turn = proto::NewTurn {
        session: " ".into(),
        external_id: "\n".into(),
        speaker: "x".repeat(129),
        role: 9,
        text: "x".repeat(65_537),
        media: vec![
            proto::Media {
                uri: String::new(),
                mime_type: "x".repeat(256),
                caption: "x".repeat(4_097),
            },
            proto::Media {
                uri: "x".repeat(2_049),
                ..Default::default()
            },
        ],
        event_time: Some(Timestamp {
            seconds: i64::MAX,
            nanos: 0,
        }),
        metadata: BTreeMap::from([
            (String::new(), String::new()),
            ("k".into(), "x".repeat(513)),
            ("x".repeat(65), String::new()),
        ]),
        trust: 9,
        replaces: "no".into(),
    };
    let mut request = remember(vec![said("fine"), turn]);
    request.space = "\u{0}".into();
    request.idempotency_key = "x".repeat(257);
    let found = fields(request);
    assert_eq!(
        found,
        [
            "space",
            "turns[1].role",
            "turns[1].session",
            "turns[1].external_id",
            "turns[1].text",
            "turns[1].media[0].uri",
            "turns[1].media[0].mime_type",
            "turns[1].media[0].caption",
            "turns[1].media[1].uri",
            "turns[1].event_time",
            "turns[1].metadata",
            "turns[1].metadata[\"k\"]",
            "turns[1].metadata",
            "turns[1].trust",
            "turns[1].replaces",
            "idempotency_key",
        ]
    );
}

#[test]
fn a_violation_says_what_is_allowed() {
    let request = remember(vec![proto::NewTurn {
        speaker: "x".repeat(129),
        ..said("hi")
    }]);
    let expected = "is 129 bytes of UTF-8; at most 128 are allowed";
    assert_eq!(
        violations(request),
        [("turns[0].speaker".to_owned(), expected.to_owned())]
    );
    let request = remember(vec![said(&"x".repeat(65_537))]);
    let expected = "has 65537 bytes of UTF-8; at most 65536 are allowed";
    assert_eq!(
        violations(request),
        [("turns[0].text".to_owned(), expected.to_owned())]
    );
}

#[test]
fn a_profile_is_of_somebody_and_a_timeline_of_one_thing() {
    let nobody = proto::ProfileRequest {
        space: "ada".into(),
        ..Default::default()
    };
    let fields: Vec<_> = violations(nobody).into_iter().map(|it| it.0).collect();
    assert_eq!(fields, ["about"]);
    let both = proto::TimelineRequest {
        space: "ada".into(),
        about: "Ada".into(),
        topic: "the flat".into(),
        ..Default::default()
    };
    let expected = "stands beside `about`: leave either out";
    assert_eq!(
        violations(both),
        [("topic".to_owned(), expected.to_owned())]
    );
}

#[test]
fn a_thousand_violations_are_counted_and_the_first_twenty_named() {
    let fault: Fault = accept(remember(vec![said(" "); 1_000])).unwrap_err();
    assert_eq!(fault.fields.len(), 20);
    assert_eq!(fault.metadata["more_violations"], "980");
    assert!(fault.message.ends_with("; and 980 more"));
}

#[test]
fn a_request_needs_turns_and_not_too_many() {
    assert_eq!(fields(remember(vec![])), ["turns"]);
    assert_eq!(fields(remember(vec![said("hi"); 1_001])), ["turns"]);
    assert!(accept(remember(vec![said("hi"); 1_000])).is_ok());
}

#[test]
fn a_turn_gets_its_defaults_and_keeps_its_text_verbatim() {
    let assistant = proto::NewTurn {
        role: proto::Role::Assistant.into(),
        ..said(" a\u{0}\tb\r\n")
    };
    let turns = accept(remember(vec![said("hi"), assistant])).unwrap().turns;
    assert_eq!(
        (turns[0].role, turns[0].trust, turns[0].speaker.as_str()),
        (Role::User, Trust::User, "user")
    );
    assert_eq!(turns[1].trust, Trust::Assistant);
    assert_eq!(turns[1].speaker.as_str(), "assistant");
    assert_eq!(turns[1].content.text, " a\u{0}\tb\r\n");
}

#[test]
fn a_caption_stands_in_for_text() {
    let media = |caption: &str| {
        let media = proto::Media {
            uri: "file:a".into(),
            caption: caption.into(),
            ..Default::default()
        };
        remember(vec![proto::NewTurn {
            media: vec![media],
            ..said("")
        }])
    };
    assert!(accept(media("a dog")).is_ok());
    assert_eq!(fields(media(" ")), ["turns[0].text"]);
}

#[test]
fn too_many_media_and_labels_are_refused() {
    let media = vec![
        proto::Media {
            uri: "a".into(),
            ..Default::default()
        };
        17
    ];
    let metadata = (0..33)
        .map(|number| (number.to_string(), String::new()))
        .collect();
    let turn = proto::NewTurn {
        media,
        metadata,
        ..said("hi")
    };
    assert_eq!(
        fields(remember(vec![turn])),
        ["turns[0].media", "turns[0].metadata"]
    );
}

#[test]
fn times_are_cut_to_microseconds_and_stay_within_four_digit_years() {
    let at = |seconds, nanos| {
        let event_time = Some(Timestamp { seconds, nanos });
        accept(remember(vec![proto::NewTurn {
            event_time,
            ..said("hi")
        }]))
        .map(|request| request.turns[0].event_time)
    };
    let time = at(-1, 999_999_999).unwrap().unwrap();
    assert_eq!(time.timestamp_nanos_opt(), Some(-1_000));
    assert_eq!(
        at(-62_135_596_800, 0).unwrap().unwrap().to_rfc3339(),
        "0001-01-01T00:00:00+00:00"
    );
    assert_eq!(
        at(253_402_300_799, 0).unwrap().unwrap().to_rfc3339(),
        "9999-12-31T23:59:59+00:00"
    );
    for (seconds, nanos) in [
        (-62_135_596_801, 0),
        (253_402_300_800, 0),
        (0, -1),
        (0, 1_000_000_000),
    ] {
        assert!(at(seconds, nanos).is_err(), "{seconds} {nanos}");
    }
}

#[test]
fn a_search_is_checked_in_full() {
    let filter = proto::TurnFilter {
        turn_ids: vec!["no".into()],
        sessions: vec!["s".into(), String::new()],
        excluded_sessions: strings(1_001),
        speakers: vec!["\u{7}".into()],
        roles: vec![1, 0, 7],
        time: Some(proto::TimeRange {
            start: Some(Timestamp {
                seconds: 5,
                nanos: 0,
            }),
            end: Some(Timestamp {
                seconds: 5,
                nanos: 0,
            }),
        }),
        metadata: BTreeMap::from([(String::new(), String::new())]),
        as_of: Some(proto::AsOf {
            known_at: Some(Timestamp {
                seconds: 0,
                nanos: -1,
            }),
            happened_by: None,
        }),
        include_replaced: false,
    };
    let request = proto::RecallRequest {
        query: "\n".into(),
        spaces: vec![],
        filter: Some(filter),
        k: 1_001,
        neighbours: 11,
        now: Some(Timestamp {
            seconds: i64::MIN,
            nanos: 0,
        }),
        explain: false,
        wait_for: vec!["no".into()],
        session: String::new(),
        quality: 0,
        intent: None,
        min_relevance: Some(2.0),
        granularity: 9,
    };
    assert_eq!(
        fields(request),
        [
            "query",
            "spaces",
            "filter.turn_ids[0]",
            "filter.sessions[1]",
            "filter.excluded_sessions",
            "filter.speakers[0]",
            "filter.roles[1]",
            "filter.roles[2]",
            "filter.time.end",
            "filter.metadata",
            "filter.as_of.known_at",
            "k",
            "neighbours",
            "now",
            "wait_for[0]",
            "min_relevance",
            "granularity",
        ]
    );
}

#[test]
fn every_wrong_field_of_a_question_is_named() {
    let request = proto::AnswerRequest {
        query: " ".into(),
        k: 101,
        mode: 9,
        wait_for: vec!["no".into()],
        ..Default::default()
    };
    assert_eq!(
        fields(request),
        ["query", "spaces", "k", "wait_for[0]", "mode"]
    );
    let request = proto::AnswerRequest {
        query: "Where?".into(),
        spaces: vec!["ada".into()],
        ..Default::default()
    };
    let request = accept(request).unwrap();
    assert_eq!((request.query.k, request.mode), (20, AnswerMode::Auto));
    #[expect(deprecated, reason = "earlier callers send the earlier name")]
    let earlier = proto::AnswerRequest {
        question: "Where?".into(),
        spaces: vec!["ada".into()],
        ..Default::default()
    };
    assert_eq!(accept(earlier).unwrap().query.text, "Where?");
}

#[test]
fn a_search_finds_ten_turns_unless_told() {
    assert_eq!(accept(recall()).unwrap().query.k, 10);
}

#[test]
fn queries_and_lists_of_a_search_are_bounded() {
    let request = proto::RecallRequest {
        query: "x".repeat(8_193),
        spaces: strings(65),
        wait_for: strings(101),
        ..recall()
    };
    assert_eq!(fields(request), ["query", "spaces", "wait_for"]);
}

#[test]
fn one_key_of_a_filter_cannot_have_two_values() {
    let pair = |value: &str| ("k".to_owned(), value.to_owned());
    let filter = memfleet_ports::filter::TurnFilter {
        metadata: vec![pair("a"), pair("b")],
        ..Default::default()
    };
    let fault = proto::TurnFilter::try_from(filter).unwrap_err();
    assert_eq!(fault.fields[0].field, "filter.metadata");
}

#[test]
fn hits_and_neighbours_together_are_bounded() {
    let request = |k, neighbours| proto::RecallRequest {
        query: "q".into(),
        spaces: vec!["ada".into()],
        k,
        neighbours,
        ..Default::default()
    };
    for (k, neighbours) in [(1_000, 2), (238, 10), (0, 10)] {
        assert!(accept(request(k, neighbours)).is_ok(), "{k} {neighbours}");
    }
    for (k, neighbours) in [(1_000, 3), (239, 10)] {
        let (field, problem) = violations(request(k, neighbours)).remove(0);
        assert_eq!(field, "neighbours");
        assert!(problem.contains("5000 turns"), "{problem}");
    }
}

#[test]
fn a_least_relevance_is_a_probability() {
    let request = |least| proto::RecallRequest {
        min_relevance: Some(least),
        ..recall()
    };
    for least in [0.0, 0.05, 1.0] {
        assert!(accept(request(least)).is_ok(), "{least}");
    }
    for least in [-0.1, 1.1, f32::NAN, f32::INFINITY] {
        let (field, problem) = violations(request(least)).remove(0);
        assert_eq!(field, "min_relevance");
        assert!(problem.contains("from 0 to 1"), "{problem}");
    }
}

#[test]
fn an_assembly_is_checked_in_full() {
    let request = proto::AssembleRequest {
        query: String::new(),
        messages: vec![],
        spaces: vec![" ".into()],
        budget_tokens: Some(1_000_001),
        tokenizer: "x".repeat(65),
        k: 1_001,
        neighbours: 11,
        ..Default::default()
    };
    assert_eq!(
        fields(request),
        [
            "budget_tokens",
            "query",
            "spaces[0]",
            "tokenizer",
            "k",
            "neighbours"
        ]
    );
    assert_eq!(
        fields(proto::AssembleRequest {
            query: "q".into(),
            budget_tokens: Some(1_000_001),
            ..assemble()
        }),
        ["budget_tokens"]
    );
}

#[test]
fn a_block_of_narratives_needs_no_query() {
    let story = |id: &str| proto::AssembleRequest {
        narrative_ids: vec![id.into()],
        ..assemble()
    };
    let id = "00000000-0000-8000-8000-000000000001";
    let request = accept(story(id)).unwrap();
    assert_eq!(
        (request.narratives.len(), request.query.text),
        (1, String::new())
    );
    assert_eq!(fields(story("it")), ["narrative_ids[0]"]);
    let many = proto::AssembleRequest {
        narrative_ids: vec![id.to_owned(); 17],
        ..assemble()
    };
    assert_eq!(fields(many), ["narrative_ids"]);
}

#[test]
fn an_assembly_gets_its_defaults() {
    let request = accept(proto::AssembleRequest {
        query: "q".into(),
        ..assemble()
    })
    .unwrap();
    assert_eq!((request.query.k, request.tokenizer), (100, None));
    // Unset is not 0: the policies below say it.
    assert_eq!(request.policy.budget.max_tokens, Some(100));
    let nothing = accept(proto::AssembleRequest {
        query: "q".into(),
        budget_tokens: Some(0),
        ..assemble()
    });
    assert_eq!(nothing.unwrap().policy.budget.max_tokens, Some(0));
    let unset = accept(proto::AssembleRequest {
        query: "q".into(),
        budget_tokens: None,
        ..assemble()
    });
    assert_eq!(unset.unwrap().policy, Policy::default());
}

#[test]
fn every_wrong_value_of_a_policy_is_named() {
    let policy = proto::Policy {
        gating: Some(proto::GatingPolicy {
            mode: 9,
            relevance: Some(f32::NAN),
            ..Default::default()
        }),
        budget: Some(proto::BudgetPolicy {
            percent_of_window: Some(101.0),
            profile_tokens: Some(10_001),
            ..Default::default()
        }),
        ..Default::default()
    };
    let request = |policy| proto::AssembleRequest {
        query: "q".into(),
        policy: Some(policy),
        ..assemble()
    };
    assert_eq!(
        fields(request(policy)),
        [
            "policy.gating.mode",
            "policy.gating.relevance",
            "policy.budget.percent_of_window",
            "policy.budget.profile_tokens"
        ]
    );
}

#[test]
fn every_wrong_value_of_a_topic_is_named() {
    let topic = proto::Topic {
        name: "health".into(),
        action: proto::TopicAction::LeaveOut.into(),
        description: "Illnesses.".into(),
        examples: vec!["I have asthma.".into(); 8],
    };
    let mut long = topic.clone();
    long.name = "money".into();
    long.examples[7] = "x".repeat(513);
    let refused = |topics: Vec<proto::Topic>| {
        let policy = proto::Policy {
            topics,
            ..Default::default()
        };
        let request = proto::PutPolicyRequest {
            policy: Some(policy),
            ..Default::default()
        };
        fields(request)
    };
    let expected = ["policy.topics[1].examples[7]"];
    assert_eq!(refused(vec![topic.clone(), long]), expected);
    let unspecified = proto::Topic {
        action: 0,
        ..topic.clone()
    };
    assert_eq!(refused(vec![unspecified]), ["policy.topics[0].action"]);
    assert_eq!(
        refused(vec![topic.clone(), topic]),
        ["policy.topics[1].name"]
    );
}

#[test]
fn a_prompt_comes_in_one_form() {
    let provider = |format: proto::ProviderFormat, body: &[u8]| proto::AssembleRequest {
        provider_request: Some(proto::ProviderRequest {
            format: format.into(),
            body: body.to_vec(),
        }),
        ..assemble()
    };
    assert!(accept(provider(proto::ProviderFormat::Gemini, b"{}")).is_ok());
    assert_eq!(
        fields(provider(proto::ProviderFormat::Unspecified, b"")),
        ["provider_request.format", "provider_request.body"]
    );
    let both = proto::AssembleRequest {
        messages: conversation(&[(proto::Role::User, "u")]).messages,
        ..provider(proto::ProviderFormat::Gemini, b"{}")
    };
    assert_eq!(fields(both), ["provider_request"]);
}

fn conversation(messages: &[(proto::Role, &str)]) -> proto::AssembleRequest {
    let message = |(role, text): &(proto::Role, &str)| proto::Message {
        role: (*role).into(),
        text: (*text).into(),
        parts: Vec::new(),
    };
    proto::AssembleRequest {
        messages: messages.iter().map(message).collect(),
        ..assemble()
    }
}

#[test]
fn messages_are_text_or_parts() {
    use proto::Role::User;
    let long = "x".repeat(65_537);
    assert_eq!(
        fields(conversation(&[(User, "u"), (User, &long)])),
        ["messages[1].text"]
    );
    let mut both = conversation(&[(User, "u")]);
    both.messages[0].parts = vec![proto::MessagePart::default()];
    assert_eq!(fields(both.clone()), ["messages[0].parts"]);
    both.messages[0].text = String::new();
    assert_eq!(fields(both), ["messages[0].parts[0].kind"]);
    let beside = proto::AssembleRequest {
        query: "q".into(),
        ..conversation(&[(User, "u")])
    };
    assert_eq!(accept(beside).unwrap().query.text, "q");
}

#[test]
fn forgetting_names_either_turns_or_everything() {
    let request = |everything, sessions: &[&str]| proto::ForgetRequest {
        space: "ada".into(),
        filter: Some(proto::TurnFilter {
            sessions: sessions.iter().map(|name| (*name).into()).collect(),
            ..Default::default()
        }),
        everything,
        dry_run: false,
    };
    assert_eq!(fields(request(false, &[])), ["filter"]);
    assert_eq!(fields(request(true, &["s"])), ["filter"]);
    assert!(accept(request(true, &[])).is_ok() && accept(request(false, &["s"])).is_ok());
}

#[test]
fn a_subject_has_a_name_and_as_many_names_as_a_filter_takes() {
    let request = |name: &str, aliases| proto::ForgetSubjectRequest {
        subject: Some(proto::Subject {
            name: name.into(),
            aliases,
        }),
        dry_run: false,
    };
    let many = |count| vec!["A. Lovelace".to_owned(); count];
    assert_eq!(fields(proto::ForgetSubjectRequest::default()), ["subject"]);
    assert_eq!(fields(request("", many(1))), ["subject.name"]);
    assert_eq!(
        fields(request("Ada", vec![String::new()])),
        ["subject.aliases[0]"]
    );
    assert_eq!(fields(request("Ada", many(1_000))), ["subject.aliases"]);
    assert!(accept(request("Ada", many(999))).is_ok());
}

#[test]
fn a_legal_hold_says_why() {
    let request = |reason: &str| proto::SetLegalHoldRequest {
        space: "ada".into(),
        held: true,
        reason: reason.into(),
    };
    for wrong in ["", " \n", &"x".repeat(513)] {
        assert_eq!(fields(request(wrong)), ["reason"], "{wrong:?}");
    }
    let (space, held, reason) = accept(request("case 7")).unwrap();
    assert_eq!(
        (space.as_str(), held, reason.as_str()),
        ("ada", true, "case 7")
    );
}

#[test]
fn settings_of_a_space_are_checked() {
    let settings = proto::SpaceSettings {
        language: "a language of its own".into(),
        time_zone: "Mars".into(),
        retention_days: 36_526,
        retention_turns: 1_000_000_001,
        retention_superseded_days: 36_526,
    };
    let request = proto::PutSpaceRequest {
        space: String::new(),
        settings: Some(settings),
    };
    assert_eq!(
        fields(request),
        [
            "space",
            "settings.language",
            "settings.time_zone",
            "settings.retention_days",
            "settings.retention_turns",
            "settings.retention_superseded_days"
        ]
    );
    let (_, settings) = accept(proto::PutSpaceRequest {
        space: "ada".into(),
        settings: None,
    })
    .unwrap();
    assert_eq!(settings, memfleet_domain::space::SpaceSettings::default());
}

#[test]
fn reads_and_listings_are_checked() {
    let get = proto::GetRequest {
        space: String::new(),
        turn_ids: vec![],
        wait_for: vec![String::new()],
    };
    assert_eq!(fields(get), ["space", "turn_ids", "wait_for[0]"]);
    let list = proto::ListRequest {
        page_size: 1_001,
        page_token: "x".repeat(1_025),
        ..Default::default()
    };
    assert_eq!(fields(list), ["space", "page_size", "page_token"]);
    assert_eq!(
        accept(proto::ListSpacesRequest::default()).unwrap().limit,
        100
    );
    assert_eq!(fields(proto::ListSessionsRequest::default()), ["space"]);
    assert_eq!(
        fields(proto::HistoryRequest::default()),
        ["space", "turn_id"]
    );
    assert_eq!(
        fields(proto::WatchIngestionRequest::default()),
        ["space", "token"]
    );
    assert_eq!(fields(proto::ExportRequest::default()), ["space"]);
    let counted = accept(proto::CountTokensRequest::default());
    assert_eq!(counted.unwrap(), ("o200k_base".into(), Vec::new()));
    let letters = accept(proto::ListDeadLettersRequest::default());
    assert_eq!(letters.unwrap().0, None);
    let replay = proto::ReplayDeadLettersRequest {
        space: String::new(),
        acceptances: vec![1; 1_001],
    };
    assert_eq!(fields(replay), ["space", "acceptances"]);
}

#[test]
fn an_imported_record_is_held_to_the_limits_of_a_request() {
    let record = |kind| proto::ImportRequest {
        kind: Some(proto::import_request::Kind::Record(proto::Record { kind })),
    };
    let turn = proto::Turn {
        session: "s".into(),
        text: "x".repeat(65_537),
        ..Default::default()
    };
    assert_eq!(
        fields(record(Some(proto::record::Kind::Turn(turn)))),
        [
            "record.turn.id",
            "record.turn.recorded_at",
            "record.turn.text"
        ]
    );
    assert_eq!(fields(record(None)), ["record"]);
    assert_eq!(fields(proto::ImportRequest::default()), ["record"]);
}

#[test]
fn an_answer_may_be_larger_than_a_request() {
    let turn = proto::Turn {
        id: "6ba7b810-9dad-81d1-80b4-00c04fd430c8".into(),
        session: "s".into(),
        text: "x".repeat(70_000),
        recorded_at: Some(Timestamp::default()),
        ..Default::default()
    };
    assert!(understand(turn).is_ok());
}

#[test]
fn an_answer_that_breaks_its_proto_is_the_servers_fault() {
    let fault = understand(proto::TurnReceipt::default()).unwrap_err();
    assert_eq!(
        (fault.kind, fault.reason.as_ref()),
        (FaultKind::Internal, "ANSWER_NOT_UNDERSTOOD")
    );
    assert!(fault.message.contains("turn_id") && fault.message.contains("state"));
}

#[test]
fn a_time_and_all_times_are_not_asked_for_at_once() {
    let request = proto::ListFactsRequest {
        space: "ada".into(),
        as_of: Some(proto::AsOf {
            happened_by: Some(Timestamp::default()),
            ..Default::default()
        }),
        include_ended: true,
        turn_ids: vec!["7".into()],
        ..Default::default()
    };
    assert_eq!(fields(request), ["turn_ids[0]", "include_ended"]);
}

#[test]
fn what_was_never_true_is_not_said_otherwise() {
    let request = proto::UpdateRequest {
        space: "ada".into(),
        id: "7".into(),
        text: "Ada lives in Oslo.".into(),
        withdrawn: true,
        ..Default::default()
    };
    assert_eq!(fields(request), ["id", "withdrawn"]);
}

#[test]
fn conflicts_are_asked_for_by_known_statuses() {
    let request = proto::ListConflictsRequest {
        space: "ada".into(),
        statuses: vec![0, 1, 9],
        ..Default::default()
    };
    assert_eq!(fields(request), ["statuses[0]", "statuses[2]"]);
}
