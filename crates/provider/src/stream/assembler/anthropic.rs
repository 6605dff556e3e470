//! Events of an Anthropic message: blocks that are opened, filled and closed.

use crate::edit::Splices;
use crate::json::{Node, Object, quoted};
use crate::layout::List;
use crate::malformed::Malformed;
use crate::reply::{Finish, Reply, Usage, anthropic};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub(super) struct Partial {
    blocks: BTreeMap<u64, Block>,
    finish: Finish,
    usage: Usage,
}

/// A block as it was opened, and what was added to its fields.
#[derive(Clone, Debug, Default)]
struct Block {
    opened: String,
    text: String,
    thinking: String,
    signature: String,
    input: String,
    citations: Vec<String>,
}

impl Partial {
    pub(super) fn push(&mut self, root: &Object<'_>) -> Result<(), Malformed> {
        let index = root.get("index").and_then(Node::unsigned).unwrap_or(0);
        match root.text("type").as_deref() {
            Some("message_start") => {
                if let Some(message) = root.child("message")? {
                    self.usage = anthropic::usage(&message)?;
                }
            }
            Some("content_block_start") => {
                let block = root.required("content_block")?;
                let block = Block {
                    opened: block.raw().to_owned(),
                    ..Block::default()
                };
                self.blocks.insert(index, block);
            }
            Some("content_block_delta") => {
                if let Some(delta) = root.child("delta")? {
                    self.blocks.entry(index).or_default().add(&delta);
                }
            }
            Some("message_delta") => self.end(root)?,
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, root: &Object<'_>) -> Result<(), Malformed> {
        if let Some(reason) = root
            .child("delta")?
            .and_then(|delta| delta.text("stop_reason"))
        {
            self.finish = anthropic::finish(Some(&reason));
        }
        // What is repeated at the end counts from the beginning; what is not repeated stands.
        let last = anthropic::usage(root)?;
        self.usage = Usage {
            input: self.usage.input.max(last.input),
            cached: self.usage.cached.max(last.cached),
            output: self.usage.output.max(last.output),
        };
        Ok(())
    }

    pub(super) fn finish(self) -> Result<Reply, Malformed> {
        let mut reply = Reply {
            finish: self.finish,
            usage: self.usage,
            ..Reply::default()
        };
        let mut blocks = Vec::new();
        for block in self.blocks.into_values() {
            // A delta of a block that was never opened has nothing to belong to.
            if block.opened.is_empty() {
                continue;
            }
            let arguments = block.input.clone();
            let whole = block.whole()?;
            let calls = reply.calls.len();
            let node = Node::of_text(&whole)?;
            anthropic::add(&mut reply, node, &node.object()?);
            if let (Some(call), false) = (reply.calls.get_mut(calls), arguments.is_empty()) {
                call.arguments = arguments;
            }
            blocks.push(whole);
        }
        reply.messages = vec![format!(
            r#"{{"role":"assistant","content":[{}]}}"#,
            blocks.join(",")
        )];
        Ok(reply)
    }
}

impl Block {
    fn add(&mut self, delta: &Object<'_>) {
        match delta.text("type").as_deref() {
            Some("text_delta") => self.text += &delta.text("text").unwrap_or_default(),
            Some("thinking_delta") => self.thinking += &delta.text("thinking").unwrap_or_default(),
            Some("signature_delta") => {
                self.signature += &delta.text("signature").unwrap_or_default();
            }
            Some("input_json_delta") => {
                self.input += &delta.text("partial_json").unwrap_or_default();
            }
            Some("citations_delta") => {
                let citation = delta.present("citation");
                self.citations
                    .extend(citation.map(|value| value.raw().to_owned()));
            }
            _ => {}
        }
    }

    /// The block with its fields filled. Input that is not JSON is left as it was opened: the provider takes only objects back.
    fn whole(self) -> Result<String, Malformed> {
        let mut block = self.opened;
        let texts = [
            ("text", self.text),
            ("thinking", self.thinking),
            ("signature", self.signature),
        ];
        for (name, added) in texts {
            if !added.is_empty() {
                let object = Node::of_text(&block)?.object()?;
                let before = object.text(name).unwrap_or_default();
                block = with_member(
                    &block,
                    &object,
                    name,
                    &quoted(&(before.into_owned() + &added)),
                );
            }
        }
        if Node::of_text(&self.input).is_ok_and(Node::is_object) {
            let object = Node::of_text(&block)?.object()?;
            block = with_member(&block, &object, "input", &self.input);
        }
        if !self.citations.is_empty() {
            let object = Node::of_text(&block)?.object()?;
            let citations = format!("[{}]", self.citations.join(","));
            block = with_member(&block, &object, "citations", &citations);
        }
        Ok(block)
    }
}

/// The text of an object with one member set.
fn with_member(text: &str, object: &Object<'_>, name: &str, value: &str) -> String {
    let list = List::of_object(object);
    let mut splices = Splices::default();
    match object.get(name) {
        Some(old) => splices.replace(old.range(), value.to_owned()),
        None => {
            let member = format!("{}:{value}", quoted(name));
            splices.insert(&list, list.items.len(), member);
        }
    }
    let bytes = splices
        .into_bytes(text)
        .expect("one change cannot conflict");
    String::from_utf8(bytes).expect("values are cut between characters")
}
