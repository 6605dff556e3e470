//! Context assembly.

mod answer;
mod candidate;
mod gates;

use memfleet_domain::Fault;
use memfleet_domain::ids::{ExchangeName, SessionId, Speaker};
use memfleet_domain::policy::Policy;
use memfleet_ports::assembly::{
    AssembleRequest, Counted, GateRequest, Prompt, RenderRequest, TokenizerInfo,
};
use memfleet_ports::retriever::Query;

use super::prompt::fields_of;
use super::time::time;
use super::words::number;
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
        let (messages, provider_request) = fields_of(request.prompt);
        Ok(Self {
            query: query.text,
            messages,
            spaces: query.spaces.into_iter().map(Into::into).collect(),
            filter: Some(query.filter.try_into()?),
            budget_tokens: None,
            tokenizer: request.tokenizer.unwrap_or_default(),
            k: query.k,
            max_items: 0,
            max_item_tokens: 0,
            excerpts: None,
            now: query.now.map(time),
            session: query.session.map(Into::into).unwrap_or_default(),
            intent: query.intent.map(Into::into),
            quality: number::<proto::SearchQuality, _>(query.quality),
            wait_for: request.wait_for.iter().map(ToString::to_string).collect(),
            neighbours: query.neighbours,
            narrative_ids: request.narratives.iter().map(ToString::to_string).collect(),
            provider_request,
            session_aliases: request.aliases.into_iter().map(Into::into).collect(),
            speaker: request.speaker.map(Into::into).unwrap_or_default(),
            exchange: request.exchange.map(Into::into).unwrap_or_default(),
            model: Some(request.model.into()),
            policy: Some(request.policy.into()),
            patch: request.patch,
            explain: query.explain,
        })
    }
}

impl Checked for proto::AssembleRequest {
    type Value = AssembleRequest;

    fn check(self, fields: &mut Fields) -> Option<AssembleRequest> {
        let max_tokens = fields.budget(self.budget_tokens);
        let ids = self.narrative_ids;
        let needs_words = ids.is_empty();
        let narratives = fields.each("narrative_ids", ids, limits::NARRATIVES, |fields, id| {
            fields.id("", &id, "the id of a narrative")
        });
        let prompt = fields.prompt(self.messages, self.provider_request);
        let text = match needs_words {
            true => fields.query_beside(self.query, prompt.as_ref()),
            false => fields.text("query", self.query, limits::QUERY),
        };
        let spaces = fields.spaces(self.spaces);
        let filter = fields.message_or_default("filter", self.filter);
        let tokenizer = fields.named_tokenizer(self.tokenizer);
        let reach = fields.reach(self.k, DEFAULT_K, self.neighbours);
        let now = fields.optional_time("now", self.now);
        let quality = fields.optional_word("quality", self.quality);
        let session = fields.optional_name("session", self.session, SessionId::new);
        let aliases = self.session_aliases;
        let aliases = fields.names("session_aliases", aliases, limits::VALUES, SessionId::new);
        let speaker = fields.optional_name("speaker", self.speaker, Speaker::new);
        let exchange = fields.optional_name("exchange", self.exchange, ExchangeName::new);
        let model = fields.message_or_default("model", self.model);
        let policy = fields.message_or_default("policy", self.policy);
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
            explain: self.explain,
            quality: quality?,
            vectors: None,
        };
        let over = Over {
            max_tokens: max_tokens?,
            max_items: self.max_items,
            max_item_tokens: self.max_item_tokens,
            excerpts: self.excerpts,
        };
        Some(AssembleRequest {
            query,
            prompt: prompt?,
            narratives: narratives?,
            aliases: aliases?,
            speaker: speaker?,
            exchange: exchange?,
            model: model?,
            policy: over.policy(policy?),
            tokenizer: tokenizer?,
            patch: self.patch,
            wait_for: wait_for?,
        })
    }
}

impl Fields {
    /// What is asked, which may be left out where a prompt shows it; `None`: the prompt was wrong.
    fn query_beside(&mut self, query: String, prompt: Option<&Prompt>) -> Option<String> {
        if prompt == Some(&Prompt::Unknown) && query.trim().is_empty() {
            let problem = "is required where neither `messages` nor `provider_request` is given";
            return self.refuse("query", problem);
        }
        self.text("query", query, limits::QUERY)
    }
}

/// What a request says beside its policy, and over it.
#[derive(Default)]
struct Over {
    max_tokens: Option<u32>,
    max_items: u32,
    max_item_tokens: u32,
    excerpts: Option<bool>,
}

impl Over {
    fn policy(self, mut policy: Policy) -> Policy {
        let said = |number: u32| (number > 0).then_some(number);
        let budget = &mut policy.budget;
        budget.max_tokens = self.max_tokens.or(budget.max_tokens);
        budget.max_items = said(self.max_items).or(budget.max_items);
        budget.max_item_tokens = said(self.max_item_tokens).or(budget.max_item_tokens);
        policy.selection.excerpts = self.excerpts.or(policy.selection.excerpts);
        policy
    }
}

#[expect(
    clippy::option_option,
    reason = "the outer one says whether the field was right"
)]
impl Fields {
    /// Tokens; 0 is a budget, too.
    fn budget(&mut self, tokens: Option<u32>) -> Option<Option<u32>> {
        match tokens {
            Some(tokens) if tokens > limits::BUDGET_TOKENS => {
                let most = limits::BUDGET_TOKENS;
                let problem = format!("is {tokens}; it must lie between 0 and {most}");
                self.refuse("budget_tokens", problem)
            }
            tokens => Some(tokens),
        }
    }

