//! Where memory goes in a request: the strategies of AMP, tried in the caller's order.

use crate::Format;
use crate::conversation::{Conversation, Shape, ToolChoice};
use crate::edit::{Edit, Place};
use crate::query;
use crate::tools::{self, Names};
pub use memfleet_domain::assembly::Strategy;
use serde::{Deserialize, Serialize};

/// What stands between a text and the block after it.
pub const SEPARATOR: &str = "\n\n";

/// What a model can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// It heeds a system prompt.
    pub supports_system: bool,
    /// It can call tools.
    pub supports_tools: bool,
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            supports_system: true,
            supports_tools: true,
        }
    }
}

/// Why a strategy was passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Obstacle {
    /// The model takes no system prompt (AMP item 17).
    SystemUnsupported,
    /// The model cannot call tools (AMP item 25).
    ToolsUnsupported,
    /// The client forbids tools or wants a certain one (AMP item 34).
    ToolChoiceConflict,
    /// The client's tools have all names that ours could have (AMP item 21).
    ToolNameConflict,
    /// Several alternative replies are asked for, and each could call tools of its own.
    SeveralCandidates,
    /// The target's content has no form that text can be added to.
    TargetUnsupported,
}

/// Why there is no placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Nowhere {
    /// No message is a user's (AMP items 7, 8).
    NoTarget,
    /// The user's message has no text, and the caller gave no query (AMP item 9).
    NoQueryText,
    /// The caller wants none.
    NoStrategy,
    /// The request and the model allow none of those that the caller does; why not the first.
    Blocked(Obstacle),
}

/// Where the memory goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// The strategy used.
    pub strategy: Strategy,
    /// What was tried before it, and why it was not taken.
    pub passed_over: Vec<(Strategy, Obstacle)>,
    /// The place.
    pub site: Site,
}

/// The place of a block, or the tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Site {
    /// After this content.
    After {
        /// Which.
        place: Place,
        /// Whether it is a list, which gets a part of its own.
        list: bool,
        /// Whether there is text that a separator has to follow.
        separated: bool,
    },
    /// A system prompt that is made for it.
    NewSystem,
    /// No block: tools of these names.
    Tools(Names),
}

/// Places memory by the first of `allowed` that the request and the model can take. `has_query` says that the caller gave a query itself.
pub fn place(
    conversation: &Conversation<'_>,
    allowed: &[Strategy],
    profile: Profile,
    has_query: bool,
) -> Result<Placement, Nowhere> {
    let target = query::target(conversation).ok_or(Nowhere::NoTarget)?;
    let mut passed_over = Vec::new();
    for strategy in allowed {
        let site = match strategy {
            Strategy::None => break,
            Strategy::Append => after(conversation, Place::Message(target)),
            Strategy::System if profile.supports_system => Ok(system(conversation)),
            Strategy::System => Err(Obstacle::SystemUnsupported),
            Strategy::Tool => tool_names(conversation, profile).map(Site::Tools),
        };
        match site {
            Ok(site) => {
                let wants_query = *strategy != Strategy::Tool;
                if wants_query && !has_query && query::text(conversation).is_none() {
                    return Err(Nowhere::NoQueryText);
                }
                return Ok(Placement {
                    strategy: *strategy,
                    passed_over,
                    site,
                });
            }
            Err(obstacle) => passed_over.push((*strategy, obstacle)),
        }
    }
    Err(match passed_over.first() {
        Some((_, obstacle)) => Nowhere::Blocked(*obstacle),
        None => Nowhere::NoStrategy,
    })
}

/// After content that has the form for it.
fn after(conversation: &Conversation<'_>, place: Place) -> Result<Site, Obstacle> {
    let content = match place {
        Place::System => conversation.system.as_ref(),
        Place::Message(index) => Some(&conversation.messages[index].content),
    };
    let content = content.ok_or(Obstacle::TargetUnsupported)?;
    let list = match content.shape {
        Shape::Text => false,
        Shape::List => true,
        Shape::Absent => return Err(Obstacle::TargetUnsupported),
    };
    Ok(Site::After {
        place,
        list,
        separated: !list && content.texts().any(|text| !text.is_empty()),
    })
}

/// The designated system prompt: the field, else the last message of the operator before anybody else speaks, else the operator's first.
fn system(conversation: &Conversation<'_>) -> Site {
    let messages = &conversation.messages;
    let leading = messages.iter().take_while(|m| m.role.is_system()).count();
    let message = leading
        .checked_sub(1)
        .or_else(|| messages.iter().position(|m| m.role.is_system()));
    let place = match (&conversation.system, message) {
        (Some(_), _) => Place::System,
        (None, Some(index)) => Place::Message(index),
        (None, None) => return Site::NewSystem,
    };
    after(conversation, place).unwrap_or(Site::NewSystem)
}

fn tool_names(conversation: &Conversation<'_>, profile: Profile) -> Result<Names, Obstacle> {
    if !profile.supports_tools {
        return Err(Obstacle::ToolsUnsupported);
    }
    if matches!(
        conversation.tool_choice,
        ToolChoice::None | ToolChoice::Forced
    ) {
        return Err(Obstacle::ToolChoiceConflict);
    }
    if conversation.candidates > 1 {
        return Err(Obstacle::SeveralCandidates);
    }
    Names::free(conversation).ok_or(Obstacle::ToolNameConflict)
}

impl Placement {
    /// The edits that put `block` in its place, or the tools. An empty block makes none. `format` is `None` for messages of no provider.
    pub fn edits(&self, format: Option<Format>, block: &str) -> Vec<Edit> {
        match &self.site {
            Site::Tools(names) => format
                .map_or_else(
                    || tools::neutral_definitions(names),
                    |format| tools::definitions(format, names),
                )
                .into_iter()
                .map(|definition| Edit::AddTool { definition })
                .collect(),
            Site::After { .. } | Site::NewSystem => self.block_edit(block).into_iter().collect(),
        }
    }

    /// The edit that puts `block` in its place; `None` where there is no block, and for tools.
    pub fn block_edit(&self, block: &str) -> Option<Edit> {
        if block.is_empty() {
            return None;
        }
        let text = format!("{}{block}", self.separator());
        match self.site {
            Site::Tools(_) => None,
            Site::NewSystem => Some(Edit::InsertSystem { text }),
            Site::After { place, list, .. } if list => Some(Edit::AppendPart { place, text }),
            Site::After { place, .. } => Some(Edit::AppendText { place, text }),
        }
    }

    /// What comes before the block and counts against its budget.
    pub fn separator(&self) -> &'static str {
        match self.site {
            Site::After {
                separated: true, ..
            } => SEPARATOR,
            _ => "",
        }
    }
}
