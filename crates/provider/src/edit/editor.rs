//! Turns edits into splices: where each stands in the bytes, and what is put there in the provider's shape.

use super::{Edit, Inapplicable, Place, Splices};
use crate::Format;
use crate::fragment;
use crate::json::{Node, quoted};
use crate::layout::{Choice, Layout, List, Slot};

/// The text with the edits made.
pub(crate) fn apply(
    format: Format,
    text: &str,
    layout: &Layout,
    edits: &[Edit],
) -> Result<Vec<u8>, Inapplicable> {
    let mut editor = Editor {
        format,
        layout,
        splices: Splices::default(),
        tools: Vec::new(),
        dropped: Vec::new(),
    };
    for edit in edits {
        editor.make(edit)?;
    }
    editor.add_tools()?;
    editor.drop_tools();
    editor.splices.into_bytes(text)
}

struct Editor<'e> {
    format: Format,
    layout: &'e Layout,
    splices: Splices<'e>,
    tools: Vec<&'e str>,
    /// Indexes of sites.
    dropped: Vec<usize>,
}

impl<'e> Editor<'e> {
    fn make(&mut self, edit: &'e Edit) -> Result<(), Inapplicable> {
        match edit {
            Edit::AppendText { place, text } => self.append_text(*place, text),
            Edit::AppendPart { place, text } => self.append_part(*place, text),
            Edit::InsertSystem { text } => self.insert_system(text),
            Edit::AddTool { definition } => {
                json(definition)?;
                self.tools.push(definition);
                Ok(())
            }
            Edit::RemoveTool { name } => self.remove_tool(name),
            Edit::ForbidTools => self.forbid_tools(),
            Edit::InsertMessages { at, messages } => self.insert_messages(*at, messages),
            Edit::ReplaceMessage { at, messages } => self.replace_message(*at, messages),
            Edit::PrependParts { message, parts } => self.prepend_parts(*message, parts),
        }
    }

