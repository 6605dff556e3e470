//! The section *who this is*: statements about the person who speaks the prompt, which hold and are
//! worth remembering. Nothing of it depends on the prompt, so it is the same from call to call.

use std::time::Duration;

use futures::future::try_join_all;
use memfleet_agents::facts::key;
use memfleet_assembly::{ProfileLine, ProfileSection, ShownLine, profile_section};
use memfleet_domain::assembly::Granularity;
use memfleet_domain::derivation::{Derivation, Origin};
use memfleet_domain::fact::StatementLabels;
use memfleet_domain::ids::{SessionId, SpaceId, Speaker, TurnId};
use memfleet_domain::space::Locale;
use memfleet_domain::statement::StatementKind;
use memfleet_domain::time::AsOf;
use memfleet_domain::turn::{Role, Trust, Turn};
use memfleet_domain::{Fault, Scope, Timestamp};
use memfleet_ports::assembly::{AssembledItem, ProfileUse, Source};
use memfleet_ports::context::Context;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::knowledge::by_worth;
use tokio::time::Instant;

use super::choosing::{Making, SYSTEM};
use super::finding;
use super::nonce::{self, Contents};
use super::redaction::Redactions;
use super::work::Work;
use crate::Gateway;
use crate::digests::Key;

/// Kinds of statements that say who somebody is. Reports of what others say, and all that holds for
/// a short while or for nobody, do not.
const KINDS: [StatementKind; 5] = [
    StatementKind::State,
    StatementKind::Event,
    StatementKind::Plan,
    StatementKind::Wish,
    StatementKind::Instruction,
];

/// Last turns of a session in which the person who speaks is looked for.
const SESSION_TURNS: u32 = 32;

/// Facts of a space that are read at first, at least.
const FEWEST_FACTS: u32 = 64;

/// Facts of a space that are read at most.
const MOST_FACTS: u32 = 2_048;

/// Tokens that a line has at least, about.
const LINE_TOKENS: u32 = 8;

/// Whose profile is read, and which statements may be in it.
#[derive(Clone)]
pub struct ProfileQuestion {
    spaces: Vec<SpaceId>,
    speaker: Option<Speaker>,
    session: Option<SessionId>,
    filter: TurnFilter,
    as_of: AsOf,
    /// Upper bound in tokens.
    most: u32,
}

/// A statement of the person.
pub struct KnownStatement {
    space: SpaceId,
    fact: Derivation,
    turn: Turn,
}

/// What was read for a section: the person who speaks, or why it is not known who that is.
pub type ReadProfile = Result<KnownSpeaker, &'static str>;

/// The person who speaks, with what is known of them.
pub struct KnownSpeaker {
    speaker: Speaker,
    statements: Vec<KnownStatement>,
    /// Zone and language of the block.
    locale: Locale,
    /// Key of the nonce; none where the store did not tell it.
    key: Option<Key>,
}

/// A section that is rendered, and where each line comes from. Without lines there is none.
#[derive(Default)]
pub struct MadeProfile {
    pub speaker: String,
    pub section: ProfileSection,
    pub items: Vec<AssembledItem>,
}

impl MadeProfile {
    /// Beginning of the block.
    pub fn lead(&self) -> String {
        self.section.lead()
    }

    /// The section as the answer tells of it.
    pub fn told(&self) -> Option<ProfileUse> {
        (!self.items.is_empty()).then(|| ProfileUse {
            speaker: self.speaker.clone(),
            tokens: self.section.tokens as u32,
            nonce: self.section.nonce.clone(),
        })
    }
}

impl<'w> Work<'w> {
    /// Tokens of the section that is asked for; 0 where none is.
    pub(super) fn profile_tokens(&self) -> u32 {
        let settings = &self.basis.settings;
        match settings.selection.profile {
            true => settings.budget.profile_tokens,
            false => 0,
        }
    }

    fn profile_question(&self) -> Option<ProfileQuestion> {
        let most = self.profile_tokens();
        if most == 0 {
            return None;
        }
        let query = &self.request.query;
        let as_of = query.filter.as_of;
        let holds_at = as_of.happened_by.or(query.now).unwrap_or(self.now);
        let mut filter = query.filter.clone();
        let exclusion = &self.basis.settings.exclusion;
        let (session, aliases) = (query.session.as_ref(), &self.request.aliases);
        finding::exclude(&mut filter, exclusion, session, aliases, self.now);
        Some(ProfileQuestion {
            spaces: query.spaces.clone(),
            speaker: self.request.speaker.clone(),
            session: query.session.clone(),
            filter,
            as_of: AsOf {
                happened_by: Some(holds_at),
                ..as_of
            },
            most,
        })
    }

