//! What a prompt says that memory is to be put into: where the block goes, what is asked, and how much there is already. The prompt itself
//! is read on a thread for such work, as it may be large, and is not kept.

use std::borrow::Cow;

use memfleet_assembly::Tokenizer;
use memfleet_domain::Fault;
use memfleet_domain::assembly::{ProviderFormat, Reason, Strategy};
use memfleet_domain::ids::{ExchangeName, SessionId};
use memfleet_gates::asked;
use memfleet_gates::rules::Before;
use memfleet_ports::assembly::{Content, Message, PartKind, Prompt};
use memfleet_provider::conversation::{self, Conversation};
use memfleet_provider::placement::{self, Nowhere, Obstacle, Placement, Site};
use memfleet_provider::session::{self, Transcript};
use memfleet_provider::{Place, Request, query};

use super::models::Model;
use crate::conversations::Resent;

/// A prompt, as far as an assembly has to know it.
#[derive(Clone, Default)]
pub struct Outline {
    /// Where the block goes, or why nowhere; none where there is no prompt.
    pub place: Option<Result<Placement, Reason>>,
    /// Where a block goes by each strategy that has one, for a block that the exchange has already.
    pub block_places: Vec<Placement>,
    /// What the user says last.
    pub query: Option<String>,
    /// Its conversation before that.
    pub before_it: Before,
    /// The end of that conversation in words, at most [`HISTORY_BYTES`].
    pub history: String,
    /// Whether it is a question and nothing else: no history, nor anything after it.
    pub begins: bool,
    /// The session that the request tells of.
    pub session: Option<SessionId>,
    /// What it resends of its conversation; none where no user says anything, or the provider keeps the history.
    pub resent: Option<Resent>,
    /// The exchange that what the user says last makes.
    pub exchange: Option<ExchangeName>,
    /// All that it says, without blocks of memory; only where that has to be counted or compared.
    pub texts: Vec<String>,
    /// The text that the block is put after.
    pub before: String,
    /// Tokens of the window that the request keeps for the answer.
    pub answer_tokens: Option<u64>,
    /// The window that the request sets.
    pub window: Option<u64>,
}

/// What reading a prompt needs to know.
pub struct Reading<'r> {
    /// The strategies, in the order of preference.
    pub strategies: &'r [Strategy],
    /// Whether the caller gives a query beside the prompt.
    pub has_query: bool,
    /// The model.
    pub model: &'r Model,
    /// Whether what the prompt says must be known.
    pub compares: bool,
}

impl Outline {
    /// What an assembly has to know of a conversation.
    pub fn of(conversation: &Conversation<'_>, reading: &Reading<'_>) -> Self {
        let profile = placement::Profile {
            supports_system: reading.model.supports_system,
            supports_tools: reading.model.supports_tools,
        };
        let place = placement::place(conversation, reading.strategies, profile, reading.has_query);
        let by = |strategy| placement::place(conversation, &[strategy], profile, true).ok();
        let block_places = [Strategy::Append, Strategy::System].into_iter();
        let query = query::text(conversation);
        let is_counted = reading.model.window.is_some() || conversation.window_tokens.is_some();
        let texts = conversation.texts().map(query::without_blocks);
        let texts = texts.map(Cow::into_owned);
        let is_read = is_counted || reading.compares;
        let asked = session::asked(conversation);
        Self {
            before: before(conversation, place.as_ref().ok()),
            place: Some(place.map_err(nowhere)),
            block_places: block_places.filter_map(by).collect(),
            before_it: before_it(conversation),
            history: history(conversation),
            begins: begins(conversation),
            session: told_session(conversation),
            exchange: exchange(&asked),
            resent: resent(conversation, asked),
            query,
            texts: if is_read { texts.collect() } else { Vec::new() },
            answer_tokens: conversation.max_output_tokens,
            window: conversation.window_tokens,
        }
    }
}

/// What a prompt comes to, beside memory. Only an assembly that goes as far as its budget needs it: it takes a look at every word.
#[derive(Default)]
pub struct Weight {
    /// What the prompt says, to leave out what memory would repeat.
    pub said: memfleet_assembly::Prompt,
    /// Tokens of the prompt, counted where the window of the model is known.
    pub tokens: u64,
}

impl Weight {
    /// Counts and reads a prompt.
    pub fn of(outline: &Outline, model: &Model, tokenizer: &Tokenizer, compares: bool) -> Self {
        let is_counted = model.window.is_some() || outline.window.is_some();
        let counted = outline.texts.iter().filter(|_| is_counted);
        let compared = outline.texts.iter().filter(|_| compares);
        Self {
            tokens: counted.map(|text| tokenizer.count(text) as u64).sum(),
            said: memfleet_assembly::Prompt::of(compared.map(String::as_str)),
        }
    }
}

