//! Random values of context assembly.

use std::time::Duration;

use memfleet_domain::assembly::{
    AuditMode, Decision, DropReason, FailurePolicy, Gate, GateBound, GateMode, GateOutcome,
    Granularity, OrderPolicy, ProviderFormat, Reason, SessionOrigin, Strategy as Placing,
    TrustMode, UntrustedPolicy,
};
use memfleet_domain::ids::{DerivationId, ExchangeName, InjectionId, SessionId, Speaker};
use memfleet_domain::model_profile::ModelProfile;
use memfleet_domain::policy::Policy;
use memfleet_domain::time::TimeRange;
use memfleet_domain::topic::{Topic, TopicAction};
use memfleet_ports::assembly::{
    AssembleRequest, Assembled, AssembledItem, BudgetUse, Candidate, Content, Dropped, Edit,
    EditOperation, GateEntry, GateRequest, Gated, Message, Part, PartKind, ProfileUse, Prompt,
    RenderRequest, Source,
};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::{batch_id, instant, named, query, role, space_name, trust, turn_id, words};

pub(super) fn prompt() -> impl Strategy<Value = Prompt> {
    let kind = prop_oneof![
        any::<String>().prop_map(PartKind::Text),
        "[a-z]{1,5}/[a-z]{1,5}".prop_map(PartKind::Media),
        any::<String>().prop_map(PartKind::ToolResult),
        vec(any::<u8>(), 0..9).prop_map(PartKind::Opaque),
    ];
    let part = (kind, any::<bool>()).prop_map(|(kind, cached)| Part { kind, cached });
    let content = prop_oneof![
        any::<String>().prop_map(Content::Text),
        vec(part, 1..4).prop_map(Content::Parts),
    ];
    let message = (role(), content).prop_map(|(role, content)| Message { role, content });
    let body = vec(any::<u8>(), 1..40);
    prop_oneof![
        Just(Prompt::Unknown),
        vec(message, 1..4).prop_map(Prompt::Messages),
        (select(ProviderFormat::ALL), body)
            .prop_map(|(format, body)| Prompt::Provider { format, body }),
    ]
}

pub(super) fn model() -> impl Strategy<Value = ModelProfile> {
    let tokens = || option::of(1..9_999_u32);
    let supports = (option::of(any::<bool>()), option::of(any::<bool>()));
    (
        ".{0,9}",
        tokens(),
        tokens(),
        option::of("[a-z]{1,9}"),
        supports,
    )
        .prop_map(
            |(name, window_tokens, reserved_output_tokens, tokenizer, supports)| ModelProfile {
                name,
                window_tokens,
                reserved_output_tokens,
                tokenizer,
                supports_system: supports.0,
                supports_tools: supports.1,
            },
        )
}

pub(super) fn policy() -> impl Strategy<Value = Policy> {
    let words = (
        option::of(select(GateMode::ALL)),
        option::of(select(TrustMode::ALL)),
        option::of(select(OrderPolicy::ALL)),
        option::of(select(UntrustedPolicy::ALL)),
        option::of(select(FailurePolicy::ALL)),
        option::of(select(AuditMode::ALL)),
    );
    let numbers = (
        option::of(0..=1_000_000_u32),
        option::of(0.0..=100.0_f32),
        option::of(0..=32_u32),
        option::of(any::<bool>()),
    );
    let lists = (
        option::of(select(Placing::ALL).prop_map(|strategy| vec![strategy])),
        option::of(vec("[a-z]{1,5}", 1..3)),
        option::of(topic().prop_map(|topic| vec![topic])),
    );
    (words, numbers, lists).prop_map(|(words, numbers, lists)| {
        let mut policy = Policy::default();
        policy.gating.mode = words.0;
        (policy.format.trust, policy.format.order) = (words.1, words.2);
        policy.selection.untrusted = words.3;
        policy.selection.profile = numbers.3;
        policy.budget.profile_tokens = numbers.2;
        policy.failure.policy = words.4;
        policy.audit.mode = words.5;
        (policy.budget.max_tokens, policy.budget.percent_of_window) = (numbers.0, numbers.1);
        policy.tools.rounds = numbers.2;
        (policy.gating.rules, policy.capture.echoes) = (numbers.3, numbers.3);
        policy.exclusion.in_prompt = numbers.3;
        (policy.placing.strategies, policy.format.redactions) = (lists.0, lists.1);
        policy.topics = lists.2;
        policy
    })
}

