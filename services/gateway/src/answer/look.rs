//! Findings for a question, as they are quoted and as a model is shown them.

use chrono_tz::Tz;
use memfleet_agents::facts::may_act;
use memfleet_domain::time::Timestamp;
use memfleet_ports::memory::{AnswerEnd, AnswerPart, Citation, Outcome};
use memfleet_ports::retriever::{Found, Hit};
use memfleet_prompts::handles::Turn;

use super::quoting::{Quotations, Quoter};

/// Bytes of turns that a prompt holds.
const PROMPT: usize = 64 << 10;
/// Bytes of one turn: of a longer one those around the passage that was found are shown.
const TURN: usize = 4 << 10;
/// Bytes of a turn that are quoted where it is not known which words say so.
const QUOTE: usize = 300;

/// Words before quotations that contradict each other.
const UNCERTAIN: &str = "It is not certain which of these holds:";

/// A question and what was found for it.
pub struct Look {
    /// Its words.
    pub question: String,
    /// Where its days begin.
    pub zone: Tz,
    /// What "last week" is relative to.
    pub asked_at: Timestamp,
    /// The instant of which it asks how things are.
    pub holds_at: Timestamp,
    /// What was found.
    pub found: Found,
    /// Searches that followed the first.
    pub retries: u32,
    /// Finds quotations that answer.
    pub quoter: Quoter,
}

impl Look {
    /// The whole answer without a language model: quotations. Where the reader of turns cannot be
    /// asked it abstains.
    pub async fn by_quotations(&self) -> Vec<AnswerPart> {
        if self.found.hits.is_empty() {
            return vec![self.end(Outcome::Abstained, None, false)];
        }
        match self.quoter.quote(&self.question, &self.found.hits).await {
            Ok(quotations) => self.quoted(&quotations),
            Err(fault) => {
                let degraded = Some(format!("quotations: {fault}"));
                vec![self.end(Outcome::Abstained, degraded, false)]
            }
        }
    }

    /// Quotations with who said them and when.
    fn quoted(&self, quotations: &Quotations) -> Vec<AnswerPart> {
        let mut parts = Vec::new();
        if quotations.is_uncertain {
            parts.push(AnswerPart::Text(UNCERTAIN.to_owned()));
        }
        for quotation in &quotations.quoted {
            let hit = &self.found.hits[quotation.place];
            let turn = &hit.turn.accepted;
            let line = if parts.is_empty() { "" } else { "\n" };
            let date = turn.effective_time().with_timezone(&self.zone).date_naive();
            let text = text(hit);
            let words = text.get(quotation.bytes.clone()).unwrap_or_default();
            let quoted = format!("{line}{date}, {}: \"{}\"", turn.speaker, words.trim());
            parts.push(AnswerPart::Text(quoted));
            let bytes = (quotation.bytes.start as u32, quotation.bytes.end as u32);
            parts.push(citation(hit, bytes));
        }
        let outcome = match quotations.quoted.is_empty() {
            true => Outcome::Abstained,
            false => Outcome::Answered,
        };
        parts.push(self.end(outcome, None, quotations.is_uncertain));
        parts
    }

    fn end(&self, outcome: Outcome, degraded: Option<String>, is_uncertain: bool) -> AnswerPart {
        let missing = self.found.degraded.iter().cloned();
        AnswerPart::End(AnswerEnd {
            outcome,
            model: None,
            degraded: missing.chain(degraded).collect(),
            looked_at: self.found.hits.len() as u32,
            dropped_citations: 0,
            understood: self.found.understood.clone(),
            retries: self.retries,
            is_uncertain,
        })
    }

    /// Places of the hits that a prompt holds, in order of time.
    pub fn shown(&self) -> Vec<usize> {
        let mut room = PROMPT;
        let hits = self.found.hits.iter().enumerate();
        let mut shown: Vec<usize> = hits
            .take_while(|(_, hit)| {
                let rest = room.checked_sub(text(hit).len().min(TURN));
                room = rest.unwrap_or_default();
                rest.is_some()
            })
            .map(|(place, _)| place)
            .collect();
        shown.sort_by_key(|place| {
            let turn = &self.found.hits[*place].turn;
            (turn.accepted.effective_time(), turn.position)
        });
        shown
    }

    /// These hits as a prompt shows them.
    pub fn turns(&self, shown: &[usize]) -> Vec<Turn> {
        let hits = shown.iter().map(|place| &self.found.hits[*place]);
        hits.map(|hit| {
            let turn = Turn::from(&hit.turn);
            let text = part(&turn.text, hit.passage).to_owned();
            Turn { text, ..turn }
        })
        .collect()
    }

    /// Sentences of the facts of these hits that hold and may act, each once.
    pub fn derived(&self, shown: &[usize]) -> Vec<String> {
        let hits = shown.iter().map(|place| &self.found.hits[*place]);
        let facts = hits.flat_map(|hit| &hit.facts);
        let holding = facts.filter(|fact| {
            may_act(fact) && !fact.is_withdrawn() && fact.valid.contains(self.holds_at)
        });
        let mut sentences: Vec<String> = Vec::new();
        for fact in holding.filter_map(|fact| fact.fact()) {
            if !sentences.contains(&fact.text) {
                sentences.push(fact.text.clone());
            }
        }
        sentences
    }
}

fn text(hit: &Hit) -> String {
    hit.turn.accepted.content.searchable_text()
}

/// As much of a text as is shown: its passage, with what is around it.
fn part(text: &str, passage: (u32, u32)) -> &str {
    if text.len() <= TURN {
        return text;
    }
    let (start, end) = (passage.0 as usize, passage.1 as usize);
    let around = TURN.saturating_sub(end.saturating_sub(start)) / 2;
    let start = start.saturating_sub(around).min(text.len() - TURN);
    let start = text.ceil_char_boundary(start);
    &text[start..text.floor_char_boundary((start + TURN).min(text.len()))]
}

/// A hit that an answer rests on, with the words that say so; where they are not known, or are none, the turn names itself by how it begins.
pub fn citation(hit: &Hit, words: (u32, u32)) -> AnswerPart {
    let text = text(hit);
    let known = text.get(words.0 as usize..words.1 as usize);
    let (evidence, quote) = match known.filter(|known| !known.is_empty()) {
        Some(known) => (words, known),
        None => ((0, 0), &text[..text.floor_char_boundary(QUOTE)]),
    };
    let turn = &hit.turn.accepted;
    AnswerPart::Citation(Box::new(Citation {
        space: hit.space.clone(),
        turn: turn.id,
        session: turn.session.clone(),
        speaker: turn.speaker.clone(),
        time: turn.effective_time(),
        evidence,
        quote: quote.to_owned(),
    }))
}