    fn slot(&self, place: Place) -> Result<&'e Slot, Inapplicable> {
        match place {
            Place::System => Ok(&self.layout.system),
            Place::Message(index) => {
                let slot = self.layout.contents.get(index);
                slot.ok_or(Inapplicable::NoMessage(index))
            }
        }
    }

    fn append_text(&mut self, place: Place, text: &str) -> Result<(), Inapplicable> {
        let Slot::Text(range) = self.slot(place)? else {
            return Err(Inapplicable::Shape(place));
        };
        let quoted = quoted(text);
        let inside = quoted[1..quoted.len() - 1].to_owned();
        self.splices.replace(range.end - 1..range.end - 1, inside);
        Ok(())
    }

    fn append_part(&mut self, place: Place, text: &str) -> Result<(), Inapplicable> {
        let Slot::List(list) = self.slot(place)? else {
            return Err(Inapplicable::Shape(place));
        };
        let part = fragment::text_part(self.format, text);
        self.splices.insert(list, list.items.len(), part);
        Ok(())
    }

    fn insert_system(&mut self, text: &str) -> Result<(), Inapplicable> {
        let system = fragment::system(self.format, text);
        let Some(field) = fragment::system_field(self.format) else {
            return self.insert_messages(0, &[system]);
        };
        match &self.layout.system {
            Slot::Absent => self.add_member(field, &system),
            Slot::Null(range) => self.splices.replace(range.clone(), system),
            Slot::Text(_) | Slot::List(_) => return Err(Inapplicable::SystemExists),
        }
        Ok(())
    }

    fn add_member(&mut self, name: &str, value: &str) {
        let root = &self.layout.root;
        let member = format!("{}:{value}", quoted(name));
        self.splices.insert(root, root.items.len(), member);
    }

    fn insert_messages(&mut self, at: usize, messages: &[String]) -> Result<(), Inapplicable> {
        if at > self.layout.contents.len() {
            return Err(Inapplicable::NoMessage(at));
        }
        messages.iter().try_for_each(|message| json(message))?;
        if messages.is_empty() {
            return Ok(());
        }
        match &self.layout.messages {
            Slot::List(list) => {
                for message in messages {
                    self.splices.insert(list, at, message.clone());
                }
            }
            // Only the input of responses may be a string: it is the one message of a user.
            Slot::Text(range) => {
                let joined = messages.join(",");
                let (before, after) = if at == 0 {
                    (format!("[{joined},"), "]".to_owned())
                } else {
                    ("[".to_owned(), format!(",{joined}]"))
                };
                let before = before + r#"{"role":"user","content":"#;
                self.splices.replace(range.start..range.start, before);
                let after = format!("}}{after}");
                self.splices.replace(range.end..range.end, after);
            }
            Slot::Absent | Slot::Null(_) => {
                self.add_member("input", &format!("[{}]", messages.join(",")));
            }
        }
        Ok(())
    }

    fn replace_message(&mut self, at: usize, messages: &[String]) -> Result<(), Inapplicable> {
        messages.iter().try_for_each(|message| json(message))?;
        let Slot::List(list) = &self.layout.messages else {
            return Err(Inapplicable::NoMessage(at));
        };
        let range = list.items.get(at).ok_or(Inapplicable::NoMessage(at))?;
        let joined = messages.join(",");
        match messages {
            [] => self.splices.remove(list, at),
            _ if list.is_bare() => self.splices.replace(range.clone(), format!("[{joined}]")),
            _ => self.splices.replace(range.clone(), joined),
        }
        Ok(())
    }

    fn prepend_parts(&mut self, message: usize, parts: &[String]) -> Result<(), Inapplicable> {
        parts.iter().try_for_each(|part| json(part))?;
        let place = Place::Message(message);
        let Slot::List(list) = self.slot(place)? else {
            return Err(Inapplicable::Shape(place));
        };
        for part in parts {
            self.splices.insert(list, 0, part.clone());
        }
        Ok(())
    }

    fn forbid_tools(&mut self) -> Result<(), Inapplicable> {
        let (field, value) = fragment::no_tools(self.format).ok_or(Inapplicable::CannotForbid)?;
        match &self.layout.choice {
            Choice::Value(range) => self.splices.replace(range.clone(), value.to_owned()),
            Choice::Inside(list) => {
                let member = format!("{}:{value}", quoted(field));
                self.splices.insert(list, list.items.len(), member);
            }
            Choice::Absent if self.format == Format::Gemini => {
                let value = format!("{{{}:{value}}}", quoted(field));
                self.add_member("toolConfig", &value);
            }
            Choice::Absent => self.add_member(field, value),
        }
        Ok(())
    }

    fn add_tools(&mut self) -> Result<(), Inapplicable> {
        if self.tools.is_empty() {
            return Ok(());
        }
        if !self.dropped.is_empty() {
            return Err(Inapplicable::Conflict);
        }
        let tools = &self.layout.tools;
        if let Some((_, list)) = tools.declarations.last() {
            for definition in &self.tools {
                let definition = (*definition).to_owned();
                self.splices.insert(list, list.items.len(), definition);
            }
            return Ok(());
        }
        let mut joined = self.tools.join(",");
        if self.format == Format::Gemini {
            joined = format!(r#"{{"functionDeclarations":[{joined}]}}"#);
        }
        match &tools.slot {
            Slot::List(list) => self.splices.insert(list, list.items.len(), joined),
            Slot::Null(range) => self.splices.replace(range.clone(), format!("[{joined}]")),
            Slot::Absent | Slot::Text(_) => self.add_member("tools", &format!("[{joined}]")),
        }
        Ok(())
    }

    fn remove_tool(&mut self, name: &str) -> Result<(), Inapplicable> {
        let sites = self.layout.tools.sites.iter().enumerate();
        let found: Vec<usize> = sites
            .filter(|(_, site)| site.name == name)
            .map(|(index, _)| index)
            .collect();
        if found.is_empty() {
            return Err(Inapplicable::NoTool(name.to_owned()));
        }
        self.dropped.extend(found);
        Ok(())
    }

    /// Takes tools away; a list that would be empty goes as a whole.
    fn drop_tools(&mut self) {
        let tools = &self.layout.tools;
        self.dropped.sort_unstable();
        self.dropped.dedup();
        if self.dropped.is_empty() {
            return;
        }
        if self.dropped.len() == tools.sites.len() {
            if let Some(member) = tools.member {
                self.splices.remove(&self.layout.root, member);
            }
            return;
        }
        for (index, (entry, list)) in tools.declarations.iter().enumerate() {
            let gone = self.dropped_of(Some(index));
            if gone.len() == list.items.len() && !gone.is_empty() {
                self.remove_entries(&[*entry]);
            } else {
                gone.iter()
                    .for_each(|item| self.splices.remove(list, *item));
            }
        }
        let entries = self.dropped_of(None);
        self.remove_entries(&entries);
    }

    fn dropped_of(&self, declarations: Option<usize>) -> Vec<usize> {
        let sites = self
            .dropped
            .iter()
            .map(|site| &self.layout.tools.sites[*site]);
        sites
            .filter(|site| site.declarations == declarations)
            .map(|site| site.index)
            .collect()
    }

    fn remove_entries(&mut self, entries: &[usize]) {
        if let Slot::List(list) = &self.layout.tools.slot {
            let list: &'e List = list;
            entries
                .iter()
                .for_each(|entry| self.splices.remove(list, *entry));
        }
    }
}

fn json(text: &str) -> Result<(), Inapplicable> {
    Node::of_text(text).map_err(|_| Inapplicable::NotJson)?;
    Ok(())
}