/// The text that a block comes after.
fn before(conversation: &Conversation<'_>, placement: Option<&Placement>) -> String {
    let Some(Site::After {
        place, list: false, ..
    }) = placement.map(|placement| &placement.site)
    else {
        return String::new();
    };
    let content = match place {
        Place::System => conversation.system.as_ref(),
        Place::Message(at) => Some(&conversation.messages[*at].content),
    };
    let text = content.and_then(|content| content.texts().last());
    text.unwrap_or_default().to_owned()
}

fn nowhere(reason: Nowhere) -> Reason {
    match reason {
        Nowhere::NoTarget => Reason::NoTarget,
        Nowhere::NoQueryText => Reason::NoQueryText,
        Nowhere::NoStrategy => Reason::StrategyNone,
        Nowhere::Blocked(obstacle) => blocked(obstacle),
    }
}

/// Why the first strategy was not taken.
pub fn passed_over(placement: &Placement) -> Option<Reason> {
    let (_, obstacle) = placement.passed_over.first()?;
    Some(blocked(*obstacle))
}

fn blocked(obstacle: Obstacle) -> Reason {
    match obstacle {
        Obstacle::SystemUnsupported => Reason::SystemUnsupported,
        Obstacle::ToolsUnsupported => Reason::ToolsUnsupported,
        Obstacle::ToolChoiceConflict | Obstacle::ToolNameConflict | Obstacle::SeveralCandidates => {
            Reason::ToolChoiceConflict
        }
        Obstacle::TargetUnsupported => Reason::NoTarget,
    }
}

/// The exchange by the conversation up to what the user says last: said again later it is another one.
pub fn exchange(asked: &Transcript) -> Option<ExchangeName> {
    let key = (!asked.is_empty()).then(|| asked.key())?;
    ExchangeName::new(key).ok()
}

/// What a request resends of its conversation.
pub fn resent(conversation: &Conversation<'_>, asked: Transcript) -> Option<Resent> {
    if asked.is_empty() || conversation.hints.previous_reply.is_some() {
        return None;
    }
    let target = query::target(conversation)?;
    Some(Resent {
        transcript: asked,
        is_under_way: target + 1 < conversation.messages.len(),
    })
}

/// The session that a request tells of.
pub fn told_session(conversation: &Conversation<'_>) -> Option<SessionId> {
    let (told, _) = session::given(None, conversation)?;
    SessionId::new(told.into_owned()).ok()
}

/// Bytes of a query at most.
const QUERY: usize = 8_192;

/// Query of a user's words: the question, where a log or a file stands with
/// it.
pub fn searched_for(said: &str) -> Cow<'_, str> {
    asked::question(said, QUERY)
}

/// What a prompt asks, where nothing else of it matters.
#[derive(Default)]
pub struct Asked {
    /// What the user says last.
    pub query: Option<String>,
    /// Its conversation before that.
    pub before_it: Before,
}

impl Asked {
    /// Reads a prompt, which may be large.
    pub async fn of(prompt: Prompt) -> Result<Self, Fault> {
        let asked = |conversation: &Conversation<'_>| Self {
            query: query::text(conversation),
            before_it: before_it(conversation),
        };
        let read = move || with_conversation(&prompt, asked);
        Ok(super::apart(read).await??.unwrap_or_default())
    }
}

/// Conversation before the user's last message: if anyone spoke, and if the assistant
/// asked.
fn before_it(conversation: &Conversation<'_>) -> Before {
    let before = query::target(conversation).map_or(&[][..], |at| &conversation.messages[..at]);
    let mut spoken = before.iter().rev().filter(|it| !it.role.is_system());
    if spoken.clone().next().is_none() {
        return Before::Nothing;
    }
    let reply = spoken.find(|it| it.role == conversation::Role::Assistant);
    let mut texts = reply.into_iter().flat_map(|it| it.content.texts());
    match texts.any(|text| Before::reply(text) == Before::Question) {
        true => Before::Question,
        false => Before::Turns,
    }
}

/// Longest end of the conversation before the user's last words that is read with them, in bytes.
const HISTORY_BYTES: usize = 1_024;

/// Last messages of that conversation that are looked at.
const HISTORY_MESSAGES: usize = 8;

