//! Fact extraction by rules (AMA section 3.1, K): sentences are cut into clauses, clauses into subject,
//! verb, object and complement, and references are resolved against the conversation. Only a user's own
//! words in English are read.
//!
//! Extracted facts are listed (profiles, timelines, the graph) and change nothing that a reader is shown
//! otherwise, except where a speaker takes back an own statement in so many words: see [`may_act`].
//!
//! `own_words` masks quoted and pasted text, `words` tokenises, `clauses` and `stated` cut and filter,
//! `parse` finds the parts, `people` resolves references, `claims` makes keys that compare; `support`
//! and `telling` check facts that a model found against the words of their turn, `coverage` whether
//! a fact is all that its turn says.

mod claims;
mod clauses;
mod coverage;
pub(crate) mod own_words;
mod parse;
mod people;
mod stated;
mod support;
mod telling;
pub(crate) mod words;

use std::ops::Range;

use chrono_tz::Tz;
use memfleet_domain::derivation::{Derivation, Origin};
use memfleet_domain::fact::{Claim, Clause, Draft, Stance};
use memfleet_domain::ids::TurnId;
use memfleet_domain::time::{TimeRange, Timestamp};
use memfleet_domain::turn::{Role, Trust};
use memfleet_language::{Language, sentences, time};

pub use self::claims::{claim, key, wordings};
pub use self::coverage::covers;
use self::parse::Tense;
pub use self::support::{dates, denies, is_borne_out, is_supported, is_verb_said, sources};
pub use self::telling::{Times, as_told, takes_back};

/// Name and version of these rules, stored with every fact that they extract.
pub const EXTRACTOR: &str = "rules-2";

/// Beginning of the names of all versions of these rules.
const RULES_FAMILY: &str = "rules-";

/// True for facts that may state an answer: a caller corrected them, or a language model extracted
/// them.
/// Facts by rules may not, since on text by people most are untrue (docs/adr/0028). Statements of the
/// reader say no more than their turn.
pub fn may_act(fact: &Derivation) -> bool {
    match &fact.origin {
        Origin::Corrected => true,
        Origin::Extracted(extractor) => {
            let is_sentence = fact.fact().is_some_and(|draft| !draft.is_statement());
            is_sentence && !extractor.starts_with(RULES_FAMILY)
        }
    }
}

/// True where the end of a fact may be shown as a mark on its turn: of facts that may act, of statements
/// in their own words, and of facts by the rules of this version, which end a fact only where its speaker
/// takes it back.
pub fn may_mark(fact: &Derivation) -> bool {
    let is_of_rules =
        matches!(&fact.origin, Origin::Extracted(extractor) if extractor == EXTRACTOR);
    may_act(fact) || fact.is_statement() || is_of_rules
}

/// A turn as the rules read it.
#[derive(Debug, Clone)]
pub struct Utterance<'t> {
    /// Which.
    pub id: TurnId,
    /// Who spoke.
    pub speaker: &'t str,
    /// The speaker's part in the conversation.
    pub role: Role,
    /// Where the text is from.
    pub trust: Trust,
    /// The turn's searchable text.
    pub text: &'t str,
    /// When it was said.
    pub said_at: Timestamp,
}

/// Longest object, complement or subject of a fact, in bytes.
const MAX_PART_BYTES: usize = 160;

/// The facts that a turn states, in order. `context` are the turns before it in its session, oldest first; `zone` places relative dates.
pub fn facts(
    turn: &Utterance<'_>,
    context: &[Utterance<'_>],
    language: Language,
    zone: Tz,
) -> Vec<Draft> {
    let is_users = turn.role == Role::User && turn.trust == Trust::User;
    if language != Language::English || !is_users {
        return Vec::new();
    }
    let Some(own_words) = own_words::own_words(turn.text) else {
        return Vec::new();
    };
    let mut reading = Reading {
        turn,
        zone,
        people: people::People::new(turn, context),
        drafts: Vec::new(),
    };
    for range in whole(&own_words, sentences(&own_words)) {
        reading.sentence(&own_words[range.clone()], range.start);
    }
    reading.drafts
}

/// What a sentence says of a claim's subject and attribute, where it says one thing of them: a caller's own words for what is so.
pub fn restated(text: &str, claim: &Claim, language: Language) -> Option<Draft> {
    let turn = Utterance {
        id: TurnId::from_bytes([0; 16]),
        speaker: &claim.subject,
        role: Role::User,
        trust: Trust::User,
        text,
        said_at: Timestamp::UNIX_EPOCH,
    };
    let said = facts(&turn, &[], language, Tz::UTC).into_iter();
    let mut said = said.filter(|draft| {
        draft.claim.subject == claim.subject && draft.claim.attribute == claim.attribute
    });
    let first = said.next()?;
    said.all(|other| other.claim.value == first.claim.value)
        .then_some(first)
}

/// Sentences that were not cut behind a title ("Dr. Alvarez").
fn whole(text: &str, ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut whole: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        let title = ["Dr.", "Mr.", "Mrs.", "Ms.", "Prof.", "St."];
        match whole.last_mut() {
            Some(last)
                if title
                    .iter()
                    .any(|title| text[last.clone()].trim_end().ends_with(title)) =>
            {
                last.end = range.end;
            }
            _ => whole.push(range),
        }
    }
    whole
}

