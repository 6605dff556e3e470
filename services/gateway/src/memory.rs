//! The `Memory` service: one file a use-case, put together here.

mod accept;
mod decided;
mod echoes;
mod recall;
mod statement_hits;
mod subject;
mod transfer;
mod wait;

use async_trait::async_trait;
use memfleet_domain::ids::{BatchId, SpaceId, TurnId};
use memfleet_domain::ingestion::{Receipt, TurnReceipt};
use memfleet_domain::space::{LegalHold, Session, Space, SpaceSettings};
use memfleet_domain::turn::Turn;
use memfleet_domain::{Fault, Scope};
use memfleet_language::Language;
use memfleet_ports::audit::AuditKind;
use memfleet_ports::context::Context;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::ledger::Page;
use memfleet_ports::memory::{
    AnswerPart, AnswerRequest, Answers, Imported, Memory, PageRequest, RecallRequest, Record,
    RememberRequest,
};
use memfleet_ports::refresher::{ForgetReceipt, ForgetRequest};
use memfleet_ports::retriever::Found;
use memfleet_ports::subject::{Subject, SubjectForget, SubjectProgress};
use tracing::field::Empty;
use tracing::{Span, instrument};

use crate::Gateway;

#[async_trait]
impl Memory for Gateway {
    #[instrument(skip_all, fields(tenant = %context.tenant, space = %request.space, turns = request.turns.len()))]
    async fn remember(
        &self,
        context: &Context,
        request: RememberRequest,
    ) -> Result<Receipt, Fault> {
        context
            .within("the ingestion queue", self.accept(context, request))
            .await
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, spaces = %names(&request.query.spaces), k = request.query.k, hits = Empty))]
    async fn recall(&self, context: &Context, request: RecallRequest) -> Result<Found, Fault> {
        self.wait_for(context, &request.query.spaces, &request.wait_for)
            .await?;
        let found = self.recalled(context, &request).await?;
        Span::current().record("hits", found.hits.len());
        Ok(found)
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, spaces = %names(&request.query.spaces), k = request.query.k, hits = Empty))]
    async fn answer(
        &self,
        context: &Context,
        request: AnswerRequest,
    ) -> Result<Answers<AnswerPart>, Fault> {
        self.answer_question(context, request).await
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, space = %space, turns = ids.len()))]
    async fn get(
        &self,
        context: &Context,
        space: &SpaceId,
        ids: &[TurnId],
        wait_for: &[BatchId],
    ) -> Result<Vec<Turn>, Fault> {
        self.wait_for(context, std::slice::from_ref(space), wait_for)
            .await?;
        let scope = self.awaited(context, space).await?;
        Ok(self.ledger.turns(&scope, ids).await?)
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, space = %space, limit = page.limit))]
    async fn list(
        &self,
        context: &Context,
        space: &SpaceId,
        filter: &TurnFilter,
        page: PageRequest,
        wait_for: &[BatchId],
    ) -> Result<Page<Turn>, Fault> {
        self.wait_for(context, std::slice::from_ref(space), wait_for)
            .await?;
        let scope = self.awaited(context, space).await?;
        Ok(self
            .ledger
            .list(&scope, filter, page.limit, page.after.as_ref())
            .await?)
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, space = %space))]
    async fn history(
        &self,
        context: &Context,
        space: &SpaceId,
        turn: TurnId,
    ) -> Result<Vec<Turn>, Fault> {
        let scope = self.awaited(context, space).await?;
        let versions = self.ledger.history(&scope, turn).await?;
        if versions.is_empty() {
            return Err(Fault::not_found(format_args!("turn {turn}")));
        }
        Ok(versions)
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, space = %request.space, dry_run = request.dry_run, turns = Empty))]
    async fn forget(
        &self,
        context: &Context,
        request: ForgetRequest,
    ) -> Result<ForgetReceipt, Fault> {
        if !request.dry_run {
            self.note_forget(context, &request).await?;
        }
        let receipt = self.refresher.forget(context, &request).await?;
        Span::current().record("turns", receipt.erased.turns.len());
        if !request.dry_run {
            self.note_forgotten(context, &request, &receipt).await;
        }
        Ok(receipt)
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, dry_run = request.dry_run))]
    async fn forget_subject(
        &self,
        context: &Context,
        request: SubjectForget,
    ) -> Result<Answers<SubjectProgress>, Fault> {
        self.forget_everywhere(context, request).await
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, space = %space, %batch))]
    async fn watch(
        &self,
        context: &Context,
        space: &SpaceId,
        batch: BatchId,
    ) -> Result<Answers<TurnReceipt>, Fault> {
        self.watch_batch(context.scope(space), batch).await
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, space = %space))]
    async fn export(
        &self,
        context: &Context,
        space: &SpaceId,
        filter: &TurnFilter,
    ) -> Result<Answers<Record>, Fault> {
        self.export_space(context, space, filter.clone()).await
    }

    #[instrument(skip_all, fields(tenant = %context.tenant))]
    async fn export_subject(
        &self,
        context: &Context,
        subject: &Subject,
    ) -> Result<Answers<Record>, Fault> {
        self.export_everywhere(context, subject).await
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, space = %space, accepted = Empty, duplicates = Empty, forgotten = Empty))]
    async fn import(
        &self,
        context: &Context,
        space: &SpaceId,
        records: Answers<Record>,
    ) -> Result<Imported, Fault> {
        self.note_in_space(context, AuditKind::ImportBegun, space, [])
            .await?;
        let imported = self.import_records(context, space, records).await?;
        Span::current()
            .record("accepted", imported.accepted)
            .record("duplicates", imported.duplicates)
            .record("forgotten", imported.forgotten);
        Ok(imported)
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, space = %space))]
    async fn put_space(
        &self,
        context: &Context,
        space: &SpaceId,
        settings: SpaceSettings,
    ) -> Result<Space, Fault> {
        check_settings(&settings)?;
        self.refuse_another_space(&context.scope(space)).await?;
        let detail = retention(&settings).map(|(name, set)| {
            (
                name,
                set.map_or_else(|| "none".to_owned(), |set| set.to_string()),
            )
        });
        self.note_in_space(context, AuditKind::SpaceSet, space, detail)
            .await?;
        Ok(self
            .spaces
            .put(&context.scope(space), &settings, self.clock.now())
            .await?)
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, space = %space, held = held))]
    async fn set_legal_hold(
        &self,
        context: &Context,
        space: &SpaceId,
        held: bool,
        reason: String,
    ) -> Result<Space, Fault> {
        let kind = match held {
            true => AuditKind::HoldSet,
            false => AuditKind::HoldLifted,
        };
        let scope = self.existing(context, space).await?;
        self.note_in_space(context, kind, space, [("reason", reason.clone())])
            .await?;
        let hold = LegalHold {
            since: self.clock.now(),
            reason,
        };
        let held = self.spaces.hold(&scope, held.then_some(&hold)).await?;
        held.ok_or_else(|| no_space(space))
    }

    #[instrument(skip_all, fields(tenant = %context.tenant))]
    async fn spaces(&self, context: &Context, page: PageRequest) -> Result<Page<Space>, Fault> {
        if page.after.is_none() {
            self.first_writes(context).await;
        }
        Ok(self
            .spaces
            .list(&context.tenant, page.limit, page.after.as_ref())
            .await?)
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, space = %space))]
    async fn sessions(
        &self,
        context: &Context,
        space: &SpaceId,
        page: PageRequest,
    ) -> Result<Page<Session>, Fault> {
        let scope = self.awaited(context, space).await?;
        Ok(self
            .spaces
            .sessions(&scope, page.limit, page.after.as_ref())
            .await?)
    }
}