/// Words of user and assistant before what the user says last.
fn history(conversation: &Conversation<'_>) -> String {
    let asked = query::target(conversation).map_or(0, |at| at + 1);
    let before = conversation.messages[..asked].iter().rev();
    let before = before.skip_while(|message| message.is_authored());
    let said = before.take(HISTORY_MESSAGES).filter_map(|message| {
        let speaker = match message.role {
            conversation::Role::User => "User",
            conversation::Role::Assistant => "Assistant",
            _ => return None,
        };
        let texts = message.content.texts().map(query::without_blocks);
        let text = texts.collect::<Vec<_>>().join(" ");
        (!text.is_empty()).then(|| format!("{speaker}: {text}"))
    });
    let mut said: Vec<_> = said.collect();
    said.reverse();
    let history = said.join(" ");
    let surplus = history.len().saturating_sub(HISTORY_BYTES);
    history[history.ceil_char_boundary(surplus)..].to_owned()
}

/// Whether nothing is before the user's last message, nor after it.
fn begins(conversation: &Conversation<'_>) -> bool {
    let target = query::target(conversation);
    let is_last = target.is_some_and(|at| at + 1 == conversation.messages.len());
    is_last && before_it(conversation) == Before::Nothing
}

/// Reads a prompt and hands its conversation on; none where there is no prompt.
pub fn with_conversation<T>(
    prompt: &Prompt,
    use_it: impl FnOnce(&Conversation<'_>) -> T,
) -> Result<Option<T>, Fault> {
    match prompt {
        Prompt::Unknown => Ok(None),
        Prompt::Messages(messages) => Ok(Some(use_it(&neutral(messages)))),
        Prompt::Provider { format: of, body } => {
            let request = request(*of, body)?;
            Ok(Some(use_it(request.conversation())))
        }
    }
}

/// A provider's request, read.
pub fn request(of: ProviderFormat, body: &[u8]) -> Result<Request<'_>, Fault> {
    Request::parse(of, body).map_err(|error| {
        let place = match error.path.as_str() {
            "" => String::new(),
            path => format!("{path} "),
        };
        Fault::invalid("provider_request.body", format!("{place}{}", error.reason))
    })
}

fn content(content: &Content) -> conversation::Content<'_> {
    match content {
        Content::Text(text) => conversation::Content::text(text.as_str()),
        Content::Parts(parts) => conversation::Content::list(parts.iter().map(part).collect()),
    }
}

/// Messages without bytes as a conversation.
fn neutral(messages: &[Message]) -> Conversation<'_> {
    use memfleet_domain::turn::Role;
    let role = |role| match role {
        Role::User => conversation::Role::User,
        Role::Assistant => conversation::Role::Assistant,
        Role::System => conversation::Role::System,
        Role::Tool => conversation::Role::Tool,
    };
    let messages = messages.iter().map(|message| conversation::Message {
        role: role(message.role),
        content: content(&message.content),
    });
    Conversation {
        messages: messages.collect(),
        ..Conversation::default()
    }
}

fn part(part: &memfleet_ports::assembly::Part) -> conversation::Part<'_> {
    use conversation::{Part, PartKind as Kind};
    let read = match &part.kind {
        PartKind::Text(text) => Part::text(text.as_str()),
        PartKind::Media(kind) if kind.starts_with("image/") => Part::of(Kind::Image),
        PartKind::Media(kind) if kind.starts_with("audio/") => Part::of(Kind::Audio),
        PartKind::Media(_) => Part::of(Kind::Document),
        PartKind::ToolResult(text) => Part {
            text: Some(text.as_str().into()),
            ..Part::of(Kind::ToolResult)
        },
        PartKind::Opaque(_) => Part::of(Kind::Opaque),
    };
    Part {
        cached: part.cached,
        ..read
    }
}

impl Outline {
    /// Where memory goes.
    pub fn placement(&self) -> Option<&Placement> {
        self.place.as_ref()?.as_ref().ok()
    }

    /// What stands between the prompt's text and the block.
    pub fn separator(&self) -> &'static str {
        self.placement().map_or("", Placement::separator)
    }

    /// Goes by this strategy, where the prompt and the model allow it now; whether they do.
    pub fn go_by(&mut self, strategy: Strategy) -> bool {
        if self.placement().is_none_or(|it| it.strategy == strategy) {
            return true;
        }
        let place = self.block_places.iter().find(|it| it.strategy == strategy);
        let place = place.cloned();
        let is_there = place.is_some();
        self.place = place.map(Ok).or(self.place.take());
        is_there
    }
}
