//! Random values of memory tools and of what is captured.

use memfleet_domain::assembly::{ProviderFormat, SessionOrigin, Termination};
use memfleet_domain::ids::{ExchangeName, SessionId, Speaker};
use memfleet_ports::assembly::Prompt;
use memfleet_ports::capture::{RecordTurnRequest, Recorded};
use memfleet_ports::tools::{
    CloseRequest, Closed, SchemaRequest, ToolCall, ToolResult, ToolSchema,
};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::assembly::{item, model, policy, prompt, sessions};
use super::{batch_id, filter, instant, named, space_name, turn_id, turn_receipt, words};

fn termination() -> impl Strategy<Value = Termination> {
    select(Termination::ALL)
}

pub(crate) fn schema_request() -> impl Strategy<Value = SchemaRequest> {
    let format = option::of(select(ProviderFormat::ALL));
    (format, vec("[a-z_]{1,20}", 0..3)).prop_map(|(format, taken_names)| SchemaRequest {
        format,
        taken_names,
    })
}

pub(crate) fn tool_schemas() -> impl Strategy<Value = Vec<ToolSchema>> {
    let tool = [words(), words(), words()].prop_map(|[name, tool, parameters]| ToolSchema {
        name,
        tool,
        parameters,
    });
    vec(tool, 0..3)
}

pub(crate) fn tool_call() -> impl Strategy<Value = ToolCall> {
    let of = (
        vec(space_name(), 1..3),
        named(SessionId::new),
        sessions(),
        named(ExchangeName::new),
    );
    let what = ("[a-z0-9]{1,9}", 0..9_u32, "[a-z_]{0,20}", words());
    let how = (
        filter(),
        model(),
        policy(),
        option::of("[a-z0-9_]{1,12}"),
        option::of(instant()),
    );
    (of, what, how).prop_map(|(of, what, how)| ToolCall {
        spaces: of.0,
        session: of.1,
        aliases: of.2,
        exchange: of.3,
        call_id: what.0,
        round: what.1,
        name: what.2,
        arguments: what.3,
        filter: how.0,
        model: how.1,
        policy: how.2,
        tokenizer: how.3,
        now: how.4,
    })
}

pub(crate) fn tool_result() -> impl Strategy<Value = ToolResult> {
    let said = (words(), any::<bool>(), any::<bool>());
    let spent = (any::<u32>(), any::<u32>(), any::<u32>(), any::<u32>());
    let end = option::of(termination());
    let items = (vec(item(), 0..3), vec(words(), 0..2));
    (said, spent, end, items).prop_map(|(said, spent, termination, items)| ToolResult {
        text: said.0,
        is_error: said.1,
        rounds_used: spent.0,
        rounds_remaining: spent.1,
        tokens_used: spent.2,
        tokens_remaining: spent.3,
        must_finalize: said.2,
        termination,
        items: items.0,
        degraded: items.1,
    })
}

pub(crate) fn close() -> impl Strategy<Value = CloseRequest> {
    (
        named(SessionId::new),
        named(ExchangeName::new),
        option::of(termination()),
        ".{0,9}",
    )
        .prop_map(|(session, exchange, termination, model)| CloseRequest {
            session,
            exchange,
            termination,
            model,
        })
}

pub(crate) fn closed() -> impl Strategy<Value = Closed> {
    let spent = (any::<u32>(), any::<u32>());
    (termination(), spent, vec(turn_id(), 0..3)).prop_map(|(termination, spent, turns)| Closed {
        termination,
        rounds_used: spent.0,
        tokens_used: spent.1,
        turns,
    })
}

pub(crate) fn record_turn() -> impl Strategy<Value = RecordTurnRequest> {
    let of = (
        space_name(),
        option::of(named(SessionId::new)),
        option::of(named(ExchangeName::new)),
    );
    let shown = prompt().prop_filter("something is recorded", |it| *it != Prompt::Unknown);
    let what = (shown, vec(any::<u8>(), 0..40), any::<bool>(), any::<bool>());
    let who = (
        ".{0,9}",
        option::of(named(Speaker::new)),
        option::of(named(Speaker::new)),
    );
    let labels = btree_map("[a-z]{1,5}", ".{0,9}", 0..3);
    let when = option::of(instant());
    (of, what, who, labels, when).prop_map(|(of, what, who, metadata, event_time)| {
        let is_request = matches!(what.0, Prompt::Provider { .. });
        RecordTurnRequest {
            space: of.0,
            session: of.1,
            exchange: of.2,
            prompt: what.0,
            answer: if is_request { what.1 } else { Vec::new() },
            partial: what.2,
            model: who.0,
            assistant: who.1,
            user: who.2,
            event_time,
            metadata,
            include_system: what.3,
        }
    })
}

pub(crate) fn recorded() -> impl Strategy<Value = Recorded> {
    let counts = any::<[u32; 4]>();
    (
        option::of(batch_id()),
        vec(turn_receipt(), 0..3),
        counts,
        named(SessionId::new),
        option::of(select(SessionOrigin::ALL)),
    )
        .prop_map(|(token, turns, counts, session, session_origin)| Recorded {
            token,
            turns,
            duplicates: counts[0],
            left_out: counts[1],
            blocks_removed: counts[2],
            forgotten: counts[3],
            session,
            session_origin,
        })
}
