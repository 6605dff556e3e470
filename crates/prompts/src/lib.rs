//! What agents say to a language model, and what they make of its reply. A prompt is a template file with a version, an input and
//! an output: `data/NAME.vN.j2`. Turns are data in it, never instructions ([`press`]); ids are short handles that only mean what
//! was shown ([`handles`]); a reply is checked against the turns it was made from, and no reply can ask for anything to be deleted.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod answer;
pub mod ask;
pub mod conflicts;
mod date;
pub mod dropped;
pub mod episode;
pub mod facts;
pub mod handles;
pub mod imagine;
pub mod press;
pub mod query;
mod quote;
mod reading;
pub mod refresh;
pub mod relevance;
mod schema;
pub mod semantics;
pub mod stories;
mod words;

pub use ask::{Adviser, Asked, Prompt};
pub use dropped::Dropped;
pub use press::{Press, Template};
pub use reading::Misread;
