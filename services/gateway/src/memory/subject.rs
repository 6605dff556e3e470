//! `ForgetSubject` and `ExportSubject`: one person in every space of the tenant, space by space in
//! the order of their names.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use memfleet_domain::ids::SpaceId;
use memfleet_domain::{Fault, FaultKind, Scope};
use memfleet_ports::context::Context;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::ledger::PageToken;
use memfleet_ports::memory::{Answers, Record};
use memfleet_ports::refresher::ForgetRequest;
use memfleet_ports::subject::{InSpace, Subject, SubjectForget, SubjectProgress, SubjectTotal};
use tracing::{Instrument, Span};

use crate::Gateway;

/// Spaces or turns that are read at a time.
const PAGE: u32 = 256;

/// First pause between two looks at how much of the tenant waits; each is twice the one before …
const FIRST_PAUSE: Duration = Duration::from_millis(10);

/// … up to this one.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

impl Gateway {
    /// Nothing is kept of how far it came: to begin again costs a look at the spaces that are done.
    pub(super) async fn forget_everywhere(
        &self,
        context: &Context,
        request: SubjectForget,
    ) -> Result<Answers<SubjectProgress>, Fault> {
        if !request.dry_run {
            self.note_forget_everywhere(context).await?;
        }
        self.drain_tenant(context).await?;
        let mut names = Names::new(self, context);
        // A space may have nothing but dead letters, and is in no listing then.
        let lettered = self.queue.buried_spaces(&context.tenant).await?;
        names.lettered = lettered.into_iter().collect();
        let total = SubjectTotal {
            dry_run: request.dry_run,
            ..SubjectTotal::default()
        };
        let forgetting = Forgetting {
            names,
            filter: request.subject.filter(),
            total: Some(total),
        };
        // The spaces are gone through when the call that asked for it has long returned.
        let span = Span::current();
        let progress = futures::stream::try_unfold(forgetting, move |mut forgetting| {
            let next = async move {
                let progress = forgetting.next().await?;
                Ok(progress.map(|progress| (progress, forgetting)))
            };
            next.instrument(span.clone())
        });
        Ok(progress.boxed())
    }

    pub(super) async fn export_everywhere(
        &self,
        context: &Context,
        subject: &Subject,
    ) -> Result<Answers<Record>, Fault> {
        self.drain_tenant(context).await?;
        let filter = subject.filter();
        let names = Names::new(self, context);
        let span = Span::current();
        let spaces = futures::stream::try_unfold(names, move |mut names| {
            let filter = filter.clone();
            let next = async move {
                let Some(space) = names.next().await? else {
                    return Ok(None);
                };
                let records = names.said_in(&space, filter).await?;
                Ok::<_, Fault>(Some((records, names)))
            };
            next.instrument(span.clone())
        });
        Ok(spaces.try_flatten().boxed())
    }

