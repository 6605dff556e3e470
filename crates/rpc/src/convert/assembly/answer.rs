//! What was assembled.

use memfleet_domain::assembly::{Granularity, Strategy};
use memfleet_domain::ids::{ExchangeName, SessionId, SpaceId};
use memfleet_ports::assembly::{
    Assembled, AssembledItem, BudgetUse, Dropped, Edit, ProfileUse, Source,
};

use super::super::derivation::range;
use super::super::time::time;
use super::super::words::number;
use super::super::{Checked, Fields};
use super::gates::{duration, taken};
use crate::proto;

fn text(space: Option<SpaceId>) -> String {
    space.map(Into::into).unwrap_or_default()
}

impl From<AssembledItem> for proto::AssembledItem {
    fn from(item: AssembledItem) -> Self {
        Self {
            space: text(item.space),
            turn_id: item.id,
            score: item.score,
            tokens: item.tokens,
            excerpt: item.excerpt,
            citation_key: item.citation_key,
            session: item.session,
            speaker: item.speaker,
            role: proto::Role::from(item.role).into(),
            event_time: item.event_time.map(time),
            recorded_at: item.recorded_at.map(time),
            granularity: proto::Granularity::from(item.granularity).into(),
            trust: proto::Trust::from(item.trust).into(),
            relevance: item.relevance,
            original_tokens: item.original_tokens,
            sources: item.sources.into_iter().map(Into::into).collect(),
            valid: (!item.valid.is_open()).then(|| range(item.valid)),
            mixed_lineage: item.mixed_lineage,
            content_hash: item.content_hash,
            signals: item.signals.into_iter().map(Into::into).collect(),
        }
    }
}

impl Checked for proto::AssembledItem {
    type Value = AssembledItem;

    fn check(self, fields: &mut Fields) -> Option<AssembledItem> {
        let space = fields.optional_name("space", self.space, SpaceId::new);
        let role = fields.role("role", self.role);
        let event_time = fields.optional_time("event_time", self.event_time);
        let recorded_at = fields.optional_time("recorded_at", self.recorded_at);
        let granularity = fields.optional_word("granularity", self.granularity);
        let trust = fields.trust("trust", self.trust, role);
        let sources = fields.messages("sources", self.sources, usize::MAX);
        let valid = fields.interval("valid", self.valid);
        let signals = fields.messages("signals", self.signals, usize::MAX);
        Some(AssembledItem {
            space: space?,
            id: self.turn_id,
            score: self.score,
            tokens: self.tokens,
            excerpt: self.excerpt,
            citation_key: self.citation_key,
            session: self.session,
            speaker: self.speaker,
            role: role?,
            event_time: event_time?,
            recorded_at: recorded_at?,
            granularity: granularity?.unwrap_or(Granularity::Verbatim),
            trust: trust?,
            relevance: self.relevance,
            original_tokens: self.original_tokens,
            sources: sources?,
            valid: valid?,
            mixed_lineage: self.mixed_lineage,
            content_hash: self.content_hash,
            signals: signals?,
            corrected_from: Vec::new(),
        })
    }
}

impl From<Source> for proto::ItemSource {
    fn from(source: Source) -> Self {
        Self {
            system: source.system,
            memory_id: source.id,
        }
    }
}

impl Checked for proto::ItemSource {
    type Value = Source;

    fn check(self, _: &mut Fields) -> Option<Source> {
        Some(Source {
            system: self.system,
            id: self.memory_id,
        })
    }
}

impl From<Dropped> for proto::Dropped {
    fn from(dropped: Dropped) -> Self {
        Self {
            space: text(dropped.space),
            memory_id: dropped.id,
            reason: proto::DropReason::from(dropped.reason).into(),
            detail: dropped.detail,
            relevance: dropped.relevance,
        }
    }
}

impl Checked for proto::Dropped {
    type Value = Dropped;

    fn check(self, fields: &mut Fields) -> Option<Dropped> {
        let space = fields.optional_name("space", self.space, SpaceId::new);
        let reason = fields.word("reason", self.reason);
        Some(Dropped {
            space: space?,
            id: self.memory_id,
            reason: reason?,
            detail: self.detail,
            relevance: self.relevance,
        })
    }
}

impl From<Edit> for proto::Edit {
    fn from(edit: Edit) -> Self {
        let index = |at: Option<u32>| at.map_or(-1, |at| at as i32);
        Self {
            operation: proto::EditOperation::from(edit.operation).into(),
            message_index: index(edit.message),
            part_index: index(edit.part),
            text: edit.text,
            tool: edit.tool,
        }
    }
}

impl Checked for proto::Edit {
    type Value = Edit;

    fn check(self, fields: &mut Fields) -> Option<Edit> {
        let operation = fields.word("operation", self.operation);
        Some(Edit {
            operation: operation?,
            message: self.message_index.try_into().ok(),
            part: self.part_index.try_into().ok(),
            text: self.text,
            tool: self.tool,
        })
    }
}

impl From<BudgetUse> for proto::BudgetUse {
    fn from(budget: BudgetUse) -> Self {
        Self {
            effective_tokens: budget.effective_tokens,
            limited_by: budget.limited_by,
            added_tokens: budget.added_tokens,
            tokenizer: budget.tokenizer,
            approximate: budget.approximate,
            prompt_tokens: budget.prompt_tokens,
        }
    }
}

