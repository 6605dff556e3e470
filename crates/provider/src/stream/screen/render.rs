//! Frames as the client gets them: unchanged wherever possible, without memory's calls, and with numbers that have no gaps.

use super::look::{self, Kind, Look};
use crate::Format;
use crate::edit::Splices;
use crate::json::{Node, Object};
use crate::layout::List;
use crate::malformed::Malformed;
use crate::reply::{Usage, visible, visible_event, with_hidden};
use crate::stream::numbering::Numbering;
use crate::stream::{Frame, Framing};
use crate::tools::Names;
use std::collections::BTreeSet;

#[derive(Clone, Debug)]
pub(super) struct Renderer {
    format: Format,
    names: Names,
    numbering: Numbering,
    /// Numbers of memory's calls.
    dropped: BTreeSet<u64>,
    /// What is added to every number.
    base: u64,
    /// The tokens of hidden rounds.
    hidden: Usage,
}

impl Renderer {
    pub(super) fn new(format: Format, names: Names) -> Self {
        Self {
            format,
            names,
            numbering: Numbering::default(),
            dropped: BTreeSet::new(),
            base: 0,
            hidden: Usage::default(),
        }
    }

    pub(super) fn count_from(&mut self, base: u64) {
        self.base = base;
    }

    pub(super) fn count_tokens(&mut self, hidden: Usage) {
        self.hidden = hidden;
    }

    pub(super) fn drop_calls(&mut self, numbers: &[u64]) {
        self.dropped.extend(numbers);
    }

    /// Looks at the next frame of the stream.
    pub(super) fn look(&mut self, frame: &Frame) -> Look {
        look::look(self.format, &self.names, &mut self.numbering, frame)
    }

    /// The bytes for the client; none if all of the frame is memory's. `interrupted` says that the reply goes on in another round.
    pub(super) fn render(&self, frame: Frame, look: &Look, interrupted: bool) -> Vec<u8> {
        let Some(shown) = frame.data.as_deref() else {
            return frame.bytes;
        };
        let rendered = match self.format {
            Format::OpenaiChat => self.chat(shown, look),
            Format::OpenaiResponses => self.numbered(shown, "output_index"),
            Format::AnthropicMessages => self.numbered(shown, "index"),
            Format::Gemini | Format::OllamaChat => self.whole(shown, look, interrupted),
        };
        let data = match rendered {
            Ok(Rendered::Nothing) => return Vec::new(),
            Ok(Rendered::Changed(changed)) => Some(changed),
            // What cannot be read has nothing of memory in it.
            Err(_) | Ok(Rendered::Same) => None,
        };
        let counted = self.counted(data.as_deref().unwrap_or(shown));
        match counted.or(data) {
            None => frame.bytes,
            Some(data) => self.frame(&frame, &data),
        }
    }

    /// The data with the tokens of hidden rounds; `None` where it counts none.
    fn counted(&self, data: &str) -> Option<String> {
        if self.hidden == Usage::default() {
            return None;
        }
        let bytes = with_hidden(self.format, data.as_bytes(), self.hidden).ok()?;
        let text = String::from_utf8(bytes).expect("counts are cut between characters");
        (text != data).then_some(text)
    }

    fn frame(&self, frame: &Frame, data: &str) -> Vec<u8> {
        if Framing::of(self.format) == Framing::Lines {
            return format!("{data}\n").into_bytes();
        }
        let event = frame.event.as_deref();
        let event = event.map_or_else(String::new, |event| format!("event: {event}\n"));
        // Data of several lines goes out as it came in, a field each.
        let data: Vec<&str> = data.split('\n').collect();
        format!("{event}data: {}\n\n", data.join("\ndata: ")).into_bytes()
    }

    /// The number that a block or call has for the client.
    fn number(&self, number: u64) -> u64 {
        let below = self.dropped.range(..number).count() as u64;
        number.saturating_sub(below).saturating_add(self.base)
    }

    /// Events that name their block by a number.
    fn numbered(&self, data: &str, field: &str) -> Result<Rendered, Malformed> {
        let mut text = data.to_owned();
        if self.format == Format::OpenaiResponses {
            text = visible_event(data, &self.names)?;
        }
        let root = Node::of_text(&text)?.object()?;
        let number = root.get(field);
        if let (Some(node), Some(old)) = (number, number.and_then(Node::unsigned)) {
            if self.dropped.contains(&old) {
                return Ok(Rendered::Nothing);
            }
            let new = self.number(old);
            if new != old {
                let mut splices = Splices::default();
                splices.replace(node.range(), new.to_string());
                text = spliced(splices, &text);
            }
        }
        Ok(Rendered::of(data, text))
    }

