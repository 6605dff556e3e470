//! The language that a space's turns are analysed in: its own, else what its first turns tell. It is one for the whole
//! space, since queries are analysed in the same, and told once, from several turns together: one alone is often too short.

use std::collections::HashMap;

use memfleet_domain::Scope;
use memfleet_domain::turn::{AcceptedTurn, Role};
use memfleet_language::Language;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::store::Result;

use crate::Constructor;
use crate::task::Task;

/// Stored turns that are looked at together with those in hand.
const STORED: u32 = 20;
/// Bytes of text below which nothing is decided …
const ENOUGH: usize = 200;
/// … and beyond which no more are read.
const PLENTY: usize = 4_000;

impl Constructor {
    /// The tag of each space's language; none while that cannot be told.
    pub(crate) async fn languages(&self, tasks: &[Task]) -> Result<HashMap<Scope, Option<String>>> {
        let mut languages = HashMap::new();
        for task in tasks {
            let scope = &task.batch.scope;
            if !languages.contains_key(scope) {
                let language = self.language(scope, tasks).await?;
                languages.insert(scope.clone(), language);
            }
        }
        Ok(languages)
    }

    async fn language(&self, scope: &Scope, tasks: &[Task]) -> Result<Option<String>> {
        let locale = self.spaces.locale(scope).await?.unwrap_or_default();
        if locale.language.is_some() {
            return Ok(locale.language);
        }
        let filter = TurnFilter {
            roles: vec![Role::User, Role::Assistant],
            ..TurnFilter::default()
        };
        let stored = self.ledger.list(scope, &filter, STORED, None).await?;
        let stored = stored.items.iter().map(|turn| &turn.accepted);
        let in_hand = tasks
            .iter()
            .filter(|task| task.batch.scope == *scope)
            .flat_map(|task| &task.batch.turns);
        Ok(told(stored.chain(in_hand)).map(|language| language.code().to_owned()))
    }
}

/// The language of a conversation; instructions and what tools give back are often in another.
fn told<'a>(turns: impl Iterator<Item = &'a AcceptedTurn>) -> Option<Language> {
    let mut text = String::new();
    for turn in turns.filter(|turn| matches!(turn.role, Role::User | Role::Assistant)) {
        text.push_str(&turn.content.searchable_text());
        text.push('\n');
        if text.len() > PLENTY {
            break;
        }
    }
    text.truncate(text.floor_char_boundary(PLENTY));
    (text.len() >= ENOUGH)
        .then(|| Language::recognise(&text))
        .flatten()
}
