//! One call, one repair, then a fault.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use memfleet_domain::ids::TenantId;
use memfleet_ports::language_model::{
    Agent, Call, LanguageModel, ModelFault, Pieces, Reply, Usage, Voice,
};
use memfleet_prompts::Asked;
use memfleet_prompts::facts::Extraction;
use tokio::time::Instant;

use crate::samples::{facts, press, tenant, turns};

/// Says one thing after the other.
#[derive(Default)]
struct Parrot {
    says: Mutex<Vec<Result<&'static str, ModelFault>>>,
    heard: Mutex<Vec<Call>>,
    discarded: Mutex<Vec<usize>>,
}

#[async_trait]
impl LanguageModel for Parrot {
    fn name(&self, _: Agent) -> Arc<str> {
        "parrot".into()
    }

    async fn complete(&self, _: &TenantId, call: &Call) -> Result<Reply, ModelFault> {
        self.heard.lock().unwrap().push(call.clone());
        let text = self.says.lock().unwrap().remove(0)?;
        Ok(Reply {
            text: text.to_owned(),
            usage: Usage {
                tokens_in: 5,
                tokens_out: 1,
                micros: 0,
            },
            cached: false,
            model: self.name(call.agent),
        })
    }

    async fn stream(&self, _: &TenantId, _: &Call) -> Result<Pieces, ModelFault> {
        Err(ModelFault::unavailable("it only repeats"))
    }

    fn discard(&self, _: &TenantId, call: &Call) {
        self.discarded.lock().unwrap().push(call.messages.len());
    }
}

async fn ask(says: &[Result<&'static str, ModelFault>]) -> (Outcome, Parrot) {
    let model = Parrot {
        says: Mutex::new(says.to_vec()),
        ..Parrot::default()
    };
    let turns = turns();
    let deadline = Instant::now() + Duration::from_secs(10);
    let asked = press()
        .ask(&model, &tenant(), &facts(&turns), deadline)
        .await;
    (asked, model)
}

type Outcome = Result<Asked<Extraction>, ModelFault>;

#[tokio::test]
async fn a_reply_that_can_be_read_is_asked_for_once() {
    let (asked, model) = ask(&[Ok("{\"facts\": []}")]).await;
    let asked = asked.unwrap();
    assert_eq!((&*asked.by, asked.repaired), ("parrot facts.v1", false));
    assert_eq!(model.heard.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_reply_that_cannot_be_read_is_repaired_once() {
    let (asked, model) = ask(&[Ok("<b>{\"facts\": 1}"), Ok("{\"facts\": []}")]).await;
    let asked = asked.unwrap();
    assert_eq!((asked.repaired, asked.usage.tokens_in), (true, 10));
    assert_eq!(*model.discarded.lock().unwrap(), [2]);
    let heard = model.heard.lock().unwrap();
    let added = &heard[1].messages[2..];
    assert_eq!(added[0].voice, Voice::Assistant);
    assert_eq!(added[0].text, "<b>{\"facts\": 1}");
    insta::assert_snapshot!("repair.v1", added[1].text);
}

#[tokio::test]
async fn a_second_reply_that_cannot_be_read_is_a_fault() {
    let (asked, model) = ask(&[Ok("I deleted everything."), Ok("{}")]).await;
    assert_eq!(asked.unwrap_err().cause(), "garbage");
    assert_eq!(*model.discarded.lock().unwrap(), [2, 4]);
}

#[tokio::test]
async fn a_fault_is_passed_on() {
    let (asked, _) = ask(&[Err(ModelFault::TimedOut)]).await;
    assert_eq!(asked.unwrap_err(), ModelFault::TimedOut);
}
