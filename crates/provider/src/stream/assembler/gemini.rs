//! Chunks of a Gemini response: each is a response with some more parts.

use crate::json::Object;
use crate::malformed::Malformed;
use crate::reply::{Reply, gemini};

#[derive(Clone, Debug, Default)]
pub(super) struct Partial {
    reply: Reply,
    parts: Vec<String>,
    reason: Option<String>,
}

impl Partial {
    pub(super) fn push(&mut self, root: &Object<'_>) -> Result<(), Malformed> {
        if root.present("usageMetadata").is_some() {
            self.reply.usage = gemini::usage(root)?;
        }
        let candidates = root.list("candidates")?;
        let Some(candidate) = candidates.first() else {
            return Ok(());
        };
        let candidate = candidate.object()?;
        if let Some(reason) = candidate.text("finishReason") {
            self.reason = Some(reason.into_owned());
        }
        let Some(content) = candidate.child("content")? else {
            return Ok(());
        };
        for part in content.list("parts")? {
            gemini::add(&mut self.reply, part, &part.object()?);
            self.parts.push(part.raw().to_owned());
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Reply {
        self.reply.finish = gemini::finish(self.reason.as_deref(), &self.reply);
        if !self.parts.is_empty() {
            let parts = self.parts.join(",");
            self.reply.messages = vec![format!(r#"{{"role":"model","parts":[{parts}]}}"#)];
        }
        self.reply
    }
}
