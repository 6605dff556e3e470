//! `Export` and `Import`: a space as records, and back, equal in everything.

use std::collections::HashMap;

use futures::{StreamExt, TryStreamExt};
use memfleet_domain::ids::{BatchId, SpaceId};
use memfleet_domain::ingestion::Batch;
use memfleet_domain::space::SpaceSettings;
use memfleet_domain::turn::AcceptedTurn;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::context::Context;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::ledger::{Known, PageToken};
use memfleet_ports::memory::{Answers, Imported, Record};
use tracing::{Instrument, Span};

use super::check_settings;
use crate::Gateway;

/// Turns read or accepted at a time.
const CHUNK: usize = 256;

impl Gateway {
    pub(super) async fn export_space(
        &self,
        context: &Context,
        space: &SpaceId,
        filter: TurnFilter,
    ) -> Result<Answers<Record>, Fault> {
        let whole = filter.is_everything();
        // Without the turns that were replaced an import could not take those that replaced them.
        let filter = TurnFilter {
            include_replaced: filter.include_replaced || whole,
            ..filter
        };
        let scope = self.awaited(context, space).await?;
        let Some(found) = self.spaces.get(&scope).await? else {
            return Err(Fault::not_found(format_args!("space `{space}`")));
        };
        let rules = match whole {
            true => self.rules(context, &found).await?,
            false => None,
        };
        let decided = self.decided(scope.clone(), filter.clone());
        let first = [Some(Record::Space(found.id, found.settings)), rules];
        let first = futures::stream::iter(first.into_iter().flatten().map(Ok));
        // The pages are read when the call that asked for them has long returned.
        let span = Span::current();
        let pages = futures::stream::try_unfold(Some(None::<PageToken>), {
            let gateway = self.clone();
            move |at| {
                let (gateway, scope, filter) = (gateway.clone(), scope.clone(), filter.clone());
                async move {
                    let Some(after) = at else { return Ok(None) };
                    let page = gateway
                        .ledger
                        .list_accepted(&scope, &filter, CHUNK as u32, after.as_ref())
                        .await?;
                    let records = page
                        .items
                        .into_iter()
                        .map(|turn| Ok(Record::Turn(Box::new(turn))));
                    Ok::<_, Fault>(Some((futures::stream::iter(records), page.next.map(Some))))
                }
                .instrument(span.clone())
            }
        });
        Ok(first.chain(pages.try_flatten()).chain(decided).boxed())
    }

    pub(super) async fn import_records(
        &self,
        context: &Context,
        space: &SpaceId,
        mut records: Answers<Record>,
    ) -> Result<Imported, Fault> {
        let scope = context.scope(space);
        let mut imported = Imported::default();
        let mut chunk = Vec::with_capacity(CHUNK);
        while let Some(record) = records.try_next().await? {
            match record {
                Record::Space(_, settings) => self.settle_space(&scope, &settings).await?,
                Record::Rules(rules) => {
                    self.settle_rules(context, &scope, *rules, &mut imported)
                        .await?;
                }
                Record::Turn(turn) => chunk.push(AcceptedTurn {
                    place: Some(turn.position),
                    ..turn.accepted
                }),
                Record::Decided(memory) => {
                    self.import_chunk(&scope, std::mem::take(&mut chunk), &mut imported)
                        .await?;
                    self.import_decided(context, &scope, &memory, &mut imported)
                        .await?;
                }
            }
            if chunk.len() == CHUNK {
                self.import_chunk(&scope, std::mem::take(&mut chunk), &mut imported)
                    .await?;
            }
        }
        self.import_chunk(&scope, chunk, &mut imported).await?;
        Ok(imported)
    }

    /// Creates the space with the settings of the file. One that is there keeps its own: a retention that comes with a
    /// file would remove turns that its owner means to keep.
    async fn settle_space(&self, scope: &Scope, settings: &SpaceSettings) -> Result<(), Fault> {
        check_settings(settings)?;
        if self.spaces.get(scope).await?.is_none() {
            self.spaces.put(scope, settings, self.clock.now()).await?;
        }
        Ok(())
    }