/// A turn that is being read.
struct Reading<'t> {
    turn: &'t Utterance<'t>,
    zone: Tz,
    people: people::People<'t>,
    drafts: Vec<Draft>,
}

/// Circumstances under which a clause is stated.
struct Said {
    subject: people::Referent,
    evidence: Range<u32>,
    since: Option<Timestamp>,
    stance: Stance,
    takes_back: bool,
    tense: Tense,
}

impl Reading<'_> {
    fn sentence(&mut self, sentence: &str, offset: usize) {
        let times = self.times(sentence, offset);
        let mut words = words::words(sentence, offset);
        for word in &mut words {
            word.is_time = times
                .iter()
                .any(|(span, _)| span.contains(&word.span.start));
        }
        self.clauses(&words, &times, stance(sentence));
    }

    fn clauses(
        &mut self,
        words: &[words::Word],
        times: &[(Range<usize>, Timestamp)],
        stance: Stance,
    ) {
        if let Some((told, meant)) = clauses::corrected(words) {
            return self.correct(told, meant);
        }
        // Who the clause before is about, and where that clause begins.
        let mut goes_on: Option<(people::Referent, u32)> = None;
        for clause in clauses::clauses(words) {
            let Some(parsed) = parse::parse(clause, goes_on.is_some()) else {
                continue;
            };
            let parsed = parsed.upright();
            let is_reported = parsed
                .predicate
                .iter()
                .take(4)
                .any(|word| word.is(words::Part::Doubt));
            if is_reported {
                goes_on = None;
                continue;
            }
            let (first, last) = (&clause[0], &clause[clause.len() - 1]);
            goes_on = match parsed.subject {
                [] => goes_on,
                subject => {
                    let subject = self.people.resolve(subject);
                    subject.map(|subject| (subject, first.span.start as u32))
                }
            };
            let Some((subject, begins)) = goes_on.clone() else {
                continue;
            };
            let takes_back = parsed.is_over && self.is_speaker(&subject);
            let said = Said {
                subject,
                evidence: begins..last.span.end as u32,
                since: since(times, first.span.start..last.span.end),
                stance,
                takes_back,
                tense: parsed.tense,
            };
            if !denies_time(&parsed) {
                self.state(&said, &parsed);
            }
        }
    }

    /// The two facts of "I said I live in Rome but I meant Oslo": the speaker does not live in Rome, and
    /// lives in Oslo.
    fn correct(&mut self, told: &[words::Word], meant: &[words::Word]) {
        let Some(parsed) = parse::parse(told, false) else {
            return;
        };
        let Some(subject) = self.people.resolve(parsed.subject) else {
            return;
        };
        if parsed.is_negated || !self.is_speaker(&subject) {
            return;
        }
        let (first, last) = (&told[0], &meant[meant.len() - 1]);
        let said = Said {
            subject,
            evidence: first.span.start as u32..last.span.end as u32,
            since: None,
            stance: Stance::Corrects,
            takes_back: true,
            tense: Tense::Present,
        };
        let mut wrong = parsed.clone();
        wrong.is_negated = true;
        self.state(&said, &wrong);
        self.state(&said, &parsed.with_value(meant));
    }

    /// Whether a clause is about its speaker, in the first person.
    fn is_speaker(&self, subject: &people::Referent) -> bool {
        subject.turn.is_none() && subject.name == self.turn.speaker
    }

    /// The time expressions of a sentence: where they stand, and the instants that they begin at.
    fn times(&self, sentence: &str, offset: usize) -> Vec<(Range<usize>, Timestamp)> {
        let said_at = self.turn.said_at;
        let found = time::references(sentence, said_at, self.zone, Language::English);
        let placed = found.into_iter().map(|found| {
            let span = found.span.start + offset..found.span.end + offset;
            (span, found.start)
        });
        placed.collect()
    }

    fn state(&mut self, said: &Said, parsed: &parse::Parsed<'_>) {
        let subject = &said.subject;
        let Some(stated) = claims::statement(&subject.name, parsed) else {
            return;
        };
        let clause = &stated.clause;
        let is_long = |part: &Option<String>| {
            part.as_ref()
                .is_some_and(|part| part.len() > MAX_PART_BYTES)
        };
        let claim = claims::claim(clause);
        // "We're 38" counts heads.
        let is_we = parsed.subject.first().is_some_and(|word| word.low == "we");
        let is_too_long = subject.name.len() > MAX_PART_BYTES
            || [&clause.object, &clause.complement]
                .into_iter()
                .any(is_long);
        if is_too_long || is_we && claim.attribute == "age" {
            return;
        }
        let Some(valid) = valid(said, parsed.verb, self.turn.said_at) else {
            return;
        };
        self.drafts.push(Draft {
            text: sentence(clause, said.tense),
            claim,
            clause: Some(stated.clause),
            statement: None,
            stance: said.stance,
            takes_back: said.takes_back,
            said_at: Some(self.turn.said_at),
            evidence: said.evidence.clone(),
            valid,
            related: subject.turn.into_iter().collect(),
            confidence: stated.confidence,
            line: None,
            names: Vec::new(),
            topics: Vec::new(),
        });
    }
}