    /// The name of a tokenizer, where one is given.
    pub(super) fn named_tokenizer(&mut self, name: String) -> Option<Option<String>> {
        let name = self.text("tokenizer", name, limits::TOKENIZER)?;
        Some((!name.is_empty()).then_some(name))
    }
}

impl From<GateRequest> for proto::GateRequest {
    fn from(request: GateRequest) -> Self {
        let (messages, provider_request) = fields_of(request.prompt);
        Self {
            query: request.text,
            messages,
            spaces: request.spaces.into_iter().map(Into::into).collect(),
            provider_request,
            policy: Some(request.policy.into()),
        }
    }
}

impl Checked for proto::GateRequest {
    type Value = GateRequest;

    fn check(self, fields: &mut Fields) -> Option<GateRequest> {
        let prompt = fields.prompt(self.messages, self.provider_request);
        let text = fields.query_beside(self.query, prompt.as_ref());
        let spaces = fields.spaces(self.spaces);
        let policy = fields.message_or_default("policy", self.policy);
        Some(GateRequest {
            text: text?,
            prompt: prompt?,
            spaces: spaces?,
            policy: policy?,
        })
    }
}

impl From<RenderRequest> for proto::RenderRequest {
    fn from(request: RenderRequest) -> Self {
        let (messages, provider_request) = fields_of(request.prompt);
        Self {
            candidates: request.candidates.into_iter().map(Into::into).collect(),
            query: request.query,
            messages,
            provider_request,
            budget_tokens: None,
            tokenizer: request.tokenizer.unwrap_or_default(),
            session: request.session.map(Into::into).unwrap_or_default(),
            session_aliases: request.aliases.into_iter().map(Into::into).collect(),
            model: Some(request.model.into()),
            policy: Some(request.policy.into()),
            patch: request.patch,
            now: request.now.map(time),
            nonce: request.nonce.unwrap_or_default(),
        }
    }
}

impl Checked for proto::RenderRequest {
    type Value = RenderRequest;

    fn check(self, fields: &mut Fields) -> Option<RenderRequest> {
        let max_tokens = fields.budget(self.budget_tokens);
        let candidates = fields.messages("candidates", self.candidates, limits::CANDIDATES);
        let query = fields.text("query", self.query, limits::QUERY);
        let prompt = fields.prompt(self.messages, self.provider_request);
        let tokenizer = fields.named_tokenizer(self.tokenizer);
        let session = fields.optional_name("session", self.session, SessionId::new);
        let aliases = self.session_aliases;
        let aliases = fields.names("session_aliases", aliases, limits::VALUES, SessionId::new);
        let model = fields.message_or_default("model", self.model);
        let policy = fields.message_or_default("policy", self.policy);
        let now = fields.optional_time("now", self.now);
        let nonce = fields.text("nonce", self.nonce, limits::NONCE);
        let over = Over {
            max_tokens: max_tokens?,
            ..Over::default()
        };
        Some(RenderRequest {
            candidates: candidates?,
            query: query?,
            prompt: prompt?,
            tokenizer: tokenizer?,
            session: session?,
            aliases: aliases?,
            model: model?,
            policy: over.policy(policy?),
            patch: self.patch,
            now: now?,
            nonce: nonce.map(|nonce| (!nonce.is_empty()).then_some(nonce))?,
        })
    }
}

impl Checked for proto::CountTokensRequest {
    type Value = (String, Vec<String>);

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let tokenizer = fields.named_tokenizer(self.tokenizer);
        let (texts, most) = (self.texts, limits::COUNTED_TEXTS);
        let texts = fields.each("texts", texts, most, |fields, text| {
            fields.text("", text, limits::COUNTED_TEXT)
        });
        let tokenizer = tokenizer?.unwrap_or_else(|| DEFAULT_TOKENIZER.to_owned());
        Some((tokenizer, texts?))
    }
}

impl From<TokenizerInfo> for proto::TokenizerInfo {
    fn from(tokenizer: TokenizerInfo) -> Self {
        Self {
            name: tokenizer.name,
            approximate: tokenizer.approximate,
        }
    }
}

impl Checked for proto::TokenizerInfo {
    type Value = TokenizerInfo;

    fn check(self, _: &mut Fields) -> Option<TokenizerInfo> {
        Some(TokenizerInfo {
            name: self.name,
            approximate: self.approximate,
        })
    }
}

impl From<Counted> for proto::CountTokensResponse {
    fn from(counted: Counted) -> Self {
        Self {
            counts: counted.counts,
            tokenizer: Some(counted.tokenizer.into()),
            tokenizers: counted.tokenizers.into_iter().map(Into::into).collect(),
        }
    }
}

impl Checked for proto::CountTokensResponse {
    type Value = Counted;

    fn check(self, fields: &mut Fields) -> Option<Counted> {
        let tokenizer = fields.message_or_default("tokenizer", self.tokenizer);
        let tokenizers = fields.messages("tokenizers", self.tokenizers, usize::MAX);
        Some(Counted {
            counts: self.counts,
            tokenizer: tokenizer?,
            tokenizers: tokenizers?,
        })
    }
}
