//! Prompts under construction, and the models that they are for.

use memfleet_domain::model_profile::ModelProfile;
use memfleet_ports::assembly::{Content, Message, Part, PartKind, Prompt};

use super::{Checked, Fields};
use crate::{limits, proto};

impl From<Part> for proto::MessagePart {
    fn from(part: Part) -> Self {
        use proto::message_part::Kind;
        Self {
            kind: Some(match part.kind {
                PartKind::Text(text) => Kind::Text(text),
                PartKind::Media(kind) => Kind::Media(kind),
                PartKind::ToolResult(text) => Kind::ToolResult(text),
                PartKind::Opaque(bytes) => Kind::Opaque(bytes),
            }),
            cached: part.cached,
        }
    }
}

impl Checked for proto::MessagePart {
    type Value = Part;

    fn check(self, fields: &mut Fields) -> Option<Part> {
        use proto::message_part::Kind;
        let kind = match self.kind {
            None => {
                return fields.refuse("kind", "is required: text, media, tool_result or opaque");
            }
            Some(Kind::Text(text)) => PartKind::Text(fields.text("text", text, limits::TEXT)?),
            Some(Kind::Media(kind)) => {
                PartKind::Media(fields.text("media", kind, limits::MIME_TYPE)?)
            }
            Some(Kind::ToolResult(text)) => {
                PartKind::ToolResult(fields.text("tool_result", text, limits::TEXT)?)
            }
            Some(Kind::Opaque(bytes)) => PartKind::Opaque(bytes),
        };
        Some(Part {
            kind,
            cached: self.cached,
        })
    }
}

impl From<Message> for proto::Message {
    fn from(message: Message) -> Self {
        let (text, parts) = match message.content {
            Content::Text(text) => (text, Vec::new()),
            Content::Parts(parts) => (String::new(), parts),
        };
        Self {
            role: proto::Role::from(message.role).into(),
            text,
            parts: parts.into_iter().map(Into::into).collect(),
        }
    }
}

impl Checked for proto::Message {
    type Value = Message;

    fn check(self, fields: &mut Fields) -> Option<Message> {
        let role = fields.role("role", self.role);
        let content = match (self.text.is_empty(), self.parts.is_empty()) {
            (false, false) => fields.refuse("parts", "must be left out when `text` is given"),
            (_, true) => fields
                .text("text", self.text, limits::TEXT)
                .map(Content::Text),
            (true, false) => fields
                .messages("parts", self.parts, limits::MESSAGES)
                .map(Content::Parts),
        };
        Some(Message {
            role: role?,
            content: content?,
        })
    }
}

/// The two fields that a prompt travels in.
pub(super) fn fields_of(prompt: Prompt) -> (Vec<proto::Message>, Option<proto::ProviderRequest>) {
    match prompt {
        Prompt::Unknown => (Vec::new(), None),
        Prompt::Messages(messages) => (messages.into_iter().map(Into::into).collect(), None),
        Prompt::Provider { format, body } => {
            let format = proto::ProviderFormat::from(format).into();
            (Vec::new(), Some(proto::ProviderRequest { format, body }))
        }
    }
}

impl Fields {
    /// A prompt, in either of its forms or not at all.
    pub(super) fn prompt(
        &mut self,
        messages: Vec<proto::Message>,
        request: Option<proto::ProviderRequest>,
    ) -> Option<Prompt> {
        match request {
            None if messages.is_empty() => Some(Prompt::Unknown),
            None => self
                .messages("messages", messages, limits::MESSAGES)
                .map(Prompt::Messages),
            Some(_) if !messages.is_empty() => {
                let problem = "must be left out when `messages` are given";
                self.refuse("provider_request", problem)
            }
            Some(request) => self.inside("provider_request", |fields| {
                let format = fields.word("format", request.format);
                if request.body.is_empty() {
                    return fields.refuse("body", "is required");
                }
                Some(Prompt::Provider {
                    format: format?,
                    body: request.body,
                })
            }),
        }
    }
}

impl From<ModelProfile> for proto::ModelProfile {
    fn from(profile: ModelProfile) -> Self {
        Self {
            name: profile.name,
            window_tokens: profile.window_tokens.unwrap_or_default(),
            reserved_output_tokens: profile.reserved_output_tokens.unwrap_or_default(),
            tokenizer: profile.tokenizer.unwrap_or_default(),
            supports_system: profile.supports_system,
            supports_tools: profile.supports_tools,
        }
    }
}

impl Checked for proto::ModelProfile {
    type Value = ModelProfile;

    fn check(self, fields: &mut Fields) -> Option<ModelProfile> {
        let said = |number: u32| (number > 0).then_some(number);
        let name = fields.text("name", self.name, limits::MODEL);
        let tokenizer = fields.text("tokenizer", self.tokenizer, limits::TOKENIZER);
        Some(ModelProfile {
            name: name?,
            window_tokens: said(self.window_tokens),
            reserved_output_tokens: said(self.reserved_output_tokens),
            tokenizer: tokenizer.map(|name| (!name.is_empty()).then_some(name))?,
            supports_system: self.supports_system,
            supports_tools: self.supports_tools,
        })
    }
}

impl From<Vec<ModelProfile>> for proto::ListModelProfilesResponse {
    fn from(profiles: Vec<ModelProfile>) -> Self {
        Self {
            profiles: profiles.into_iter().map(Into::into).collect(),
        }
    }
}

impl Checked for proto::ListModelProfilesResponse {
    type Value = Vec<ModelProfile>;

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        fields.messages("profiles", self.profiles, usize::MAX)
    }
}

impl Checked for proto::PutModelProfileRequest {
    type Value = ModelProfile;

    fn check(self, fields: &mut Fields) -> Option<ModelProfile> {
        let profile = fields.message("profile", self.profile)?;
        if profile.name.trim().is_empty() {
            return fields.refuse("profile.name", "is required");
        }
        Some(profile)
    }
}

impl From<(ModelProfile, u32)> for proto::PutModelProfileResponse {
    fn from((profile, version): (ModelProfile, u32)) -> Self {
        Self {
            profile: Some(profile.into()),
            version,
        }
    }
}

impl Checked for proto::PutModelProfileResponse {
    type Value = (ModelProfile, u32);

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let profile = fields.message("profile", self.profile);
        Some((profile?, self.version))
    }
}