    /// Chunks whose calls have numbers. A resumed stream has called no tool of the client before, so these count from 0.
    fn chat(&self, data: &str, look: &Look) -> Result<Rendered, Malformed> {
        if self.dropped.is_empty() {
            return Ok(Rendered::Same);
        }
        let root = Node::of_text(data)?.object()?;
        let mut lists = Vec::new();
        let mut numbers = Vec::new();
        let mut of_calls = look.calls.iter().copied();
        let mut says_more = false;
        for choice in root.list("choices")? {
            let choice = choice.object()?;
            says_more |= choice.present("finish_reason").is_some();
            let Some(delta) = choice.child("delta")? else {
                continue;
            };
            says_more |= delta
                .members
                .iter()
                .any(|m| m.name != "tool_calls" && says(m.value));
            says_more |= self.calls(&delta, &mut of_calls, &mut lists, &mut numbers)?;
        }
        if lists.is_empty() && numbers.is_empty() {
            return Ok(Rendered::Same);
        }
        if !says_more {
            return Ok(Rendered::Nothing);
        }
        let mut splices = Splices::default();
        for (list, items) in &lists {
            items.iter().for_each(|item| splices.remove(list, *item));
        }
        for (range, number) in numbers {
            splices.replace(range, number);
        }
        Ok(Rendered::of(data, spliced(splices, data)))
    }

    /// Notes memory's calls and the new numbers of the others, and says whether there are others.
    fn calls(
        &self,
        delta: &Object<'_>,
        of_calls: &mut impl Iterator<Item = u64>,
        lists: &mut Vec<(List, Vec<usize>)>,
        numbers: &mut Vec<(std::ops::Range<usize>, String)>,
    ) -> Result<bool, Malformed> {
        let Some(array) = delta.present("tool_calls") else {
            return Ok(false);
        };
        let calls = array.elements()?;
        let mut ours = Vec::new();
        for ((index, call), number) in calls.iter().enumerate().zip(of_calls) {
            if self.dropped.contains(&number) {
                ours.push(index);
                continue;
            }
            let call = call.object()?;
            let node = call.get("index").filter(|node| node.unsigned().is_some());
            let new = number - self.dropped.range(..number).count() as u64;
            if let Some(node) = node.filter(|_| new != number) {
                numbers.push((node.range(), new.to_string()));
            }
        }
        let others = ours.len() < calls.len();
        if !ours.is_empty() && others {
            lists.push((List::of_array(array, &calls), ours));
        } else if !ours.is_empty() {
            let member = delta.members.iter().position(|m| m.name == "tool_calls");
            lists.push((List::of_object(delta), member.into_iter().collect()));
        }
        Ok(others)
    }

    /// Chunks that are small replies.
    fn whole(&self, data: &str, look: &Look, interrupted: bool) -> Result<Rendered, Malformed> {
        if !look.calls_memory {
            return Ok(Rendered::Same);
        }
        let is_needed =
            look.text > 0 || look.calls_client || (look.kind == Kind::Closing && !interrupted);
        if !is_needed {
            return Ok(Rendered::Nothing);
        }
        let bytes = visible(self.format, data.as_bytes(), &self.names)?;
        let text = String::from_utf8(bytes).expect("cuts are between characters");
        Ok(Rendered::of(data, text))
    }
}

enum Rendered {
    Same,
    Changed(String),
    Nothing,
}

impl Rendered {
    fn of(before: &str, after: String) -> Self {
        if before == after {
            Self::Same
        } else {
            Self::Changed(after)
        }
    }
}

/// Whether a field of a delta says something to the client; the role does, for it may stand in one chunk only.
fn says(value: Node<'_>) -> bool {
    value.is_string() && value.raw() != "\"\""
}

fn spliced(splices: Splices<'_>, text: &str) -> String {
    let bytes = splices
        .into_bytes(text)
        .expect("numbers and calls are apart");
    String::from_utf8(bytes).expect("values are cut between characters")
}