impl Checked for proto::BudgetUse {
    type Value = BudgetUse;

    fn check(self, _: &mut Fields) -> Option<BudgetUse> {
        Some(BudgetUse {
            effective_tokens: self.effective_tokens,
            limited_by: self.limited_by,
            added_tokens: self.added_tokens,
            tokenizer: self.tokenizer,
            approximate: self.approximate,
            prompt_tokens: self.prompt_tokens,
        })
    }
}

impl From<ProfileUse> for proto::ProfileUse {
    fn from(profile: ProfileUse) -> Self {
        Self {
            speaker: profile.speaker,
            tokens: profile.tokens,
            nonce: profile.nonce,
        }
    }
}

impl Checked for proto::ProfileUse {
    type Value = ProfileUse;

    fn check(self, _: &mut Fields) -> Option<ProfileUse> {
        Some(ProfileUse {
            speaker: self.speaker,
            tokens: self.tokens,
            nonce: self.nonce,
        })
    }
}

impl From<Assembled> for proto::AssembleResponse {
    fn from(assembled: Assembled) -> Self {
        let timing = |(stage, took)| proto::StageTiming {
            stage,
            duration: Some(duration(took)),
        };
        Self {
            block: assembled.block,
            tokens: assembled.tokens,
            items: assembled.items.into_iter().map(Into::into).collect(),
            left_out: assembled.left_out,
            degraded: assembled.degraded,
            injection_id: assembled
                .injection
                .map(|id| id.to_string())
                .unwrap_or_default(),
            decision: proto::Decision::from(assembled.decision).into(),
            reason: number::<proto::AssemblyReason, _>(assembled.reason),
            edits: assembled.edits.into_iter().map(Into::into).collect(),
            patched_request: assembled.patched.unwrap_or_default(),
            gates: assembled.gates.into_iter().map(Into::into).collect(),
            dropped: assembled.dropped.into_iter().map(Into::into).collect(),
            budget: Some(assembled.budget.into()),
            strategy_requested: proto::Strategy::from(assembled.strategy_requested).into(),
            strategy_used: proto::Strategy::from(assembled.strategy_used).into(),
            timings: assembled.timings.into_iter().map(timing).collect(),
            versions: assembled.versions,
            session: assembled.session.map(Into::into).unwrap_or_default(),
            session_origin: number::<proto::SessionOrigin, _>(assembled.session_origin),
            session_lineage: assembled
                .session_lineage
                .into_iter()
                .map(Into::into)
                .collect(),
            exchange: assembled.exchange.map(Into::into).unwrap_or_default(),
            understood: assembled.understood.unwrap_or_default(),
            nonce: assembled.nonce,
            profile: assembled.profile.map(Into::into),
        }
    }
}

impl Checked for proto::AssembleResponse {
    type Value = Assembled;

    fn check(self, fields: &mut Fields) -> Option<Assembled> {
        let items = fields.messages("items", self.items, usize::MAX);
        let what = "the id of an injection";
        let injection = fields.optional_id("injection_id", &self.injection_id, what);
        let decision = fields.word("decision", self.decision);
        let reason = fields.optional_word("reason", self.reason);
        let edits = fields.messages("edits", self.edits, usize::MAX);
        let gates = fields.messages("gates", self.gates, usize::MAX);
        let dropped = fields.messages("dropped", self.dropped, usize::MAX);
        let budget = fields.message_or_default("budget", self.budget);
        let requested = fields.optional_word("strategy_requested", self.strategy_requested);
        let used = fields.optional_word("strategy_used", self.strategy_used);
        let timings = self.timings.into_iter();
        let timings = timings.map(|timing| (timing.stage, taken(timing.duration)));
        let session = fields.optional_name("session", self.session, SessionId::new);
        let origin = fields.optional_word("session_origin", self.session_origin);
        let lineage = fields.names(
            "session_lineage",
            self.session_lineage,
            usize::MAX,
            SessionId::new,
        );
        let exchange = fields.optional_name("exchange", self.exchange, ExchangeName::new);
        let is_present = self.profile.is_some();
        let profile = fields.message_or_default("profile", self.profile);
        let patched = self.patched_request;
        Some(Assembled {
            block: self.block,
            tokens: self.tokens,
            items: items?,
            left_out: self.left_out,
            degraded: self.degraded,
            injection: injection?,
            decision: decision?,
            reason: reason?,
            edits: edits?,
            patched: (!patched.is_empty()).then_some(patched),
            gates: gates?,
            dropped: dropped?,
            budget: budget?,
            strategy_requested: requested?.unwrap_or(Strategy::None),
            strategy_used: used?.unwrap_or(Strategy::None),
            timings: timings.collect(),
            versions: self.versions,
            session: session?,
            session_origin: origin?,
            session_lineage: lineage?,
            exchange: exchange?,
            understood: (!self.understood.is_empty()).then_some(self.understood),
            nonce: self.nonce,
            profile: profile.map(|profile| is_present.then_some(profile))?,
        })
    }
}

impl Checked for proto::ListModelProfilesRequest {
    type Value = ();

    fn check(self, _: &mut Fields) -> Option<()> {
        Some(())
    }
}