    /// Reads what is known of the person who speaks, beside the search. `None`: it is not asked for.
    pub(super) fn known_speaker(
        &self,
    ) -> impl Future<Output = Option<Result<ReadProfile, Fault>>> + Send + use<'w> {
        let question = self.profile_question();
        let left = self
            .reading_ends()
            .saturating_duration_since(Instant::now());
        let (gateway, context) = (self.gateway, self.context);
        async move {
            let question = question?;
            let brief = context.at_most(left.max(Duration::from_millis(1)));
            let reading = gateway.known_speaker(&brief, &question);
            Some(brief.within("the statements of the speaker", reading).await)
        }
    }

    /// The section of what is known. Nothing that fails here ends the assembly.
    pub(super) async fn profile(
        &mut self,
        known: Option<Result<ReadProfile, Fault>>,
        budget: usize,
    ) -> MadeProfile {
        let made = match known {
            None => return MadeProfile::default(),
            Some(Err(fault)) => Err(fault),
            Some(Ok(Err(problem))) => {
                let degraded = &mut self.draft.answer.degraded;
                degraded.push(format!("profile: {problem}"));
                Ok(MadeProfile::default())
            }
            Some(Ok(Ok(known))) => self.made_profile(known, budget).await,
        };
        self.draft.timed("profile");
        made.unwrap_or_else(|fault| {
            tracing::warn!(reason = %fault.reason, "a block goes out without a profile: {fault}");
            let degraded = &mut self.draft.answer.degraded;
            degraded.push(format!("profile: {}", fault.message));
            MadeProfile::default()
        })
    }

    /// Says that tools are offered in the place of a block, where a section is asked for.
    pub(super) fn miss_profile(&mut self) {
        if self.profile_tokens() > 0 {
            let problem = "profile: memory tools are offered, and no block that it could begin";
            self.draft.answer.degraded.push(problem.to_owned());
        }
    }

    async fn made_profile(&self, known: KnownSpeaker, budget: usize) -> Result<MadeProfile, Fault> {
        if known.statements.is_empty() {
            return Ok(MadeProfile::default());
        }
        let making = self.making(budget, nonce::PLACEHOLDER, known.locale.clone());
        let most = self.profile_tokens() as usize;
        super::apart(move || making.profile(&known, most)).await
    }
}

impl Making {
    /// The section of what is known of a speaker.
    fn profile(&self, known: &KnownSpeaker, most: usize) -> MadeProfile {
        let speaker = self.redactions.apply(known.speaker.to_string());
        let shown = known.statements.iter().filter_map(|statement| {
            let text = statement.shown(&self.redactions)?;
            Some((statement, text))
        });
        let shown: Vec<(&KnownStatement, String)> = shown.collect();
        let lines = shown.iter().map(|(statement, text)| ProfileLine {
            speaker: &speaker,
            event_time: statement.turn.accepted.event_time,
            text,
        });
        let lines: Vec<_> = lines.collect();
        // The nonce is that of these lines alone, whatever is asked.
        let nonce = |places: &[usize]| {
            let contents = Contents::default().with(["who this is", &*speaker]);
            let contents = places.iter().fold(contents, |contents, place| {
                let (statement, text) = &shown[*place];
                contents.with([&statement.fact.id.to_string(), text])
            });
            nonce::of(known.key, &contents)
        };
        let section = profile_section(&lines, most, &self.options(), nonce);
        let items = section.shown.iter().enumerate();
        let items = items.map(|(at, line)| {
            let (statement, text) = &shown[line.line];
            AssembledItem {
                speaker: speaker.clone(),
                citation_key: match self.basis.template.shows_keys {
                    true => ProfileSection::key(at + 1),
                    false => String::new(),
                },
                ..statement.item(*line, text)
            }
        });
        MadeProfile {
            items: items.collect(),
            speaker: speaker.clone(),
            section,
        }
    }
}

impl KnownStatement {
    /// Its words without what is to be hidden; none where the words around them tell that they are.
    fn shown(&self, redactions: &Redactions) -> Option<String> {
        let words = self.fact.fact()?.listed();
        let shown = redactions.apply(words.to_owned());
        let said = self.turn.accepted.content.searchable_text();
        let is_hidden =
            shown == words && said.contains(words) && !redactions.apply(said).contains(words);
        (!is_hidden).then_some(shown)
    }

    fn item(&self, line: ShownLine, text: &str) -> AssembledItem {
        let turn = &self.turn.accepted;
        let source = |id: String| Source {
            system: SYSTEM.to_owned(),
            id,
        };
        let is_corrected = self.fact.origin == Origin::Corrected;
        AssembledItem {
            space: Some(self.space.clone()),
            id: turn.id.to_string(),
            score: self.fact.worth().unwrap_or_default(),
            tokens: line.tokens as u32,
            excerpt: false,
            citation_key: String::new(),
            session: turn.session.to_string(),
            speaker: String::new(),
            role: turn.role,
            event_time: turn.event_time,
            recorded_at: Some(turn.recorded_at),
            granularity: Granularity::Profile,
            trust: turn.trust,
            relevance: None,
            original_tokens: line.tokens as u32,
            sources: vec![
                source(turn.id.to_string()),
                source(self.fact.id.to_string()),
            ],
            valid: self.fact.valid,
            mixed_lineage: false,
            content_hash: blake3::hash(text.as_bytes()).to_string(),
            signals: Vec::new(),
            corrected_from: match is_corrected {
                true => self.fact.turns.clone(),
                false => Vec::new(),
            },
        }
    }
}

