//! Events of a response. Its items come whole when they are done, and all of it once more at the end.

use crate::json::{Node, Object};
use crate::malformed::Malformed;
use crate::reply::{Reply, openai_responses};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub(super) struct Partial {
    items: BTreeMap<u64, String>,
    whole: Option<Reply>,
}

impl Partial {
    pub(super) fn push(&mut self, root: &Object<'_>) -> Result<(), Malformed> {
        match root.text("type").as_deref() {
            Some("response.output_item.done") => {
                let index = root.get("output_index").and_then(Node::unsigned);
                let item = root.required("item")?;
                self.items.insert(index.unwrap_or(0), item.raw().to_owned());
            }
            Some("response.completed" | "response.incomplete") => {
                let response = root.required("response")?;
                let reply = response
                    .object()
                    .and_then(|response| openai_responses::read(&response));
                self.whole = Some(reply.map_err(|error| error.within("response"))?);
            }
            _ => {}
        }
        Ok(())
    }

    /// The whole response where it came, else the items that were done.
    pub(super) fn finish(self) -> Result<Reply, Malformed> {
        if let Some(reply) = self.whole {
            return Ok(reply);
        }
        let items: Result<Vec<Node<'_>>, _> = self
            .items
            .values()
            .map(|item| Node::of_text(item))
            .collect();
        openai_responses::of_items(&items?)
    }
}
