//! Slash commands of clients: `/clear`, `/model opus`. A path (`/etc/hosts is broken`) and a sentence about a command are none.

use std::collections::HashSet;

use serde::Deserialize;

const SHIPPED: &str = include_str!("../../data/rules/commands.toml");

/// The longest command with its arguments, in bytes.
const LONGEST: usize = 80;

/// The most arguments of a command.
const MOST_ARGUMENTS: usize = 2;

/// `data/rules/commands.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Commands {
    /// Commands that may have arguments; any other word is a command only when it stands alone.
    known: HashSet<String>,
    /// What follows a slash and is no command: top folders, and commands that ask memory.
    never: HashSet<String>,
    /// Words that no argument is: they make a sentence.
    sentence: HashSet<String>,
}

impl Commands {
    /// The list that comes with memfleet.
    pub fn shipped() -> Self {
        toml::from_str(SHIPPED).expect("the shipped list of commands is one")
    }

    /// The command that a text is.
    pub fn find<'a>(&self, text: &'a str) -> Option<&'a str> {
        let text = text.trim();
        if text.len() > LONGEST || text.contains(['\n', '?']) {
            return None;
        }
        let mut words = text.split_whitespace();
        let command = words.next()?;
        let name = command.strip_prefix('/').filter(|name| is_name(name))?;
        let arguments = words.collect::<Vec<_>>();
        let is_command = arguments.is_empty() || self.known.contains(name);
        let is_sentence = arguments.iter().any(|word| self.sentence.contains(*word));
        let is_short = arguments.len() <= MOST_ARGUMENTS;
        (is_command && is_short && !is_sentence && !self.never.contains(name)).then_some(command)
    }
}

/// Small letters, digits and hyphens, and a letter first.
fn is_name(name: &str) -> bool {
    let is_allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b':');
    name.starts_with(|first: char| first.is_ascii_lowercase()) && name.bytes().all(is_allowed)
}
