//! Tenants that write and read all the while, each looking for what it must find and for what it must never see.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use memfleet_domain::ids::{SpaceId, TurnId};
use memfleet_domain::{Fault, FaultKind};
use memfleet_e2e::{Acknowledged, Journal, Tenant, call};
use memfleet_ports::context::Context;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::memory::{Memory, RecallRequest};
use memfleet_ports::retriever::Query;
use memfleet_rpc::Client;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Between two writes of one tenant: the fleet is to be hurt, not flooded, and a read waits for the write before it.
const WRITES: Duration = Duration::from_millis(100);

/// Between two rounds of reads.
const READS: Duration = Duration::from_millis(20);

/// How long a caller waits for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The space that every tenant has under this name.
pub fn space() -> SpaceId {
    SpaceId::new("chaos").unwrap()
}

/// A search among some turns, or all.
pub fn among(turns: &[TurnId], wait_for: &[&Acknowledged], k: u32) -> RecallRequest {
    let query = Query {
        text: "writer request turn".to_owned(),
        spaces: vec![space()],
        filter: TurnFilter {
            turns: turns.to_vec(),
            // What was just written may be replaced by the next write.
            include_replaced: !turns.is_empty(),
            ..TurnFilter::default()
        },
        k,
        neighbours: 0,
        now: None,
        session: None,
        intent: None,
        explain: false,
        quality: None,
        vectors: None,
    };
    RecallRequest {
        wait_for: wait_for.iter().map(|sent| sent.batch).collect(),
        ..RecallRequest::from(query)
    }
}

/// The tenants at work.
pub struct Traffic {
    writers: Vec<JoinHandle<Result<(Journal, Counts)>>>,
    readers: Vec<JoinHandle<Result<Counts>>>,
    tenants: Vec<Arc<Tenant>>,
    failed: watch::Receiver<bool>,
}

/// Tenants, what they were told, and how calls went.
pub struct Seen {
    /// Each tenant with its journal.
    pub tenants: Vec<(Arc<Tenant>, Journal)>,
    writes: Counts,
    reads: Counts,
}

/// How calls went.
#[derive(Debug, Default)]
struct Counts {
    answered: usize,
    /// By reason.
    refused: BTreeMap<String, usize>,
}

impl Traffic {
    /// Each tenant writes once before anything is harmed, so that others have something to look for.
    pub async fn begin(url: &str, tenants: usize, stopped: &watch::Receiver<bool>) -> Result<Self> {
        let mut all = Vec::with_capacity(tenants);
        for number in 0..tenants {
            let tenant = Arc::new(Tenant::connect(url, number).await?);
            let mut journal = Journal::new(&space(), name(number));
            journal.send(&tenant.client, &call()).await?;
            all.push((tenant, journal));
        }
        let (mut writers, mut readers) = (Vec::new(), Vec::new());
        let (fail, failed) = watch::channel(false);
        for (number, (tenant, journal)) in all.iter().enumerate() {
            let foreign = all[(number + 1) % tenants].1.acknowledged()[0].clone();
            let (tell, told) = watch::channel(journal.acknowledged()[0].clone());
            let writer = write(tenant.clone(), journal.clone(), tell, stopped.clone());
            writers.push(tokio::spawn(noted(writer, fail.clone())));
            let reader = Reader {
                name: name(number),
                tenant: tenant.clone(),
                foreign,
                told,
            };
            let reader = reader.read(stopped.clone());
            readers.push(tokio::spawn(noted(reader, fail.clone())));
        }
        Ok(Self {
            writers,
            readers,
            tenants: all.into_iter().map(|(tenant, _)| tenant).collect(),
            failed,
        })
    }

    /// True from the moment at which a tenant saw a defect.
    pub fn failed(&self) -> watch::Receiver<bool> {
        self.failed.clone()
    }

    /// What they saw.
    pub async fn end(self) -> Result<Seen> {
        let mut seen = Seen {
            tenants: Vec::new(),
            writes: Counts::default(),
            reads: Counts::default(),
        };
        for (tenant, writer) in self.tenants.into_iter().zip(self.writers) {
            let (journal, counts) = writer.await??;
            seen.tenants.push((tenant, journal));
            seen.writes.add(counts);
        }
        for reader in self.readers {
            seen.reads.add(reader.await??);
        }
        Ok(seen)
    }
}