fn topic() -> impl Strategy<Value = Topic> {
    let examples = vec("[a-z]{1,5}", 0..3);
    let parts = (
        select(TopicAction::ALL),
        "[a-z]{1,5}",
        "[a-z]{1,9}",
        examples,
    );
    parts.prop_map(|(action, name, description, examples)| Topic {
        name,
        action,
        description,
        examples,
    })
}

pub(super) fn sessions() -> impl Strategy<Value = Vec<SessionId>> {
    vec(named(SessionId::new), 0..3)
}

pub(crate) fn assemble() -> impl Strategy<Value = AssembleRequest> {
    let story = any::<[u8; 16]>().prop_map(DerivationId::from_bytes);
    let of = (
        prompt(),
        vec(story, 0..3),
        sessions(),
        option::of(named(ExchangeName::new)),
        option::of(named(Speaker::new)),
    );
    let how = (
        model(),
        policy(),
        option::of("[a-z0-9_]{1,12}"),
        any::<bool>(),
    );
    (query(), of, how, vec(batch_id(), 0..3)).prop_map(|(query, of, how, wait_for)| {
        AssembleRequest {
            query,
            prompt: of.0,
            narratives: of.1,
            aliases: of.2,
            exchange: of.3,
            speaker: of.4,
            model: how.0,
            policy: how.1,
            tokenizer: how.2,
            patch: how.3,
            wait_for,
        }
    })
}

pub(crate) fn gate() -> impl Strategy<Value = GateRequest> {
    (any::<String>(), prompt(), vec(space_name(), 1..3), policy()).prop_map(
        |(text, prompt, spaces, policy)| GateRequest {
            // One of both says something.
            text: match (text.trim(), &prompt) {
                ("", Prompt::Unknown) => "asked".to_owned(),
                _ => text,
            },
            prompt,
            spaces,
            policy,
        },
    )
}

fn interval() -> impl Strategy<Value = TimeRange> {
    (option::of(instant()), option::of(instant())).prop_map(|(start, end)| TimeRange { start, end })
}

fn candidate() -> impl Strategy<Value = Candidate> {
    let what = (
        words(),
        any::<String>(),
        -9.0..9.0_f64,
        option::of(0.0..=1.0_f32),
    );
    let who = (
        any::<String>(),
        any::<String>(),
        any::<String>(),
        role(),
        trust(),
    );
    let when = (option::of(instant()), option::of(instant()), interval());
    let lineage = (vec(any::<String>(), 0..3), vec(any::<String>(), 0..3));
    (what, who, when, select(Granularity::ALL), lineage).prop_map(
        |(what, who, when, granularity, lineage)| Candidate {
            id: what.0,
            text: what.1,
            score: what.2,
            relevance: what.3,
            source: who.0,
            session: who.1,
            speaker: who.2,
            role: who.3,
            event_time: when.0,
            recorded_at: when.1,
            granularity,
            trust: who.4,
            valid: when.2,
            lineage: lineage.0,
            lineage_sessions: lineage.1,
        },
    )
}

pub(crate) fn render() -> impl Strategy<Value = RenderRequest> {
    let of = (vec(candidate(), 0..3), any::<String>(), prompt());
    let session = (option::of(named(SessionId::new)), sessions());
    let how = (
        model(),
        policy(),
        option::of("[a-z0-9_]{1,12}"),
        any::<bool>(),
    );
    let fixed = (option::of(instant()), option::of("[a-z0-9]{4,12}"));
    (of, session, how, fixed).prop_map(|(of, session, how, fixed)| RenderRequest {
        candidates: of.0,
        query: of.1,
        prompt: of.2,
        tokenizer: how.2,
        session: session.0,
        aliases: session.1,
        model: how.0,
        policy: how.1,
        patch: how.3,
        now: fixed.0,
        nonce: fixed.1,
    })
}

pub(super) fn item() -> impl Strategy<Value = AssembledItem> {
    let source = (any::<String>(), any::<String>()).prop_map(|(system, id)| Source { system, id });
    let what = (
        turn_id(),
        option::of(space_name()),
        -9.0..9.0_f32,
        any::<u32>(),
        any::<bool>(),
    );
    let who = (any::<String>(), any::<String>(), role(), trust());
    let when = (option::of(instant()), option::of(instant()), interval());
    let else_ = (
        select(Granularity::ALL),
        option::of(0.0..=1.0_f32),
        vec(source, 0..3),
    );
    (what, who, when, else_).prop_map(|(what, who, when, else_)| AssembledItem {
        space: what.1,
        id: what.0.to_string(),
        score: what.2,
        tokens: what.3,
        excerpt: what.4,
        citation_key: who.0.clone(),
        session: who.0,
        speaker: who.1.clone(),
        role: who.2,
        event_time: when.0,
        recorded_at: when.1,
        granularity: else_.0,
        trust: who.3,
        relevance: else_.1,
        original_tokens: what.3,
        sources: else_.2,
        valid: when.2,
        mixed_lineage: what.4,
        content_hash: who.1,
        signals: Vec::new(),
        corrected_from: Vec::new(),
    })
}

