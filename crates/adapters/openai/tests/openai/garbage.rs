//! Thousands of replies of no use: each ends as a fault or as something checked, in time, and nothing is made up.

use std::collections::BTreeMap;
use std::time::Duration;

use memfleet_domain::fact::{Claim, Clause};
use memfleet_domain::ids::{ExternalId, SessionId, SpaceId, TurnId};
use memfleet_domain::{Scope, Timestamp};
use memfleet_openai::testing::garbage;
use memfleet_prompts::Press;
use memfleet_prompts::facts::{Checks, Facts};
use memfleet_prompts::handles::Turn;
use tokio::time::Instant;

use crate::setup::{Model, options, tenant};

fn turn(name: &str, text: &str) -> Turn {
    let scope = Scope {
        tenant: tenant(),
        space: SpaceId::new("ada").unwrap(),
    };
    let session = SessionId::new("s").unwrap();
    let external = ExternalId::new(name).unwrap();
    Turn {
        id: TurnId::of_external(&scope, &session, &external),
        said_at: Timestamp::UNIX_EPOCH,
        speaker: "Ada".to_owned(),
        text: text.to_owned(),
    }
}

fn claim(clause: &Clause) -> Claim {
    Claim {
        subject: clause.subject.clone(),
        attribute: clause.predicate.clone(),
        value: clause.complement.clone().unwrap_or_default(),
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_comes_of_garbage() {
    let turns = [turn("1", "Hi!"), turn("2", "I moved to Lisbon.")];
    let checks = Checks {
        claim: &claim,
        is_supported: &|_, _, _| true,
        as_told: &|draft, _| (draft, 0),
    };
    let prompt = Facts {
        turns: &turns,
        earlier: 0,
        known: &[],
        checks,
    };
    let mut options = options();
    (options.breaker.failures, options.cache) = (u32::MAX, 0);
    let model = Model::new(options, |index, _| garbage(index as u64));
    let press = Press::new([7; 32]);
    let mut outcomes = BTreeMap::<&str, u32>::new();
    for _ in 0..3000 {
        let begun = Instant::now();
        let deadline = begun + Duration::from_secs(20);
        let asked = press.ask(&model.model, &tenant(), &prompt, deadline).await;
        assert!(begun.elapsed() <= Duration::from_secs(20));
        let outcome = match asked {
            Ok(asked) => {
                assert_eq!(asked.meant.drafts, []);
                "dropped"
            }
            Err(fault) => {
                assert_ne!(fault.cause(), "over_budget");
                fault.cause()
            }
        };
        *outcomes.entry(outcome).or_default() += 1;
    }
    let causes: Vec<_> = outcomes.keys().copied().collect();
    assert_eq!(
        causes,
        ["dropped", "garbage", "refused", "timed_out", "unavailable"],
        "{outcomes:?}"
    );
}
