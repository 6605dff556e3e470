//! What a query means: its terms, whom it is about, when, and its vectors.

mod entities;
mod intent;
mod summary;
mod wish;

use std::borrow::Cow;
use std::collections::BTreeSet;

use chrono_tz::Tz;
use memfleet_domain::embedding::QueryVectors;
use memfleet_domain::intent::Intent;
use memfleet_domain::space::Locale;
use memfleet_domain::time::Timestamp;
use memfleet_domain::turn::Role;
use memfleet_language::mentions::{Mention, Person, Persons, mentions};
use memfleet_language::time::{Reference, count_expressions, references};
use memfleet_language::{Analyzer, Language, topic};

use crate::searched::Searched;
use crate::weights::{Route, Weights};
pub(crate) use entities::Naming;
pub(crate) use wish::Wish;

/// What of a query is embedded: its [`topic`], in the language that the first of its spaces has. Whoever embeds a query for a
/// search asks here, so that a query is embedded once.
pub fn embedded_text<'a>(text: &'a str, locale: &Locale) -> Cow<'a, str> {
    topic(text, Language::tagged(locale.language.as_deref()))
}

/// A query, understood against the spaces it searches.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Distinct content terms.
    pub(crate) terms: Vec<String>,
    /// Which of `terms` come from the names of speakers that the query mentions.
    pub(crate) named: Vec<bool>,
    /// Distinct terms of those speakers' whole names.
    pub(crate) names: Vec<String>,
    /// The speakers it mentions.
    pub(crate) mentioned: Vec<String>,
    /// The one of them that it is about, and how surely.
    pub(crate) subject: Option<(String, f32)>,
    /// Who it is about where it names nobody.
    pub(crate) role: Option<Role>,
    /// What it may name entities by.
    pub(crate) naming: Naming,
    pub(crate) dates: Vec<Reference>,
    pub(crate) intent: Intent,
    /// What it asks for beyond an intent.
    pub(crate) wish: Wish,
    /// Absent before [`Self::with_vectors`], and while the embedder is down: then only lexical signals rank.
    pub(crate) vectors: Option<QueryVectors>,
    /// True where ranks by source and stage are kept.
    pub(crate) is_explained: bool,
}

impl Plan {
    /// Understands `text`. `analyzer` is that of the index; `now` (default: the time of the last turn that may be found) and
    /// `zone` place relative dates.
    pub fn new(
        text: &str,
        spaces: &[Searched<'_>],
        analyzer: &Analyzer,
        now: Option<Timestamp>,
        zone: Tz,
    ) -> Self {
        let speakers = speakers(spaces);
        let found = mentions(text, &speakers, analyzer.language());
        let named_terms: BTreeSet<String> = found
            .mentions
            .iter()
            .flat_map(|mention| analyzer.terms(&text[mention.span.clone()]))
            .collect();
        let terms = distinct(analyzer.query_terms(&topic(text, analyzer.language())));
        let named = terms
            .iter()
            .map(|term| named_terms.contains(term))
            .collect();
        let mentioned: Vec<String> = found
            .mentions
            .iter()
            .map(|mention| speakers[mention.name].to_owned())
            .collect();
        let names = distinct(mentioned.iter().flat_map(|name| analyzer.terms(name)));
        let now = now.or_else(|| {
            // Most queries name no time, and the last one is only known by a look at every turn.
            let names_time = count_expressions(text, analyzer.language()) > 0;
            let last = |space: &Searched<'_>| space.index.last_time(&space.eligible);
            names_time.then(|| spaces.iter().filter_map(last).max())?
        });
        let dates = now.map_or_else(Vec::new, |now| {
            references(text, now, zone, analyzer.language())
        });
        Self {
            terms,
            named,
            names,
            subject: subject(&found.mentions, found.joined, &speakers),
            role: role(text, &mentioned, analyzer),
            naming: Naming::of(text, &mentioned, analyzer),
            mentioned,
            dates,
            intent: intent::heard(text, analyzer.language()),
            wish: Wish::heard(text, analyzer.language()),
            vectors: None,
            is_explained: false,
        }
    }

    /// The same with the vectors of the query's [`topic`]. They come apart because words can be looked up meanwhile.
    #[must_use]
    pub fn with_vectors(self, vectors: Option<QueryVectors>) -> Self {
        Self { vectors, ..self }
    }

    /// This plan, whose candidates keep their ranks by source and stage, or not.
    #[must_use]
    pub fn explained(self, is_explained: bool) -> Self {
        Self {
            is_explained,
            ..self
        }
    }

    /// The vectors that it was given.
    pub fn vectors(&self) -> Option<&QueryVectors> {
        self.vectors.as_ref()
    }

    /// The same with an intent that who asks tells, if they do.
    #[must_use]
    pub fn with_intent(self, told: Option<Intent>) -> Self {
        let intent = told.unwrap_or(self.intent);
        let wish = told.map_or(self.wish, |_| Wish::Nothing);
        Self {
            intent,
            wish,
            ..self
        }
    }

    /// How it is ranked.
    pub(crate) fn route(&self, weights: &Weights) -> Route {
        weights.route(self.intent, self.wish)
    }

    /// Every term that is looked up.
    pub fn words(&self) -> Vec<String> {
        distinct(self.terms.iter().chain(&self.names).cloned())
    }

    /// The content terms that are not names of speakers.
    pub(crate) fn plain_terms(&self) -> impl Iterator<Item = &String> {
        self.terms
            .iter()
            .zip(&self.named)
            .filter(|&(_, &named)| !named)
            .map(|(term, _)| term)
    }
}

/// The speakers of all spaces, each once, by name. A name that begins with a sign is a label, not a person.
fn speakers<'a>(spaces: &'a [Searched<'_>]) -> Vec<&'a str> {
    let all: BTreeSet<&str> = spaces
        .iter()
        .flat_map(|space| space.index.speakers())
        .collect();
    all.into_iter()
        .filter(|name| name.starts_with(char::is_alphanumeric))
        .collect()
}

/// The only speaker named; or, less surely, the first of two who are not joined by "and" or "both".
fn subject(mentions: &[Mention], joined: bool, speakers: &[&str]) -> Option<(String, f32)> {
    let (mention, sureness) = match mentions {
        [only] => (only, 1.0),
        [first, _] if !joined => (first, 0.5),
        _ => return None,
    };
    Some((speakers[mention.name].to_owned(), sureness))
}

/// Where nobody is named: first person means the user, only second person the assistant.
fn role(text: &str, mentioned: &[String], analyzer: &Analyzer) -> Option<Role> {
    if !mentioned.is_empty() {
        return None;
    }
    Persons::count(text, analyzer.language())
        .person()
        .map(|person| match person {
            Person::First => Role::User,
            Person::Second => Role::Assistant,
        })
}

fn distinct(terms: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    terms
        .into_iter()
        .filter(|term| seen.insert(term.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_intent_that_is_told_counts_for_more_than_the_wording() {
        let heard = Plan {
            intent: Intent {
                abstracted: true,
                ..Intent::default()
            },
            ..Plan::default()
        };
        let told = Intent {
            fine: true,
            ..Intent::default()
        };
        assert!(heard.clone().with_intent(None).intent.abstracted);
        assert_eq!(heard.with_intent(Some(told)).intent, told);
    }
}