fn entry() -> impl Strategy<Value = GateEntry> {
    let said = (
        select(Gate::ALL),
        select(GateOutcome::ALL),
        select(Reason::ALL),
    );
    let number = || option::of(-1.0..=1.0_f32);
    (said, any::<String>(), number(), number(), any::<u32>()).prop_map(
        |(said, text, first, second, count)| GateEntry {
            rule: text.clone(),
            pattern: text.clone(),
            version: text,
            similarity_memory: first,
            similarity_none: second,
            margin: first,
            threshold: second,
            best_score: first,
            passed: count,
            dropped: count,
            duration: Duration::from_nanos(count.into()),
            bounds: Vec::from_iter(first.map(|it| GateBound::at_least("words", it, 0.0))),
            ..GateEntry::new(said.0, said.1, said.2)
        },
    )
}

pub(crate) fn gated() -> impl Strategy<Value = Gated> {
    (any::<bool>(), select(Reason::ALL), vec(entry(), 0..3)).prop_map(|(pass, reason, gates)| {
        Gated {
            pass,
            reason,
            gates,
        }
    })
}

fn dropped() -> impl Strategy<Value = Dropped> {
    let what = (option::of(space_name()), any::<String>(), any::<String>());
    let why = (select(DropReason::ALL), option::of(0.0..=1.0_f32));
    (what, why).prop_map(|((space, id, detail), (reason, relevance))| Dropped {
        space,
        id,
        reason,
        detail,
        relevance,
    })
}

fn edit() -> impl Strategy<Value = Edit> {
    use EditOperation::{
        AddTool, AppendPart, AppendSystem, AppendSystemPart, AppendText, InsertSystem,
    };
    let operations = vec![
        AppendText,
        AppendPart,
        AppendSystem,
        AppendSystemPart,
        InsertSystem,
        AddTool,
    ];
    let index = || option::of(0..999_u32);
    (
        select(operations),
        index(),
        index(),
        any::<String>(),
        any::<String>(),
    )
        .prop_map(|(operation, message, part, text, tool)| Edit {
            operation,
            message,
            part,
            text,
            tool,
        })
}

pub(crate) fn assembled() -> impl Strategy<Value = Assembled> {
    let what = (
        any::<String>(),
        vec(item(), 0..3),
        vec(any::<String>(), 0..2),
    );
    let why = (
        select(Decision::ALL),
        option::of(select(Reason::ALL)),
        vec(entry(), 0..3),
        vec(dropped(), 0..3),
        vec(edit(), 0..3),
    );
    let how = (
        select(Placing::ALL),
        select(Placing::ALL),
        any::<u32>(),
        any::<String>(),
    );
    let names = (
        option::of(any::<[u8; 16]>().prop_map(InjectionId::from_bytes)),
        option::of(named(SessionId::new)),
        option::of(named(ExchangeName::new)),
        btree_map(any::<String>(), any::<String>(), 0..3),
        option::of(vec(any::<u8>(), 1..9)),
        option::of(select(SessionOrigin::ALL)),
        vec(named(SessionId::new), 0..3),
    );
    (what, why, how, names).prop_map(|(what, why, how, names)| Assembled {
        block: what.0,
        tokens: how.2,
        items: what.1,
        left_out: how.2,
        degraded: what.2,
        injection: names.0,
        decision: why.0,
        reason: why.1,
        edits: why.4,
        patched: names.4,
        gates: why.2,
        dropped: why.3,
        budget: BudgetUse {
            effective_tokens: how.2,
            limited_by: how.3.clone(),
            added_tokens: how.2,
            tokenizer: how.3.clone(),
            approximate: how.2 > 9,
            prompt_tokens: how.2,
        },
        strategy_requested: how.0,
        strategy_used: how.1,
        timings: vec![(how.3.clone(), Duration::from_nanos(how.2.into()))],
        versions: names.3,
        session: names.1,
        session_origin: names.5,
        session_lineage: names.6,
        exchange: names.2,
        understood: Some(how.3.clone()).filter(|text| !text.is_empty()),
        nonce: how.3.clone(),
        profile: (how.2 > 9).then_some(ProfileUse {
            speaker: how.3.clone(),
            tokens: how.2,
            nonce: how.3,
        }),
    })
}
