//! A caller's correction of a fact: a new version, which no extraction overwrites.

use memfleet_agents::facts::key;
use memfleet_domain::derivation::{Body, Change, ChangeKind, Derivation, Origin, Status};
use memfleet_domain::fact::Draft;
use memfleet_domain::ids::{ChangeId, ConflictId, DerivationId};
use memfleet_domain::time::TimeRange;
use memfleet_domain::{Fault, FaultKind, Scope};
use memfleet_ports::context::Context;
use memfleet_ports::events::Event;
use memfleet_ports::knowledge::{Applied, Question, Revision, Rewrite, Work};
use memfleet_ports::knowledge_api::{Correction, UpdateRequest};

use crate::LocalRefresher;

/// How often a correction is tried on a newer state before the caller is asked to look again.
pub(crate) const TRIES: u32 = 3;

/// Characters of the longest corrected sentence.
const LONGEST: usize = 1_000;

impl LocalRefresher {
    pub(crate) async fn correct_fact(
        &self,
        context: &Context,
        request: &UpdateRequest,
    ) -> Result<Derivation, Fault> {
        check(&request.correction)?;
        let scope = context.scope(&request.space);
        for _ in 0..TRIES {
            let current = self.current(&scope, request.id).await?;
            if request.version.is_some_and(|seen| seen != current.version) {
                return Err(changed(&current));
            }
            let rewrite = self
                .correction(&scope, &current, &request.correction)
                .await?;
            let corrected = rewrite.revisions[0].derivation.clone();
            if self.make(&scope, rewrite, Vec::new()).await? != Applied::Stale {
                return Ok(corrected);
            }
        }
        Err(changed(&self.current(&scope, request.id).await?))
    }

    /// A fact or an episode as it is now, withdrawn or not.
    pub(crate) async fn current(
        &self,
        scope: &Scope,
        id: DerivationId,
    ) -> Result<Derivation, Fault> {
        let question = Question {
            ids: vec![id],
            withdrawn: true,
            ..Question::default()
        };
        let page = self
            .knowledge
            .derivations(scope, &question, 1, None)
            .await?;
        let gone = || Fault::not_found(format_args!("memory {id}"));
        page.items.into_iter().next().ok_or_else(gone)
    }

    /// Makes a change and settles conflicts with it; who follows the space is told.
    pub(crate) async fn make(
        &self,
        scope: &Scope,
        rewrite: Rewrite,
        settled: Vec<(ConflictId, Status)>,
    ) -> Result<Applied, Fault> {
        let work = Work {
            rewrites: vec![rewrite],
            settled,
            ..Work::default()
        };
        let applied = self.knowledge.apply(scope, work).await?;
        if applied != Applied::Stale {
            self.events.announce(Event::Derived {
                scope: scope.clone(),
            });
        }
        Ok(applied)
    }

    async fn correction(
        &self,
        scope: &Scope,
        current: &Derivation,
        correction: &Correction,
    ) -> Result<Rewrite, Fault> {
        let Body::Fact(draft) = &current.body else {
            let message = "is not that of a fact: what is not one is derived anew when its turns change, and names are merged and split";
            return Err(Fault::invalid("id", message));
        };
        let now = self.clock.now();
        let version = (current.version + 1).to_be_bytes();
        let id = ChangeId::of("corrected", &[current.id.as_bytes(), &version]);
        let mut corrected = current.next(id);
        corrected.origin = Origin::Corrected;
        corrected.succeeded_by = None;
        corrected.known = TimeRange {
            start: Some(now),
            end: None,
        };
        let mut passage = None;
        match correction {
            Correction::Withdrawn => corrected = corrected.withdrawn(),
            Correction::Says { text, value, valid } => {
                if let Some(text) = text {
                    let said = says(draft, text, value.as_deref());
                    corrected.body = Body::Fact(Box::new(said));
                    let language = self.indexer.language(scope).await?;
                    let passages = self
                        .indexer
                        .passages(scope, vec![text.clone()], language)
                        .await?;
                    passage = passages.into_iter().next();
                }
                let ended = current.is_withdrawn() || current.succeeded_by.is_some();
                let before = TimeRange {
                    start: current.valid.start,
                    end: current.valid.end.filter(|_| !ended),
                };
                corrected.valid = match *valid {
                    Some(valid) => since(before, valid)?,
                    None => before,
                };
            }
        }
        let change = Change {
            id,
            kind: ChangeKind::Corrected,
            at: now,
            reason: "a caller corrected it".into(),
            conflict: None,
            reverts: None,
        };
        let revisions = vec![Revision {
            derivation: corrected,
            passage,
        }];
        Ok(Rewrite { change, revisions })
    }
}

/// When a fact holds that a caller says; where it began stays unless that is said too.
fn since(before: TimeRange, said: TimeRange) -> Result<TimeRange, Fault> {
    let start = said.start.or(before.start);
    if let (Some(start), Some(end)) = (start, said.end)
        && end <= start
    {
        let problem = format!("must be after the start, {}", start.to_rfc3339());
        return Err(Fault::invalid("valid.end", problem));
    }
    Ok(TimeRange { start, ..said })
}

/// The fact in other words, about the same subject. Without a value that the caller gives it is a
/// sentence in its own words.
fn says(draft: &Draft, text: &str, value: Option<&str>) -> Draft {
    let mut corrected = draft.clone();
    text.clone_into(&mut corrected.text);
    corrected.confidence = 1.0;
    // They are labels, line, names and clause of the words that were said.
    if draft.statement.is_some() || value.is_none() {
        corrected.clause = None;
    }
    corrected.statement = None;
    corrected.line = None;
    corrected.names = Vec::new();
    match value {
        Some(value) => {
            corrected.claim.value = value.trim().to_lowercase();
            if let Some(clause) = &mut corrected.clause {
                clause.complement = Some(value.trim().to_owned());
                clause.negated = false;
            }
        }
        None => {
            corrected.claim.attribute = String::new();
            corrected.claim.value = key(text);
        }
    }
    corrected
}

fn check(correction: &Correction) -> Result<(), Fault> {
    let Correction::Says { text, value, valid } = correction else {
        return Ok(());
    };
    if text.is_none() && valid.is_none() {
        return Err(Fault::invalid(
            "text",
            "is missing: say how it is, or set `valid` or `withdrawn`",
        ));
    }
    if value.is_some() && text.is_none() {
        return Err(Fault::invalid(
            "value",
            "needs `text`, the whole sentence that holds it",
        ));
    }
    if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
        return Err(Fault::invalid(
            "text",
            "must not be empty; set `withdrawn` for what was never true",
        ));
    }
    if text
        .as_ref()
        .is_some_and(|text| text.chars().count() > LONGEST)
    {
        return Err(Fault::invalid(
            "text",
            format!("must be one sentence of at most {LONGEST} characters"),
        ));
    }
    Ok(())
}

fn changed(current: &Derivation) -> Fault {
    let message = format!(
        "memory {} has changed meanwhile and is at version {}: read it again",
        current.id, current.version
    );
    Fault::new(FaultKind::FailedPrecondition, "VERSION_CHANGED", message)
        .with("version", current.version.to_string())
}
