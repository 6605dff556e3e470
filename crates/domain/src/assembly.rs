//! The words of context assembly (AMP, the Augmented Memory Protocol): how memory enters a prompt, and why it did or did not.

use serde::{Deserialize, Serialize};

use crate::words;

words! {
    /// How memory enters the prompt (AMP, injection strategies).
    Strategy {
        /// At the end of the last message that the user wrote.
        Append = "append",
        /// At the end of the system prompt.
        System = "system",
        /// As the result of a tool that the model calls, in rounds.
        Tool = "tool",
        /// Not at all.
        None = "none",
    }

    /// Whose request it is, byte by byte.
    ProviderFormat {
        /// `POST /v1/chat/completions`.
        OpenaiChat = "openai_chat",
        /// `POST /v1/responses`.
        OpenaiResponses = "openai_responses",
        /// `POST /v1/messages`.
        AnthropicMessages = "anthropic_messages",
        /// `generateContent`.
        Gemini = "gemini",
        /// `POST /api/chat`.
        OllamaChat = "ollama_chat",
    }

    /// Whether gates are asked (AMP item 52).
    GateMode {
        /// They are.
        Auto = "auto",
        /// The first two are passed by; the third still looks at each item.
        Always = "always",
        /// Nothing is injected.
        Never = "never",
    }

    /// What may keep memory out of a prompt (AMP, quality gating).
    Gate {
        /// What the caller or the policy says.
        Policy = "policy",
        /// Gate 1: rules, before anything is looked up.
        Rules = "rules",
        /// Gate 2: what the query's vector is like.
        Routing = "routing",
        /// Gate 3: how relevant what was found is.
        Relevance = "relevance",
    }

    /// What a gate said.
    GateOutcome {
        /// Go on.
        Pass = "pass",
        /// No memory for this prompt.
        Skip = "skip",
        /// Go on, whatever the gates before the search say.
        Force = "force",
        /// It cannot tell; the assembly goes on.
        Abstain = "abstain",
    }

    /// What became of an assembly.
    Decision {
        /// The block is to be injected as the first of the strategies says.
        Injected = "injected",
        /// The block is to be injected as another of the strategies says.
        Fallback = "fallback",
        /// Nothing is injected.
        Skipped = "skipped",
    }

    /// Why a gate said so, or an assembly ended so.
    Reason {
        /// The caller or the policy says never.
        GateNever = "gate_never",
        /// The caller or the policy says always.
        GateAlways = "gate_always",
        /// No visible text.
        Empty = "empty",
        /// A greeting, thanks, an acknowledgement, a farewell.
        Pleasantry = "pleasantry",
        /// A command to the client, such as `/clear`.
        Command = "command",
        /// Code and no words.
        CodeOnly = "code_only",
        /// It asks for memory in so many words.
        MemoryReference = "memory_reference",
        /// No rule matches.
        Undecided = "undecided",
        /// It is like examples that need memory.
        NeedsMemory = "needs_memory",
        /// It is like examples that need none.
        NeedsNoMemory = "needs_no_memory",
        /// It is like neither, or like both.
        Unsure = "unsure",
        /// The space has few memories. Only records of earlier versions have it.
        ColdSpace = "cold_space",
        /// There is nothing in the spaces.
        NoMemory = "no_memory",
        /// One of the spaces does not exist.
        UnknownSpace = "unknown_space",
        /// There are no vectors of the examples, or of the query.
        NoVectors = "no_vectors",
        /// The vectors of the examples are of another embedding space.
        OtherEmbeddingSpace = "other_embedding_space",
        /// The gate is switched off.
        SwitchedOff = "switched_off",
        /// Items were relevant enough.
        Relevant = "relevant",
        /// No item was relevant enough.
        BelowThreshold = "below_threshold",
        /// Items have no calibrated score.
        NotScored = "not_scored",
        /// No message that a user wrote.
        NoTarget = "no_target",
        /// No words to search for.
        NoQueryText = "no_query_text",
        /// The budget is 0.
        BudgetZero = "budget_zero",
        /// The prompt fills the window.
        NoHeadroom = "no_headroom",
        /// The budget has no room for a useful item.
        BudgetTooSmall = "budget_too_small",
        /// The budget of the exchange or of the session is used up.
        BudgetUsedUp = "budget_used_up",
        /// Nothing was found, or nothing that may be used.
        NothingFound = "nothing_found",
        /// The search failed or was too slow.
        RetrievalUnavailable = "retrieval_unavailable",
        /// The strategy is `none`.
        StrategyNone = "strategy_none",
        /// The model knows no system prompt.
        SystemUnsupported = "system_unsupported",
        /// The model knows no tools.
        ToolsUnsupported = "tools_unsupported",
        /// The caller forbids or forces a tool of its own.
        ToolChoiceConflict = "tool_choice_conflict",
        /// The block of an earlier request of this exchange is given again.
        Sticky = "sticky",
        /// The tools are offered; the model asks for memory itself.
        ToolsOffered = "tools_offered",
    }

    /// Why a candidate is not in the block.
    DropReason {
        /// Its relevance is below the threshold.
        BelowThreshold = "below_threshold",
        /// It says what another says.
        Duplicate = "duplicate",
        /// It belongs to the running conversation, or to one that was excluded with it.
        CurrentSession = "current_session",
        /// It was derived from nothing but excluded conversations.
        DerivedFromCurrent = "derived_from_current",
        /// What it was derived from is in the block.
        DerivedFromIncluded = "derived_from_included",
        /// The prompt says it already.
        InPrompt = "in_prompt",
        /// It is too new.
        RecencyFilter = "recency_filter",
        /// It is no longer so.
        Superseded = "superseded",
        /// The block has its maximum of this session.
        PerSessionCap = "per_session_cap",
        /// The block has its maximum of this source.
        PerSourceCap = "per_source_cap",
        /// The block has its maximum of items.
        MaxItems = "max_items",
        /// There is no room for it, nor for a useful excerpt.
        Budget = "budget",
        /// It is over the tokens of one item and could not be cut.
        TooLong = "too_long",
        /// Its origin is not trusted.
        Untrusted = "untrusted",
        /// The policy says so.
        Policy = "policy",
        /// It has no visible text.
        Blank = "blank",
        /// Its score is not a finite number.
        InvalidScore = "invalid_score",
    }

    /// How stored text is kept apart from the rest of the prompt.
    TrustMode {
        /// Nothing but headings and speakers.
        Plain = "plain",
        /// Enclosed in delimiters with a random nonce; text of tools and the web is marked line by line.
        Delimited = "delimited",
        /// The same, and every line is marked.
        Datamarked = "datamarked",
    }

    /// In which order the block shows its items.
    OrderPolicy {
        /// By time.
        Chronological = "chronological",
        /// Best first.
        Rank = "rank",
        /// By time inside a session, sessions by their best item, the best one last.
        BestLast = "best_last",
        /// The best at both ends.
        Sandwich = "sandwich",
    }

    /// What becomes of text that tools or the web wrote.
    UntrustedPolicy {
        /// It is treated as any other.
        Include = "include",
        /// It counts for less.
        DownRank = "down_rank",
        /// It stands in a part of its own, at the end.
        Segregate = "segregate",
        /// It is left out.
        Exclude = "exclude",
    }

    /// What becomes of a call whose memory cannot be had in time.
    FailurePolicy {
        /// An empty plan: the model is called without memory.
        Open = "open",
        /// An error.
        Closed = "closed",
    }

    /// What kind of memory an item is.
    Granularity {
        /// A turn, word for word.
        Verbatim = "verbatim",
        /// What a stretch of conversation was about.
        Episode = "episode",
        /// A summary.
        Summary = "summary",
        /// An atomic sentence.
        Fact = "fact",
        /// Subject, predicate, object.
        Triplet = "triplet",
        /// A line of a profile.
        Profile = "profile",
    }

    /// What is kept of an injection (AMP item 94).
    AuditMode {
        /// Ids, numbers and the block as it was.
        Full = "full",
        /// Ids, numbers and the hash of the block.
        Redacted = "redacted",
        /// Nothing.
        Off = "off",
    }

    /// How the session of a prompt is known (AMP items 103, 106).
    SessionOrigin {
        /// The call names it.
        Given = "given",
        /// The provider's request names it.
        Request = "request",
        /// The conversation goes on with one that was heard of before.
        Continued = "continued",
        /// The conversation is a new one.
        New = "new",
        /// The conversation begins like another one and goes another way.
        Forked = "forked",
    }

    /// How the retrieval of an exchange ended (AMP item 24).
    Termination {
        /// The model answered.
        ModelAnswered = "model_answered",
        /// All rounds were used.
        RoundLimit = "round_limit",
        /// All tokens were used.
        TokenBudget = "token_budget",
        /// The model asked the same again.
        RepeatedQuery = "repeated_query",
        /// Nothing came that was not there before.
        NoNewResults = "no_new_results",
        /// Time ran out.
        Deadline = "deadline",
        /// A tool of the caller is to answer.
        ClientToolPending = "client_tool_pending",
        /// The model's provider failed.
        UpstreamError = "upstream_error",
        /// The model or its provider refused tools.
        ToolsRejected = "tools_rejected",
    }
}

