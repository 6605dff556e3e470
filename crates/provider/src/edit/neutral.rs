//! Edits of a conversation without bytes: what a caller that sends messages of its own shape gets back.

use super::{Edit, Inapplicable, Place};
use crate::Format;
use crate::conversation::{Content, Conversation, Message, Part, Role, Shape, Tool};
use crate::fragment;
use crate::json::Node;
use std::borrow::Cow;

impl<'a> Conversation<'a> {
    /// The conversation with the edits of a plan made. `format` is `None` for messages of no provider. Edits that add messages in a
    /// provider's shape, or that take away, are refused: they are of bytes.
    pub fn edited(
        &self,
        format: Option<Format>,
        edits: &[Edit],
    ) -> Result<Conversation<'a>, Inapplicable> {
        let mut edited = self.clone();
        let mut first = None;
        for edit in edits {
            match edit {
                Edit::AppendText { place, text } => edited.append_text(*place, text)?,
                Edit::AppendPart { place, text } => edited.append_part(*place, text)?,
                Edit::AddTool { definition } => edited.tools.push(tool(definition)?),
                Edit::InsertSystem { text }
                    if format.and_then(fragment::system_field).is_none() =>
                {
                    first = Some(Message::text(Role::System, text.clone()));
                }
                Edit::InsertSystem { text } => edited.insert_system(format, text)?,
                _ => return Err(Inapplicable::OnlyBytes),
            }
        }
        // Last, since the other edits name messages by their index before.
        edited.messages.splice(0..0, first);
        Ok(edited)
    }

    fn content(&mut self, place: Place) -> Result<&mut Content<'a>, Inapplicable> {
        match place {
            Place::System => self.system.as_mut().ok_or(Inapplicable::Shape(place)),
            Place::Message(index) => {
                let message = self.messages.get_mut(index);
                let message = message.ok_or(Inapplicable::NoMessage(index))?;
                Ok(&mut message.content)
            }
        }
    }

    fn append_text(&mut self, place: Place, text: &str) -> Result<(), Inapplicable> {
        let content = self.content(place)?;
        let first = content.parts.first_mut();
        match first.and_then(|part| part.text.as_mut()) {
            Some(before) if content.shape == Shape::Text => {
                before.to_mut().push_str(text);
                Ok(())
            }
            _ => Err(Inapplicable::Shape(place)),
        }
    }

    fn append_part(&mut self, place: Place, text: &str) -> Result<(), Inapplicable> {
        let content = self.content(place)?;
        if content.shape != Shape::List {
            return Err(Inapplicable::Shape(place));
        }
        content.parts.push(Part::text(text.to_owned()));
        Ok(())
    }

    fn insert_system(&mut self, format: Option<Format>, text: &str) -> Result<(), Inapplicable> {
        if self.system.is_some() {
            return Err(Inapplicable::SystemExists);
        }
        let text = text.to_owned();
        self.system = Some(match format {
            Some(Format::Gemini) => Content::list(vec![Part::text(text)]),
            _ => Content::text(text),
        });
        Ok(())
    }
}

/// The name stands at the top, or in the function that the definition is of.
fn tool<'a>(definition: &str) -> Result<Tool<'a>, Inapplicable> {
    let object = Node::of_text(definition)
        .and_then(Node::object)
        .map_err(|_| Inapplicable::NotJson)?;
    let function = object.child("function").ok().flatten();
    let name = object
        .text("name")
        .or_else(|| function.and_then(|function| function.text("name")));
    Ok(Tool {
        name: Cow::Owned(name.unwrap_or_default().into_owned()),
        definition: Cow::Owned(definition.to_owned()),
    })
}
