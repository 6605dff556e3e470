//! An endpoint with a script, and calls to it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use memfleet_domain::ids::TenantId;
use memfleet_domain::time::FixedClock;
use memfleet_openai::testing::{Scripted, endpoint};
use memfleet_openai::{MemoryLedger, OpenAi, Options};
use memfleet_ports::language_model::{
    Agent, Call, LanguageModel, Message, ModelFault, PromptId, Reply, Voice,
};
use serde_json::Value;
use tokio::time::Instant;

pub fn tenant() -> TenantId {
    TenantId::new("acme").unwrap()
}

pub fn clock() -> FixedClock {
    FixedClock("2026-01-01T12:00:00Z".parse().unwrap())
}

pub fn options() -> Options {
    Options::new("http://model.test/v1", "small")
}

/// A call that may take ten seconds.
pub fn call(text: &str) -> Call {
    Call {
        agent: Agent::Judge,
        prompt: PromptId {
            name: "test",
            version: 1,
        },
        messages: vec![Message {
            voice: Voice::User,
            text: text.to_owned(),
        }],
        schema: Some("{\"type\":\"object\"}".into()),
        deadline: Instant::now() + Duration::from_secs(10),
    }
}

/// A model that answers by a script, and what it was sent.
pub struct Model {
    pub model: OpenAi,
    pub ledger: Arc<MemoryLedger>,
    sent: Arc<Mutex<Vec<Value>>>,
}

impl Model {
    pub fn new(
        options: Options,
        script: impl Fn(usize, &Value) -> Scripted + Send + Sync + 'static,
    ) -> Self {
        let sent = Arc::new(Mutex::new(Vec::new()));
        let heard = sent.clone();
        let exchange = endpoint(move |index, body| {
            heard.lock().unwrap().push(body.clone());
            script(index, body)
        });
        let ledger = Arc::new(MemoryLedger::default());
        let model = OpenAi::over(exchange, options, ledger.clone(), Arc::new(clock()));
        Self {
            model: model.unwrap(),
            ledger,
            sent,
        }
    }

    /// One that plays these, then the last again and again.
    pub fn playing(options: Options, script: &[Scripted]) -> Self {
        let script = script.to_vec();
        Self::new(options, move |index, _| {
            script[index.min(script.len() - 1)].clone()
        })
    }

    pub fn sent(&self) -> Vec<Value> {
        self.sent.lock().unwrap().clone()
    }

    pub async fn ask(&self, text: &str) -> Result<Reply, ModelFault> {
        self.model.complete(&tenant(), &call(text)).await
    }
}

pub fn says(text: &str) -> Scripted {
    Scripted::Says(text.to_owned())
}

pub fn status(code: u16) -> Scripted {
    Scripted::Status(code, String::new(), None)
}
