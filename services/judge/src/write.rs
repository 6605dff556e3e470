//! New statements against current ones (AMA section 3.3, conflict detection).

use async_trait::async_trait;
use memfleet_domain::derivation::{Derivation, Kind};
use memfleet_domain::{Fault, Scope};
use memfleet_ports::events::Event;
use memfleet_ports::feed::Change;
use memfleet_ports::knowledge::{Applied, Progress, Question, Stage, Work};
use memfleet_workers::{Agent, Outcome};
use tracing::instrument;

use crate::LocalJudge;

#[async_trait]
impl Agent for LocalJudge {
    #[instrument(name = "judge", skip_all, fields(tenant = %scope.tenant, space = %scope.space))]
    async fn work(&self, scope: &Scope, reached: u64) -> Result<Outcome, Fault> {
        let News {
            statements,
            to,
            more,
        } = self.news(scope, reached).await?;
        let found = self.statement_conflicts(scope, &statements).await?;
        let conflicts = found.len();
        let work = Work {
            found,
            progress: Some(Progress {
                stage: Stage::Judge,
                from: reached,
                to,
            }),
            ..Work::default()
        };
        if self.knowledge.apply(scope, work).await? == Applied::Stale {
            return Ok(Outcome::More);
        }
        if conflicts > 0 {
            self.events.announce(Event::Derived {
                scope: scope.clone(),
            });
        }
        Ok(Outcome::more_if(more || conflicts > 0))
    }
}

/// Changes that are looked at together where statements are new: each is searched for and read.
const STATEMENT_ROUND: u32 = 16;

/// New statements, and the change sequence up to which they are all.
struct News {
    statements: Vec<Derivation>,
    to: u64,
    /// True where there may be more behind it.
    more: bool,
}

impl LocalJudge {
    /// Statements that were derived or changed since, those of some changes; all changes are passed
    /// where no fact is new.
    async fn news(&self, scope: &Scope, reached: u64) -> Result<News, Fault> {
        let question = Question {
            kind: Some(Kind::Fact),
            after: reached,
            ..Question::default()
        };
        // Before the facts are read: what comes meanwhile is looked at again.
        let to = self.feed.head(scope).await?;
        let first = self
            .knowledge
            .derivations(scope, &question, 1, None)
            .await?;
        if first.items.is_empty() {
            return Ok(News {
                statements: Vec::new(),
                to,
                more: false,
            });
        }
        let changes = self
            .feed
            .changes_after(scope, reached, STATEMENT_ROUND)
            .await?;
        let mut statements = self.changed_facts(scope, &changes.changes).await?;
        statements.retain(Derivation::is_statement);
        Ok(News {
            statements,
            to: changes.reached,
            more: changes.more,
        })
    }

    /// Facts among changes.
    pub(crate) async fn changed_facts(
        &self,
        scope: &Scope,
        changes: &[Change],
    ) -> Result<Vec<Derivation>, Fault> {
        let ids = changes.iter().filter_map(|change| match change {
            Change::Derived(derived) if derived.kind == Kind::Fact => Some(derived.id),
            _ => None,
        });
        let question = Question {
            ids: ids.collect(),
            ..Question::default()
        };
        // No condition on ids would be all of them.
        match question.ids.is_empty() {
            true => Ok(Vec::new()),
            false => Ok(self.knowledge.all_derivations(scope, &question).await?),
        }
    }
}