impl Gateway {
    /// The scope of a space that must exist: a misspelt name is an error, not an empty memory.
    pub(crate) async fn existing(
        &self,
        context: &Context,
        space: &SpaceId,
    ) -> Result<Scope, Fault> {
        let scope = context.scope(space);
        match self.spaces.get(&scope).await? {
            Some(_) => Ok(scope),
            None => Err(no_space(space)),
        }
    }
}

fn no_space(space: &SpaceId) -> Fault {
    Fault::not_found(format_args!("space `{space}`"))
}

/// The settings that remove something, by their names.
fn retention(settings: &SpaceSettings) -> [(&'static str, Option<u32>); 3] {
    [
        ("retention_days", settings.retention_days),
        ("retention_turns", settings.retention_turns),
        (
            "retention_superseded_days",
            settings.retention_superseded_days,
        ),
    ]
}

/// The spaces of a search, for its span.
pub(crate) fn names(spaces: &[SpaceId]) -> String {
    let names = spaces.iter().map(SpaceId::as_str);
    names.collect::<Vec<_>>().join(",")
}

fn check_settings(settings: &SpaceSettings) -> Result<(), Fault> {
    if let Some(language) = &settings.language
        && Language::of_code(language).is_none()
    {
        let codes = Language::ALL.map(Language::code).join(", ");
        return Err(Fault::invalid(
            "settings.language",
            format!("must be one of {codes}; `und` stands for every other language"),
        ));
    }
    match retention(settings)
        .into_iter()
        .find(|(_, set)| *set == Some(0))
    {
        Some((name, _)) => Err(Fault::invalid(
            format!("settings.{name}"),
            "must be at least 1; leave it out to keep everything",
        )),
        None => Ok(()),
    }
}
