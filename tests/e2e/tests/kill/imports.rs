//! An import that was killed is sent again until it is acknowledged: then the space is what the file says, turn by turn.

use std::time::Duration;

use anyhow::{Result, ensure};
use futures::TryStreamExt;
use memfleet_domain::Scope;
use memfleet_domain::ids::{ExternalId, SessionId, Speaker, TenantId, TurnId};
use memfleet_domain::space::SpaceSettings;
use memfleet_domain::time::Timestamp;
use memfleet_domain::turn::{AcceptedTurn, Content, Metadata, Role, Trust, Turn};
use memfleet_e2e::{Node, call};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::maintenance::Maintenance;
use memfleet_ports::memory::{Memory, Record};
use memfleet_rpc::Client;

use crate::{chance, killed_during, space, stopped};

const KILLS: usize = 8;
/// More than an import takes at a time.
const TURNS: u32 = 400;

/// An export of two sessions that take turns.
fn records() -> Vec<Record> {
    let scope = Scope {
        tenant: TenantId::new("default").unwrap(),
        space: space(),
    };
    let turn = |n: u32| {
        let session = SessionId::new(format!("session-{}", n % 2)).unwrap();
        let external = ExternalId::new(n.to_string()).unwrap();
        let accepted = AcceptedTurn {
            id: TurnId::of_external(&scope, &session, &external),
            session,
            external_id: Some(external),
            speaker: Speaker::new("Ada").unwrap(),
            role: Role::User,
            content: Content {
                text: format!("Line {n} of the file"),
                media: Vec::new(),
            },
            event_time: None,
            recorded_at: Timestamp::from_timestamp(1_700_000_000 + i64::from(n), 0).unwrap(),
            metadata: Metadata::new(),
            trust: Trust::User,
            replaces: None,
            echoes: Vec::new(),
            place: None,
        };
        Record::Turn(Box::new(Turn {
            accepted,
            position: n / 2,
            replaced: None,
        }))
    };
    let settings = Record::Space(space(), SpaceSettings::default());
    std::iter::once(settings)
        .chain((0..TURNS).map(turn))
        .collect()
}

/// Imports all of it; how many turns were new and how many known.
async fn import(client: Client) -> Result<(u64, u64), memfleet_domain::Fault> {
    let records = futures::stream::iter(records().into_iter().map(Ok));
    let imported = client.import(&call(), &space(), Box::pin(records)).await?;
    Ok((imported.accepted, imported.duplicates))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_during_an_import_loses_and_doubles_nothing() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let store = directory.path().join("memory.db");
    let mut random = chance();
    let mut acknowledged = 0;
    for _ in 0..KILLS {
        let longest = Duration::from_millis(150);
        let imported = killed_during(&store, longest, &mut random, import).await?;
        acknowledged += usize::from(imported.is_some());
    }
    let node = Node::start(&store).await?;
    let (accepted, known) = import(node.client().await?).await?;
    ensure!(accepted + known == u64::from(TURNS), "{accepted} + {known}");
    println!("{acknowledged} of {KILLS} imports ended before the kill");
    // Acknowledged, and killed at once: all of it is still to come.
    node.kill()?;
    let node = Node::start(&store).await?;
    let client = node.client().await?;
    while client.status(&call()).await?.queue.turns > 0 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let exported = client
        .export(&call(), &space(), &TurnFilter::default())
        .await?;
    let exported: Vec<_> = exported.try_collect().await?;
    ensure!(exported == records(), "the space is not what was imported");
    stopped(node)
}
