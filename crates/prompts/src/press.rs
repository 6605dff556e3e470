//! Prints prompts. Everything that a template shows is JSON on one line with `<` escaped, unless the template says `safe`; blocks
//! of data stand in tags with a nonce. So nothing that is shown can end its block, begin another, or look like our own words.
//!
//! The nonce is a keyed hash of the input: whoever wrote a turn cannot know it, and an equal input is an equal prompt.

use blake3::Hasher;
use memfleet_ports::language_model::{Message, PromptId, Voice};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, State, UndefinedBehavior, context};
use serde::Serialize;

/// Between the instructions and the question in a template file.
const DIVIDER: &str = "\n---\n";

/// The input of a prompt, and the template that shows it.
pub trait Template: Serialize {
    /// Its name and version.
    const ID: PromptId;
    /// The template: instructions, a line `---`, and the question.
    const SOURCE: &'static str;
}

/// What prints prompts.
#[derive(Debug)]
pub struct Press {
    environment: Environment<'static>,
    key: [u8; 32],
}

impl Press {
    /// With a key that nobody outside knows; random, and the same for as long as equal calls shall be equal.
    pub fn new(key: [u8; 32]) -> Self {
        let mut environment = Environment::empty();
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_formatter(as_data);
        let mut syntax = SyntaxConfig::builder();
        syntax.trim_blocks(true).lstrip_blocks(true);
        environment.set_syntax(syntax.build().expect("Jinja's own delimiters"));
        Self { environment, key }
    }

    /// The messages of a prompt.
    pub fn print<T: Template>(&self, input: &T) -> Vec<Message> {
        let (system, user) = T::SOURCE
            .split_once(DIVIDER)
            .expect("every template has instructions and a question");
        [(Voice::System, system), (Voice::User, user)]
            .map(|(voice, source)| Message {
                voice,
                text: self.fill::<T>(source, input),
            })
            .into()
    }

    /// A template without instructions: one message more in a conversation.
    pub(crate) fn add<T: Template>(&self, input: &T) -> Message {
        Message {
            voice: Voice::User,
            text: self.fill::<T>(T::SOURCE, input),
        }
    }

    fn fill<T: Template>(&self, source: &str, input: &T) -> String {
        let shown = Value::from(Serde(input));
        let nonce = Value::from_safe_string(self.nonce::<T>(input));
        let template = self.environment.template_from_str(source);
        let filled = template.and_then(|template| template.render(context! { nonce, ..shown }));
        filled.expect("every template prints its own input: the snapshots hold it")
    }

    fn nonce<T: Template>(&self, input: &T) -> String {
        let shown = serde_json::to_vec(input).expect("inputs are plain data");
        let mut hasher = Hasher::new_keyed(&self.key);
        hasher.update(T::ID.to_string().as_bytes());
        hasher.update(&shown);
        hasher.finalize().to_hex()[..16].to_owned()
    }
}

/// Writes a value as one line of JSON in which no tag can be.
fn as_data(
    out: &mut minijinja::Output<'_>,
    _: &mut State<'_, '_>,
    value: &Value,
) -> Result<(), Error> {
    if value.is_safe() {
        return Ok(out.write_str(value.as_str().unwrap_or_default())?);
    }
    let json = serde_json::to_string(value)
        .map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))?;
    Ok(out.write_str(&json.replace('<', "\\u003c"))?)
}
