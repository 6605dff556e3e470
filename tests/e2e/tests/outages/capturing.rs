//! What passes between a user and a model while parts of a fleet are away: it is kept for when they are back, and the model's call goes on
//! (AMP item 122).

use std::time::{Duration, Instant};

use anyhow::Result;
use memfleet_domain::assembly::Reason;
use memfleet_domain::ids::SessionId;
use memfleet_domain::policy::Policy;
use memfleet_domain::turn::{Metadata, Role};
use memfleet_domain::{Fault, FaultKind};
use memfleet_e2e::{Fleet, Tenant, call};
use memfleet_ports::assembly::{AssembleRequest, Assembled, Assembly, Content, Message, Prompt};
use memfleet_ports::capture::{Capture, RecordTurnRequest, Recorded};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::memory::{Memory, PageRequest};
use memfleet_ports::policies::Policies;

use crate::conversation::{recall, remember, space, turns};

/// What an answer may take that waits for nobody, on a machine that is busy.
const SOON: Duration = Duration::from_secs(5);

/// A conversation, told whole each time as chat clients do.
#[derive(Default)]
struct Chat(Vec<Message>);

impl Chat {
    fn goes_on(&mut self, text: &str) -> RecordTurnRequest {
        self.0.push(Message {
            role: Role::User,
            content: Content::Text(text.to_owned()),
        });
        RecordTurnRequest {
            space: space("noor"),
            session: Some(session()),
            exchange: None,
            prompt: Prompt::Messages(self.0.clone()),
            answer: Vec::new(),
            partial: false,
            model: String::new(),
            assistant: None,
            user: None,
            event_time: None,
            metadata: Metadata::new(),
            include_system: false,
        }
    }
}

fn session() -> SessionId {
    SessionId::new("chat").unwrap()
}

async fn record(tenant: &Tenant, request: RecordTurnRequest) -> Result<Recorded, Fault> {
    tenant.client.record_turn(&call(), request).await
}

/// What a prompt gets, and in which time.
async fn assembled(tenant: &Tenant) -> Result<(Assembled, Duration)> {
    let query = recall(
        "noor",
        "What is Biscuit afraid of?",
        TurnFilter::default(),
        &[],
    )
    .query;
    let begun = Instant::now();
    let mut request = AssembleRequest::new(query);
    request.policy.gating.relevance = Some(0.0);
    let answer = tenant.client.assemble(&call(), request).await?;
    Ok((answer, begun.elapsed()))
}

async fn kept(tenant: &Tenant, recorded: &Recorded) -> Result<Vec<String>> {
    let filter = TurnFilter {
        sessions: vec![session()],
        ..TurnFilter::default()
    };
    let page = PageRequest {
        limit: 100,
        after: None,
    };
    let tokens: Vec<_> = recorded.token.into_iter().collect();
    let (call, space) = (call(), space("noor"));
    let listed = tenant.client.list(&call, &space, &filter, page, &tokens);
    let turns = listed.await?.items.into_iter();
    Ok(turns.map(|turn| turn.accepted.content.text).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn amp_122_what_is_captured_while_parts_are_away_is_there_when_they_are_back() -> Result<()> {
    let mut fleet = tokio::task::spawn_blocking(Fleet::start).await??;
    let tenant = Tenant::connect(&fleet.url(), 0).await?;
    let stranger = Tenant::connect(&fleet.url(), 1).await?;
    let mut policy = Policy::default();
    policy.format.redactions = Some(vec!["sk-[a-z]+".to_owned()]);
    tenant
        .client
        .put_policy(&call(), None, policy, None)
        .await?;
    remember(&tenant.client, "noor", turns()).await?;
    let mut chat = Chat::default();
    let first = record(&tenant, chat.goes_on("Before anything was away.")).await?;
    assert_eq!(kept(&tenant, &first).await?.len(), 1);

    fleet.role("embedder").kill()?;
    let second = record(&tenant, chat.goes_on("While the embedder was away.")).await?;
    assert_eq!(kept(&tenant, &second).await?.len(), 2);
    let (answer, took) = assembled(&tenant).await?;
    assert!(took < SOON, "{took:?}: {answer:?}");
    fleet.role("embedder").restart()?;

    fleet.postgres.kill()?;
    let mut last = None;
    for text in ["My key is sk-hidden.", "While the store was away."] {
        let begun = Instant::now();
        last = Some(record(&tenant, chat.goes_on(text)).await?);
        assert!(begun.elapsed() < 2 * SOON, "{:?}", begun.elapsed());
    }
    for _ in 0..3 {
        let (answer, took) = assembled(&tenant).await?;
        assert_eq!(answer.reason, Some(Reason::RetrievalUnavailable));
        assert!(took < SOON, "{took:?}: {answer:?}");
    }
    // The ids of a space that this gateway has not captured in are not known to it: by others,
    // what is there would be stored twice, and what was forgotten would come back.
    let untouched = RecordTurnRequest {
        space: space("elsewhere"),
        ..Chat::default().goes_on("Under which id?")
    };
    let refused = record(&tenant, untouched).await;
    assert_eq!(refused.unwrap_err().kind, FaultKind::Unavailable);
    // Whose settings this gateway never saw may redact what it would let through.
    let refused = record(&stranger, Chat::default().goes_on("Who knows?")).await;
    assert_eq!(refused.unwrap_err().kind, FaultKind::Unavailable);
    fleet.postgres.restart()?;

    let last = last.unwrap();
    assert!(last.token.is_some());
    let expected = [
        "Before anything was away.",
        "While the embedder was away.",
        "My key is [redacted].",
        "While the store was away.",
    ];
    assert_eq!(kept(&tenant, &last).await?, expected);
    Ok(())
}