    /// Returns when what the tenant had accepted until now is stored: a first write may be of a
    /// space that no listing has yet.
    async fn drain_tenant(&self, context: &Context) -> Result<(), Fault> {
        let begun = self.clock.now();
        let drained = async {
            let mut pause = FIRST_PAUSE;
            loop {
                let depth = self.queue.waiting_depth(&context.tenant).await?;
                if depth.oldest.is_none_or(|oldest| oldest > begun) {
                    return Ok(());
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        };
        let what = "writes of the tenant that were accepted before";
        context.within(what, drained).await
    }

    async fn count(&self, scope: &Scope, filter: &TurnFilter) -> Result<u64, Fault> {
        let (mut turns, mut after) = (0, None);
        loop {
            let page = self
                .ledger
                .list_accepted(scope, filter, PAGE, after.as_ref())
                .await?;
            turns += page.items.len() as u64;
            after = page.next;
            if after.is_none() {
                return Ok(turns);
            }
        }
    }
}

/// The spaces of a tenant by name.
struct Names {
    gateway: Gateway,
    context: Context,
    page: VecDeque<SpaceId>,
    /// Where the next page begins; absent at the first one.
    after: Option<PageToken>,
    /// True behind the last page.
    is_listed: bool,
    /// Spaces that have dead letters, listed or not, and are still to come.
    lettered: BTreeSet<SpaceId>,
}

impl Names {
    fn new(gateway: &Gateway, context: &Context) -> Self {
        Self {
            gateway: gateway.clone(),
            context: context.clone(),
            page: VecDeque::new(),
            after: None,
            is_listed: false,
            lettered: BTreeSet::new(),
        }
    }

    async fn next(&mut self) -> Result<Option<SpaceId>, Fault> {
        while self.page.is_empty() && !self.is_listed {
            let spaces = &self.gateway.spaces;
            let after = self.after.take();
            let page = spaces.list(&self.context.tenant, PAGE, after.as_ref());
            let page = self.context.within("the spaces", async { Ok(page.await?) });
            let page = page.await?;
            self.page
                .extend(page.items.into_iter().map(|space| space.id));
            self.is_listed = page.next.is_none();
            self.after = page.next;
        }
        Ok(match (self.page.front(), self.lettered.first()) {
            (Some(listed), Some(lettered)) if lettered < listed => self.lettered.pop_first(),
            (Some(listed), _) => {
                self.lettered.remove(listed);
                self.page.pop_front()
            }
            (None, _) => self.lettered.pop_first(),
        })
    }

    /// The records of a space in which something matches; none of another, or of one that is gone
    /// by now.
    async fn said_in(&self, space: &SpaceId, filter: TurnFilter) -> Result<Answers<Record>, Fault> {
        let records = self
            .gateway
            .export_space(&self.context, space, filter)
            .await;
        let mut records = match records {
            Err(fault) if fault.kind == FaultKind::NotFound => {
                return Ok(futures::stream::empty().boxed());
            }
            records => records?,
        };
        let mut first = Vec::with_capacity(2);
        while first.len() < 2
            && let Some(record) = records.try_next().await?
        {
            first.push(record);
        }
        if first.len() < 2 {
            return Ok(futures::stream::empty().boxed());
        }
        let first = futures::stream::iter(first.into_iter().map(Ok));
        Ok(first.chain(records).boxed())
    }
}

/// A forget of one person that is going on.
struct Forgetting {
    names: Names,
    filter: TurnFilter,
    /// So far; absent once it was told.
    total: Option<SubjectTotal>,
}

impl Forgetting {
    async fn next(&mut self) -> Result<Option<SubjectProgress>, Fault> {
        let Some(total) = &self.total else {
            return Ok(None);
        };
        let dry_run = total.dry_run;
        while let Some(space) = self.names.next().await? {
            let Some(done) = self.forget_in(&space, dry_run).await? else {
                continue;
            };
            if let Some(total) = &mut self.total {
                total.add(&done);
            }
            return Ok(Some(SubjectProgress::Space(space, done)));
        }
        Ok(self.total.take().map(SubjectProgress::Total))
    }

    /// Forgets their turns in a space and says what became of them; nothing where it is gone by now. A space of which
    /// nothing goes is asked too: a forget that a crash cut short may have left text in unused
    /// bytes of the files.
    async fn forget_in(&self, space: &SpaceId, dry_run: bool) -> Result<Option<InSpace>, Fault> {
        let Names {
            gateway, context, ..
        } = &self.names;
        let request = ForgetRequest {
            space: space.clone(),
            filter: self.filter.clone(),
            everything: false,
            dry_run,
        };
        loop {
            match gateway.refresher.forget(context, &request).await {
                Ok(receipt) => {
                    if !dry_run && !receipt.is_empty() {
                        gateway.note_forgotten(context, &request, &receipt).await;
                    }
                    return Ok(Some(InSpace::Forgotten(receipt)));
                }
                Err(fault) if fault.kind == FaultKind::NotFound => return Ok(None),
                Err(fault) if fault.reason == "LEGAL_HOLD" => {
                    let scope = context.scope(space);
                    let found = gateway.spaces.get(&scope).await?;
                    // Where it was lifted meanwhile the forget is tried again.
                    if let Some(hold) = found.and_then(|found| found.hold) {
                        let turns = gateway.count(&scope, &self.filter).await?;
                        return Ok(Some(InSpace::Held { hold, turns }));
                    }
                }
                Err(fault) => return Err(fault),
            }
        }
    }
}