/// One bound that a gate held a value against.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GateBound {
    /// Name of the bound: the setting that it comes from, or the value that it bounds.
    pub name: String,
    /// The value of this request.
    pub value: f32,
    /// The bound; the bound itself is on the side that meets it.
    pub bound: f32,
    /// Whether the value meets the bound.
    pub met: bool,
}

impl GateBound {
    /// A bound that is met from `bound` on.
    pub fn at_least(name: &str, value: f32, bound: f32) -> Self {
        Self {
            name: name.to_owned(),
            value,
            bound,
            met: value >= bound,
        }
    }

    /// A bound that is met up to `bound`.
    pub fn at_most(name: &str, value: f32, bound: f32) -> Self {
        Self {
            met: value <= bound,
            ..Self::at_least(name, value, bound)
        }
    }
}

impl SessionOrigin {
    /// Whether nobody names the session: it is known by what was said.
    pub fn is_derived(self) -> bool {
        match self {
            Self::Given | Self::Request => false,
            Self::Continued | Self::New | Self::Forked => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for reason in Reason::ALL {
            assert_eq!(reason.name().parse(), Ok(*reason));
            let written = serde_json::to_string(reason).unwrap();
            assert_eq!(written, format!("\"{reason}\""));
        }
        let error = "appendix".parse::<Strategy>().unwrap_err();
        assert_eq!(error, "must be one of append, system, tool, none");
    }
}