    /// Waits while the queue is full, since an import is in no hurry. What was forgotten is looked up again at every try: a
    /// forget that came while it waited counts too.
    async fn import_chunk(
        &self,
        scope: &Scope,
        turns: Vec<AcceptedTurn>,
        imported: &mut Imported,
    ) -> Result<(), Fault> {
        if turns.is_empty() {
            return Ok(());
        }
        loop {
            match self.try_chunk(scope, turns.clone()).await {
                Err(fault) if fault.reason == "QUEUE_FULL" => {
                    tokio::time::sleep(fault.retry_after.unwrap_or_default()).await;
                }
                answer => {
                    let chunk = answer?;
                    imported.accepted += chunk.accepted;
                    imported.duplicates += chunk.duplicates;
                    imported.forgotten += chunk.forgotten;
                    imported.batches.extend(chunk.batches);
                    return Ok(());
                }
            }
        }
    }

    /// Accepts a chunk without what was forgotten: a file from before a forget must not undo it.
    async fn try_chunk(&self, scope: &Scope, turns: Vec<AcceptedTurn>) -> Result<Imported, Fault> {
        let mut imported = Imported::default();
        let ids = turns.iter().flat_map(|turn| [Some(turn.id), turn.replaces]);
        let ids = ids.flatten().collect::<Vec<_>>();
        let known = self.ledger.known(scope, &ids).await?;
        let mut turns = remembered(turns, &known, &mut imported);
        imported.duplicates += self.leave_out_stored(scope, &mut turns, &known).await?;
        if turns.is_empty() {
            return Ok(imported);
        }
        let count = turns.len() as u64;
        let stored = turns.iter().filter(|turn| known.stored.contains(&turn.id));
        let stored = stored.count() as u64;
        let ids = turns.iter().map(|turn| turn.id).collect::<Vec<_>>();
        let batch = Batch {
            id: BatchId::of_turns(&ids),
            scope: scope.clone(),
            turns,
        };
        let duplicate = self.accept_batch(&batch).await?.duplicate;
        let there = if duplicate { count } else { stored };
        imported.duplicates += there;
        imported.accepted += count - there;
        imported.batches.push(batch.id);
        Ok(imported)
    }

    /// Takes out turns that are stored just so, in whatever batches they came, and counts them: to queue and to embed them again
    /// would change nothing. Those that are stored otherwise stay, and are refused.
    async fn leave_out_stored(
        &self,
        scope: &Scope,
        turns: &mut Vec<AcceptedTurn>,
        known: &Known,
    ) -> Result<u64, Fault> {
        let ids = turns.iter().map(|turn| turn.id);
        let ids = ids.filter(|id| known.stored.contains(id));
        let stored = self.ledger.turns(scope, &ids.collect::<Vec<_>>()).await?;
        let hashes = stored
            .iter()
            .map(|turn| (turn.accepted.id, turn.accepted.content_hash()))
            .collect::<HashMap<_, _>>();
        let given = turns.len();
        turns.retain(|turn| hashes.get(&turn.id) != Some(&turn.content_hash()));
        Ok((given - turns.len()) as u64)
    }
}

/// What is left of a chunk. The ledger no longer says of a turn that it replaces one that is forgotten, so neither may the file.
fn remembered(
    turns: Vec<AcceptedTurn>,
    known: &Known,
    imported: &mut Imported,
) -> Vec<AcceptedTurn> {
    let mut left = Vec::with_capacity(turns.len());
    for mut turn in turns {
        let stands_alone = turn
            .replaces
            .is_some_and(|old| known.forgotten.contains(&old));
        if known.forgotten.contains(&turn.id) {
            imported.forgotten += 1;
            continue;
        }
        if stands_alone && known.stored.contains(&turn.id) {
            imported.duplicates += 1;
            continue;
        }
        turn.replaces = turn.replaces.filter(|_| !stands_alone);
        left.push(turn);
    }
    left
}