/// Outcome of a tenant's work; a defect is told at once.
async fn noted<T>(work: impl Future<Output = Result<T>>, fail: watch::Sender<bool>) -> Result<T> {
    let outcome = work.await;
    if outcome.is_err() {
        fail.send_replace(true);
    }
    outcome
}

/// Tells the tenants' texts apart.
fn name(number: usize) -> String {
    format!("of-tenant-{number}")
}

fn brief() -> Context {
    Context::new(call().tenant, PATIENCE)
}

async fn write(
    tenant: Arc<Tenant>,
    mut journal: Journal,
    tell: watch::Sender<Acknowledged>,
    stopped: watch::Receiver<bool>,
) -> Result<(Journal, Counts)> {
    let mut counts = Counts::default();
    while !*stopped.borrow() {
        if counts
            .took(journal.send(&tenant.client, &brief()).await)?
            .is_some()
        {
            let last = journal.acknowledged().last();
            tell.send_replace(last.expect("it was answered").clone());
        }
        tokio::time::sleep(WRITES).await;
    }
    Ok((journal, counts))
}

/// Reads what its tenant wrote last, and looks for what is another's.
struct Reader {
    name: String,
    tenant: Arc<Tenant>,
    foreign: Acknowledged,
    told: watch::Receiver<Acknowledged>,
}

impl Reader {
    async fn read(self, stopped: watch::Receiver<bool>) -> Result<Counts> {
        let mut counts = Counts::default();
        while !*stopped.borrow() {
            let last = self.told.borrow().clone();
            self.own(&last, &mut counts).await?;
            self.others(&mut counts).await?;
            tokio::time::sleep(READS).await;
        }
        Ok(counts)
    }

    /// What was acknowledged is there for the read that waits for it.
    async fn own(&self, last: &Acknowledged, counts: &mut Counts) -> Result<()> {
        let asked = among(&last.turns, &[last], 10);
        let answer = self.client().recall(&brief(), asked).await;
        if let Some(found) = counts.took(answer)? {
            ensure!(
                found.hits.len() == last.turns.len(),
                "a read that waited for {} found {} of {} turns",
                last.batch,
                found.hits.len(),
                last.turns.len()
            );
        }
        Ok(())
    }

    /// Neither a search of everything nor a guessed id shows another tenant's turns.
    async fn others(&self, counts: &mut Counts) -> Result<()> {
        let answer = self.client().recall(&brief(), among(&[], &[], 50)).await;
        for hit in counts
            .took(answer)?
            .into_iter()
            .flat_map(|found| found.hits)
        {
            let text = hit.turn.accepted.content.text;
            ensure!(text.contains(&self.name), "{} was shown: {text}", self.name);
        }
        let turns = &self.foreign.turns;
        let answer = self.client().recall(&brief(), among(turns, &[], 50)).await;
        let found = counts
            .took(answer)?
            .is_none_or(|found| found.hits.is_empty());
        ensure!(
            found,
            "a search by guessed ids showed another tenant's turns"
        );
        let answer = self.client().get(&brief(), &space(), turns, &[]).await;
        let got = counts.took(answer)?.is_none_or(|turns| turns.is_empty());
        ensure!(got, "guessed ids gave another tenant's turns");
        Ok(())
    }

    fn client(&self) -> &Client {
        &self.tenant.client
    }
}

impl Counts {
    /// An answer, or `None` where a caller is told to come again. Anything else is a defect.
    fn took<T>(&mut self, answer: Result<T, Fault>) -> Result<Option<T>> {
        match answer {
            Ok(answer) => {
                self.answered += 1;
                Ok(Some(answer))
            }
            Err(fault) if is_for_now(&fault) => {
                let times = self.refused.entry(fault.reason.into_owned());
                *times.or_default() += 1;
                Ok(None)
            }
            Err(fault) => anyhow::bail!("{:?} {}: {fault}", fault.kind, fault.reason),
        }
    }

    fn add(&mut self, other: Self) {
        self.answered += other.answered;
        for (reason, times) in other.refused {
            *self.refused.entry(reason).or_default() += times;
        }
    }
}

fn is_for_now(fault: &Fault) -> bool {
    matches!(
        fault.kind,
        FaultKind::Unavailable | FaultKind::DeadlineExceeded | FaultKind::ResourceExhausted
    )
}

impl fmt::Display for Seen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { writes, reads, .. } = self;
        write!(
            formatter,
            "writes: {} acknowledged, to be sent again {:?}; reads: {} answered, refused for the moment {:?}",
            writes.answered, writes.refused, reads.answered, reads.refused
        )
    }
}