/// Whether a clause denies when something is so ("I don't swim on Mondays"), not that it is so.
fn denies_time(parsed: &parse::Parsed<'_>) -> bool {
    let words = parsed.predicate;
    let time = words.iter().position(|word| word.is_time);
    let begins = |word: &words::Word| matches!(word.low.as_str(), "since" | "until");
    parsed.is_negated && time.is_some_and(|at| !words[at.saturating_sub(1)..=at].iter().any(begins))
}

/// The time that a clause names last, else the one that the sentence begins with.
fn since(times: &[(Range<usize>, Timestamp)], clause: Range<usize>) -> Option<Timestamp> {
    let inside = times.iter().rfind(|(span, _)| clause.contains(&span.start));
    let before = times.first().filter(|(span, _)| span.start < clause.start);
    inside.or(before).map(|(_, start)| *start)
}

/// Verbs of states: of the past they say that it was so, where verbs of events say what came of it.
const STATES: [&str; 24] = [
    "be", "live", "work", "reside", "have", "own", "love", "like", "hate", "prefer", "use",
    "study", "attend", "drive", "date", "know", "teach", "base", "locate", "stay", "need", "rent",
    "weigh", "earn",
];

/// Whether a verb in its base form tells of a state.
pub fn is_state(verb: &str) -> bool {
    STATES.contains(&verb)
}

/// A state of the past is over; what is to come holds from its date on, if it has one; all else from its date, or from now on.
fn valid(said: &Said, verb: &str, now: Timestamp) -> Option<TimeRange> {
    let past = TimeRange {
        start: None,
        end: Some(now),
    };
    let from = |start| TimeRange { start, end: None };
    match said.tense {
        Tense::Formerly => Some(past),
        Tense::Past if is_state(verb) => Some(past),
        Tense::Future => said
            .since
            .filter(|start| *start > now)
            .map(|start| from(Some(start))),
        Tense::Past | Tense::Present => Some(from(said.since.filter(|start| *start <= now))),
    }
}

/// The sentence of a clause: an event in the past, a state as it is.
fn sentence(clause: &Clause, tense: Tense) -> String {
    let words = clause.predicate.split_once(' ');
    let (verb, preposition) = words.unwrap_or((&clause.predicate, ""));
    let mut parts = vec![clause.subject.clone()];
    parts.push(match words::past(verb) {
        Some(past) if tense == Tense::Past && !is_state(verb) && !clause.negated => past.to_owned(),
        _ if !clause.negated => third_person(verb),
        _ if verb == "be" => "is not".to_owned(),
        _ => format!("does not {verb}"),
    });
    parts.extend(clause.object.clone());
    if !preposition.is_empty() {
        parts.push(preposition.to_owned());
    }
    parts.extend(clause.complement.clone());
    format!("{}.", parts.join(" "))
}

fn third_person(verb: &str) -> String {
    match verb {
        "be" => "is".to_owned(),
        "have" => "has".to_owned(),
        _ => words::with_s(verb),
    }
}

/// A sentence with its quotations masked. Absent where all of it is quoted.
fn unquoted(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut quoted = false;
    for letter in text.chars() {
        if matches!(letter, '"' | '“' | '”') {
            quoted = !quoted;
            out.push_str(&" ".repeat(letter.len_utf8()));
        } else if quoted {
            out.push_str(&" ".repeat(letter.len_utf8()));
        } else {
            out.push(letter);
        }
    }
    (!out.trim().is_empty()).then_some(out)
}

/// Stance of a sentence towards earlier statements, by its wording.
fn stance(sentence: &str) -> Stance {
    let low = sentence.to_lowercase();
    let takes_back = [
        "i meant",
        "correction",
        "scratch that",
        "my mistake",
        "i misspoke",
        "sorry, it's",
        "sorry, i",
        "no, it's",
        "that was wrong",
        "i was wrong",
        "got that wrong",
        "i mixed",
        "not what i said",
        "typo",
    ];
    if takes_back.iter().any(|wording| low.contains(wording)) {
        Stance::Corrects
    } else {
        Stance::States
    }
}
