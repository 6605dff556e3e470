//! From episodes to fragments, each bound to a narrative (Amory section 3.1). A run that goes on with the fragment before it makes that one
//! longer; any other opens a fragment, of a story that is known or of a new one. What was bound stays bound while its turns are there.

mod beginning;
mod draft;
mod orphans;
mod part;
mod run;
mod settled;
mod writing;

use std::collections::{HashMap, HashSet};

use async_trait::async_trait;
use memfleet_agents::narratives::Stories;
use memfleet_domain::derivation::Kind;
use memfleet_domain::ids::{DerivationId, SessionId, TurnId};
use memfleet_domain::time::Timestamp;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::feed::{Change, Changes};
use memfleet_ports::knowledge::{Question, Rewrite, Stage};
use memfleet_workers::{Agent, Outcome};
use tracing::instrument;

use crate::LocalConsolidator;
use crate::news::News;
use crate::stories::BindingState;

/// Changes that are looked at together.
const ROUND: u32 = 256;

/// Why a change binds.
const BOUND: (&str, &str) = ("bound", "what was said is bound to its story");

/// What changed of a session.
#[derive(Default)]
struct Touched {
    begun: Option<Timestamp>,
    turns: HashSet<TurnId>,
}

/// The stories of a space as they are read.
enum Told {
    /// Every fragment has its narrative, and every narrative a fragment.
    Whole(Stories),
    /// What has to be written before it is so.
    Torn(Vec<Rewrite>),
}

#[async_trait]
impl Agent for LocalConsolidator {
    #[instrument(name = "bind", skip_all, fields(tenant = %scope.tenant, space = %scope.space))]
    async fn work(&self, scope: &Scope, reached: u64) -> Result<Outcome, Fault> {
        let changes = self.feed.changes_after(scope, reached, ROUND).await?;
        let touched = self.touched(scope, &changes).await?;
        let round = (reached, changes.reached);
        let state = BindingState {
            reached,
            served: self.served(scope).await?,
        };
        let kept = self.kept(scope, &state, &changes).await?;
        let mut stories = match kept {
            Some(stories) => stories,
            None if touched.is_empty() && !changes.changes.iter().any(is_gone) => {
                self.write(scope, Stage::Bind, Vec::new(), round).await?;
                return Ok(Outcome::more_if(changes.more));
            }
            None => match self.stories(scope).await? {
                Told::Whole(stories) => stories,
                // What is bound rests on narratives that are there: then the same changes are looked at once more.
                Told::Torn(adopted) => {
                    let stays = (reached, reached);
                    let written = self.write(scope, Stage::Bind, adopted, stays).await?;
                    return Ok(Outcome::more_if(written.is_some() || changes.more));
                }
            },
        };
        let news = self.all_news(scope, touched, &mut stories).await?;
        if self.served(scope).await? != state.served {
            // The embedding model changed: what was compared may be of both.
            return Ok(Outcome::More);
        }
        // What is withdrawn is in no story that could be kept.
        let is_kept = news.iter().all(News::withdraws_nothing);
        let mut rewrites = Vec::new();
        for news in news {
            rewrites.extend(self.rewrite(scope, news, BOUND).await?);
        }
        let Some(written) = self.write(scope, Stage::Bind, rewrites, round).await? else {
            return Ok(Outcome::More);
        };
        if is_kept {
            let state = BindingState {
                reached: changes.reached,
                ..state
            };
            self.shelf.put(scope, state, stories);
        }
        Ok(Outcome::more_if(changes.more || written > 0))
    }
}

/// Whether something is not there any more, which may be what others rest on.
fn is_gone(change: &Change) -> bool {
    matches!(change, Change::Forgotten(_) | Change::Withdrawn(_))
}

impl LocalConsolidator {
    /// The stories of a space, or what makes them whole.
    async fn stories(&self, scope: &Scope) -> Result<Told, Fault> {
        let all = |kind| self.of_kind(scope, kind, Question::default());
        let (narratives, fragments) = (all(Kind::Narrative).await?, all(Kind::Fragment).await?);
        let adopted = self.adopt_orphans(scope, narratives, &fragments).await?;
        Ok(match adopted.is_empty() {
            true => Told::Whole(self.stories_of(scope, &fragments).await?),
            false => Told::Torn(adopted),
        })
    }

    /// News of these turns for the stories, by session.
    async fn all_news(
        &self,
        scope: &Scope,
        touched: Vec<HashSet<TurnId>>,
        stories: &mut Stories,
    ) -> Result<Vec<News>, Fault> {
        let mut news = Vec::with_capacity(touched.len());
        for touched in touched {
            news.push(self.session(scope, touched, stories).await?);
        }
        news.push(self.emptied(scope, &news).await?);
        Ok(news)
    }

    /// The turns of the episodes that changed, session by session in the order in which these were said.
    async fn touched(
        &self,
        scope: &Scope,
        changes: &Changes,
    ) -> Result<Vec<HashSet<TurnId>>, Fault> {
        let ids = changes.changes.iter().filter_map(|change| match change {
            Change::Derived(derived) if derived.kind == Kind::Episode => Some(derived.id),
            Change::Withdrawn(id) => Some(*id),
            _ => None,
        });
        let ids: Vec<DerivationId> = ids.collect();
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let question = Question {
            kind: Some(Kind::Episode),
            ids,
            withdrawn: true,
            ..Question::default()
        };
        let mut touched: HashMap<SessionId, Touched> = HashMap::new();
        for derivation in self.knowledge.all_derivations(scope, &question).await? {
            if let Some(episode) = derivation.episode() {
                let session = touched.entry(episode.session.clone()).or_default();
                session.turns.extend(&derivation.turns);
                let begun = derivation.valid.start;
                session.begun = session.begun.filter(|it| Some(*it) < begun).or(begun);
            }
        }
        let mut touched: Vec<(SessionId, Touched)> = touched.into_iter().collect();
        touched.sort_by(|(one, at), (other, then)| (at.begun, one).cmp(&(then.begun, other)));
        Ok(touched
            .into_iter()
            .map(|(_, touched)| touched.turns)
            .collect())
    }
}
