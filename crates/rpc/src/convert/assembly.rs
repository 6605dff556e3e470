//! Context assembly.

use memfleet_domain::Fault;
use memfleet_domain::ids::{SessionId, SpaceId};
use memfleet_domain::turn::Role;
use memfleet_ports::assembly::{AssembleRequest, Assembled, AssembledItem};
use memfleet_ports::retriever::Query;

use super::time::time;
use super::{Checked, Fields};
use crate::{limits, proto};

/// Candidates of an `Assemble` that does not say.
const DEFAULT_K: u32 = 100;

/// Tokenizer of a request that names none.
const DEFAULT_TOKENIZER: &str = "o200k_base";

impl TryFrom<AssembleRequest> for proto::AssembleRequest {
    type Error = Fault;

    fn try_from(request: AssembleRequest) -> Result<Self, Fault> {
        let query = request.query;
        Ok(Self {
            query: query.text,
            messages: Vec::new(),
            spaces: query.spaces.into_iter().map(Into::into).collect(),
            filter: Some(query.filter.try_into()?),
            budget_tokens: request.budget_tokens,
            tokenizer: request.tokenizer,
            k: query.k,
            max_items: request.max_items.unwrap_or_default(),
            max_item_tokens: request.max_item_tokens.unwrap_or_default(),
            excerpts: Some(request.excerpts),
            now: query.now.map(time),
            session: query.session.map(Into::into).unwrap_or_default(),
            intent: query.intent.map(Into::into),
            wait_for: request.wait_for.iter().map(ToString::to_string).collect(),
            neighbours: query.neighbours,
            narrative_ids: request.narratives.iter().map(ToString::to_string).collect(),
        })
    }
}

impl Checked for proto::AssembleRequest {
    type Value = AssembleRequest;

    fn check(self, fields: &mut Fields) -> Option<AssembleRequest> {
        let ids = self.narrative_ids;
        let is_story = !ids.is_empty();
        let narratives = fields.each("narrative_ids", ids, limits::NARRATIVES, |fields, id| {
            fields.id("", &id, "the id of a narrative")
        });
        let text = match (self.query.is_empty(), self.messages.is_empty()) {
            (true, true) if is_story => Some(String::new()),
            (false, false) => fields.refuse("messages", "must be left out when `query` is given"),
            (true, false) => fields.query_of(self.messages),
            (_, true) => fields.words("query", self.query, limits::QUERY),
        };
        let spaces = fields.spaces(self.spaces);
        let filter = fields.message_or_default("filter", self.filter);
        let budget_tokens = match self.budget_tokens {
            0 => fields.refuse("budget_tokens", "is required"),
            budget => fields.number("budget_tokens", budget, 0, 1..=limits::BUDGET_TOKENS),
        };
        let tokenizer = fields.tokenizer(self.tokenizer);
        let reach = fields.reach(self.k, DEFAULT_K, self.neighbours);
        let now = fields.optional_time("now", self.now);
        let session = fields.optional_name("session", self.session, SessionId::new);
        let wait_for = fields.wait_for(self.wait_for);
        let (k, neighbours) = reach?;
        let query = Query {
            text: text?,
            spaces: spaces?,
            filter: filter?,
            k,
            neighbours,
            now: now?,
            session: session?,
            intent: self.intent.map(Into::into),
            explain: false,
        };
        Some(AssembleRequest {
            query,
            narratives: narratives?,
            budget_tokens: budget_tokens?,
            tokenizer: tokenizer?,
            max_items: (self.max_items > 0).then_some(self.max_items),
            max_item_tokens: (self.max_item_tokens > 0).then_some(self.max_item_tokens),
            excerpts: self.excerpts.unwrap_or(true),
            wait_for: wait_for?,
        })
    }
}

impl Fields {
    fn tokenizer(&mut self, name: String) -> Option<String> {
        let name = self.text("tokenizer", name, limits::TOKENIZER)?;
        Some(if name.is_empty() {
            DEFAULT_TOKENIZER.to_owned()
        } else {
            name
        })
    }

    /// What to look for given a conversation: its last unbroken run of user messages.
    fn query_of(&mut self, messages: Vec<proto::Message>) -> Option<String> {
        let messages = self.each("messages", messages, limits::MESSAGES, |fields, message| {
            let role = fields.role("role", message.role);
            let text = fields.text("text", message.text, limits::TEXT);
            Some((role?, text?))
        })?;
        let from_user =
            |(role, text): &&(Role, String)| *role == Role::User && !text.trim().is_empty();
        let mut run: Vec<&str> = messages
            .iter()
            .rev()
            .skip_while(|message| !from_user(message))
            .take_while(from_user)
            .map(|(_, text)| text.as_str())
            .collect();
        if run.is_empty() {
            return self.refuse(
                "messages",
                "must hold a user message with text, or give `query`",
            );
        }
        run.reverse();
        let text = run.join("\n");
        let start = text.ceil_char_boundary(text.len().saturating_sub(limits::QUERY));
        Some(text[start..].to_owned())
    }
}

impl From<AssembledItem> for proto::AssembledItem {
    fn from(item: AssembledItem) -> Self {
        Self {
            space: item.space.into(),
            turn_id: item.turn.to_string(),
            score: item.score,
            tokens: item.tokens,
            excerpt: item.excerpt,
        }
    }
}

impl Checked for proto::AssembledItem {
    type Value = AssembledItem;

    fn check(self, fields: &mut Fields) -> Option<AssembledItem> {
        let space = fields.name("space", self.space, SpaceId::new);
        let turn = fields.id("turn_id", &self.turn_id, "the id of a turn");
        Some(AssembledItem {
            space: space?,
            turn: turn?,
            score: self.score,
            tokens: self.tokens,
            excerpt: self.excerpt,
        })
    }
}

impl From<Assembled> for proto::AssembleResponse {
    fn from(assembled: Assembled) -> Self {
        Self {
            block: assembled.block,
            tokens: assembled.tokens,
            items: assembled.items.into_iter().map(Into::into).collect(),
            left_out: assembled.left_out,
            degraded: assembled.degraded,
        }
    }
}

impl Checked for proto::AssembleResponse {
    type Value = Assembled;

    fn check(self, fields: &mut Fields) -> Option<Assembled> {
        let items = fields.messages("items", self.items, usize::MAX)?;
        Some(Assembled {
            block: self.block,
            tokens: self.tokens,
            items,
            left_out: self.left_out,
            degraded: self.degraded,
        })
    }
}

impl Checked for proto::CountTokensRequest {
    type Value = (String, Vec<String>);

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let tokenizer = fields.tokenizer(self.tokenizer);
        let texts = fields.each(
            "texts",
            self.texts,
            limits::COUNTED_TEXTS,
            |fields, text| fields.text("", text, limits::COUNTED_TEXT),
        );
        let texts = fields.some("texts", texts);
        Some((tokenizer?, texts?))
    }
}

impl From<Vec<u32>> for proto::CountTokensResponse {
    fn from(counts: Vec<u32>) -> Self {
        Self { counts }
    }
}

impl Checked for proto::CountTokensResponse {
    type Value = Vec<u32>;

    fn check(self, _: &mut Fields) -> Option<Vec<u32>> {
        Some(self.counts)
    }
}
