//! The words of results that are not memory, and those below a block.

use memfleet_assembly::Tokenizer;
use memfleet_ports::assembly::AssembledItem;

use memfleet_domain::assembly::Termination;

/// What the model is told of ids that it may not read, whatever the cause: there is no telling whether they exist.
pub const NOT_READABLE: &str = "Error: not every one of these ids names a memory that may be read here. Use ids that a search returned.";
/// What the model is told of a conversation that it may not search.
pub const NOT_SEARCHABLE: &str =
    "Error: this conversation may not be searched. Leave `session` out.";
/// What the model is told of a time that it may not search.
pub const NO_SUCH_TIME: &str =
    "Error: this time may not be searched. Leave `time_from` and `time_to` out.";
/// What the model is told where memory does not answer.
pub const UNREACHABLE: &str =
    "Error: memory cannot be reached now. Answer with what you have, and say so if it matters.";

/// What the model is told where retrieval has ended.
pub fn ended(termination: Termination) -> &'static str {
    match termination {
        Termination::TokenBudget => {
            "Memory has given all that it may in this turn. Answer with what you have."
        }
        Termination::Deadline => {
            "The time for memory is up in this turn. Answer with what you have."
        }
        _ => "Memory cannot be asked again in this turn. Answer with what you have.",
    }
}

/// The ids of memories that are shown in part, as far as they fit into the tokens: with them the model reads these in full.
pub fn cut_short(
    items: &[AssembledItem],
    get: &str,
    tokens: usize,
    tokenizer: &Tokenizer,
) -> String {
    let mut text = String::new();
    for item in items.iter().filter(|item| item.excerpt) {
        let longer = if text.is_empty() {
            format!(
                "\n\nShown in part; {get} reads them in full by id: {}",
                item.id
            )
        } else {
            format!("{text}, {}", item.id)
        };
        if tokenizer.count(&longer) > tokens {
            break;
        }
        text = longer;
    }
    text
}
