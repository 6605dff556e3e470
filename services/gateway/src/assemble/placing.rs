//! The block in its place: what to change in the prompt, and the provider's request with that in it.

use memfleet_domain::Fault;
use memfleet_domain::assembly::{Decision, ProviderFormat};
use memfleet_ports::assembly::{Edit, EditOperation, Prompt};
use memfleet_provider::Place;
use memfleet_provider::placement::Placement;

use super::prompt::{self, Outline};
use super::work::Work;

impl Work<'_> {
    /// The provider's request with the edits in it, where it was asked for.
    pub async fn patch(&mut self) -> Result<(), Fault> {
        if !self.request.patch {
            return Ok(());
        }
        let Prompt::Provider { format, body } = std::mem::take(&mut self.request.prompt) else {
            return Err(Fault::invalid("patch", "needs a `provider_request`"));
        };
        let outline = self.outline.clone();
        let block = self.draft.answer.block.clone();
        let is_skipped = self.draft.answer.decision == Decision::Skipped;
        let patched = move || match &outline.place {
            Some(Ok(placement)) if !is_skipped => patched_body(format, &body, placement, &block),
            _ => Ok(body),
        };
        self.draft.answer.patched = Some(super::apart(patched).await??);
        Ok(())
    }
}

/// What to change in the prompt so that it has the block, or the memory tools; nothing where no prompt was given.
pub fn edits(outline: &Outline, prompt: &Prompt, block: &str) -> Vec<Edit> {
    let Some(Ok(placement)) = &outline.place else {
        return Vec::new();
    };
    let format = match prompt {
        Prompt::Provider { format, .. } => Some(*format),
        _ => None,
    };
    let edits = placement.edits(format, block);
    edits.into_iter().filter_map(told).collect()
}

fn told(edit: memfleet_provider::Edit) -> Option<Edit> {
    use memfleet_provider::Edit as Core;
    let (operation, place, text, tool) = match edit {
        Core::AppendText { place, text } => (appends(place, false), Some(place), text, None),
        Core::AppendPart { place, text } => (appends(place, true), Some(place), text, None),
        Core::InsertSystem { text } => (EditOperation::InsertSystem, None, text, None),
        Core::AddTool { definition } => (
            EditOperation::AddTool,
            None,
            String::new(),
            Some(definition),
        ),
        // The others serve whoever drives the model.
        _ => return None,
    };
    Some(Edit {
        operation,
        message: place.and_then(|place| match place {
            Place::System => None,
            Place::Message(at) => u32::try_from(at).ok(),
        }),
        part: None,
        text,
        tool: tool.unwrap_or_default(),
    })
}

fn appends(place: Place, is_part: bool) -> EditOperation {
    match (place, is_part) {
        (Place::Message(_), false) => EditOperation::AppendText,
        (Place::Message(_), true) => EditOperation::AppendPart,
        (Place::System, false) => EditOperation::AppendSystem,
        (Place::System, true) => EditOperation::AppendSystemPart,
    }
}

/// A provider's request with the block in its place. Everything else keeps its bytes.
fn patched_body(
    format: ProviderFormat,
    body: &[u8],
    placement: &Placement,
    block: &str,
) -> Result<Vec<u8>, Fault> {
    let request = prompt::request(format, body)?;
    let edits = placement.edits(Some(format), block);
    request
        .apply(&edits)
        .map_err(|error| Fault::internal(format!("the request could not be edited: {error}")))
}