impl Gateway {
    /// The person who speaks, with their statements in these spaces, the most worth first.
    async fn known_speaker(
        &self,
        context: &Context,
        question: &ProfileQuestion,
    ) -> Result<ReadProfile, Fault> {
        let speaker = match &question.speaker {
            Some(speaker) => Ok(speaker.clone()),
            None => self.only_speaker(context, question).await?,
        };
        let speaker = match speaker {
            Ok(speaker) => speaker,
            Err(problem) => return Ok(Err(problem)),
        };
        let spaces = question.spaces.iter();
        let reading = spaces.map(|space| self.statements_of(context, space, &speaker, question));
        let mut statements: Vec<_> = try_join_all(reading).await?.into_iter().flatten().collect();
        statements.sort_by(|one, other| by_worth(&one.fact, &other.fact));
        Ok(Ok(KnownSpeaker {
            speaker,
            statements,
            locale: self.locale(context, &question.spaces).await?,
            key: self.nonce_key(context).await,
        }))
    }

    /// The one user who spoke in the last turns of the session.
    async fn only_speaker(
        &self,
        context: &Context,
        question: &ProfileQuestion,
    ) -> Result<Result<Speaker, &'static str>, Fault> {
        let Some(session) = &question.session else {
            return Ok(Err(
                "there is no session that tells who speaks: name `speaker`",
            ));
        };
        let mut speakers: Vec<Speaker> = Vec::new();
        for space in &question.spaces {
            let scope = context.scope(space);
            let turns = self.ledger.latest(&scope, session, SESSION_TURNS).await?;
            let said = turns.into_iter().map(|turn| turn.accepted);
            let users = said.filter(|turn| turn.role == Role::User);
            speakers.extend(users.map(|turn| turn.speaker));
        }
        speakers.sort_unstable();
        speakers.dedup();
        Ok(match speakers.len() {
            1 => Ok(speakers.remove(0)),
            0 => Err("no user spoke in the session yet: name `speaker`"),
            _ => Err("several users spoke in the session: name `speaker`"),
        })
    }

    async fn statements_of(
        &self,
        context: &Context,
        space: &SpaceId,
        speaker: &Speaker,
        question: &ProfileQuestion,
    ) -> Result<Vec<KnownStatement>, Fault> {
        let scope = context.scope(space);
        let wanted = question.most / LINE_TOKENS;
        let mut limit = (2 * wanted).clamp(FEWEST_FACTS, MOST_FACTS);
        loop {
            let subject = key(speaker.as_str());
            let facts = self
                .knowledge
                .worthiest(&scope, &subject, question.as_of, limit);
            let facts = facts.await?;
            let is_all = (facts.len() as u32) < limit || limit == MOST_FACTS;
            let known = self.known(&scope, speaker, question, facts).await?;
            if is_all || known.len() as u32 >= wanted {
                return Ok(known);
            }
            // Much of it is not for this call.
            limit = MOST_FACTS;
        }
    }

    /// Those of the facts that may be in the profile, each with its turn.
    async fn known(
        &self,
        scope: &Scope,
        speaker: &Speaker,
        question: &ProfileQuestion,
        mut facts: Vec<Derivation>,
    ) -> Result<Vec<KnownStatement>, Fault> {
        facts.retain(says_who_somebody_is);
        let mut ids: Vec<TurnId> = facts.iter().map(|fact| fact.turns[0]).collect();
        ids.sort_unstable();
        ids.dedup();
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let turns = self.ledger.turns(scope, &ids).await?;
        let known_at = question.as_of.known_at;
        let now = question.as_of.happened_by;
        let now = now.unwrap_or_else(|| self.clock.now());
        self.shrink_stale_lines(scope, &mut facts, known_at, now)
            .await?;
        let stated = facts.into_iter().filter_map(|fact| {
            // A turn that was forgotten meanwhile takes its fact along.
            let turn = turns
                .iter()
                .find(|turn| turn.accepted.id == fact.turns[0])?;
            let said = &turn.accepted;
            let is_own =
                said.speaker == *speaker && said.role == Role::User && said.trust == Trust::User;
            let may_enter = question.filter.passes(said) && !is_replaced(turn, known_at);
            (is_own && may_enter).then(|| KnownStatement {
                space: scope.space.clone(),
                turn: turn.clone(),
                fact,
            })
        });
        Ok(stated.collect())
    }
}

/// Whether another turn had taken its place by then.
fn is_replaced(turn: &Turn, known_at: Option<Timestamp>) -> bool {
    let replaced = turn.replaced.as_ref();
    replaced.is_some_and(|by| known_at.is_none_or(|instant| by.at <= instant))
}

/// True for what a caller corrected and for statements of a kind that lasts, about the speaker.
fn says_who_somebody_is(fact: &Derivation) -> bool {
    let Some(draft) = fact.fact() else {
        return false;
    };
    if fact.origin == Origin::Corrected {
        return true;
    }
    let lasts = |labels: &StatementLabels| KINDS.contains(&labels.kind);
    draft.is_listed() && draft.statement.as_ref().is_some_and(lasts)
}
