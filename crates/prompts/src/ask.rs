//! Asking a model and checking what it says: one call, one repair where the reply cannot be read, then the caller has its rule.

use std::sync::Arc;
use std::time::Duration;

use memfleet_domain::Fault;
use memfleet_domain::ids::TenantId;
use memfleet_ports::language_model::{
    Agent, Call, LanguageModel, Message, ModelFault, PromptId, Usage, Voice,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::press::{Press, Template};
use crate::reading::{self, Misread};
use crate::schema;

/// How much of an unreadable reply is shown to the model again, in characters.
const SHOWN: usize = 4000;

/// Longest time of one question that nobody waits for, with repair and retries.
const PATIENCE: Duration = Duration::from_mins(2);

/// A prompt whose reply is JSON.
pub trait Prompt: Template {
    /// Who asks.
    const AGENT: Agent;
    /// The reply as it stands.
    type Said: DeserializeOwned + JsonSchema + Send;
    /// What it means, in terms of what was shown.
    type Meant;

    /// Takes of a reply what holds; refuses it where nothing of it does.
    fn check(&self, said: Self::Said) -> Result<Self::Meant, Misread>;
}

/// What a model meant.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked<T> {
    /// What came of the reply.
    pub meant: T,
    /// Model and version of the prompt, as the extractor of what is kept.
    pub by: String,
    /// What it cost, with the repair.
    pub usage: Usage,
    /// Whether the first reply could not be read.
    pub repaired: bool,
}

/// A language model behind the rules of an agent.
#[derive(Clone)]
pub struct Adviser {
    /// The model.
    pub model: Arc<dyn LanguageModel>,
    /// Prints what it is asked.
    pub press: Arc<Press>,
}

impl Adviser {
    /// What the model means; nothing where what it says is of no use, which is counted. While it cannot be asked at all it is a fault: the
    /// same question is worth another try later.
    pub async fn ask<P: Prompt + Sync>(
        &self,
        tenant: &TenantId,
        prompt: &P,
    ) -> Result<Option<Asked<P::Meant>>, Fault> {
        let deadline = Instant::now() + PATIENCE;
        match self.ask_by(tenant, prompt, deadline).await {
            Ok(asked) => Ok(Some(asked)),
            Err(fault) if fault.may_pass() => Err(fault.into()),
            Err(_) => Ok(None),
        }
    }

    /// What the model means, for somebody who waits until an instant. A reply of no use is counted.
    pub async fn ask_by<P: Prompt + Sync>(
        &self,
        tenant: &TenantId,
        prompt: &P,
        deadline: Instant,
    ) -> Result<Asked<P::Meant>, ModelFault> {
        let asked = self.press.ask(&*self.model, tenant, prompt, deadline).await;
        if let Err(fault) = &asked
            && !fault.may_pass()
        {
            let (agent, cause) = (P::AGENT.as_str(), fault.cause());
            metrics::counter!("memfleet_model_useless_total", "agent" => agent, "cause" => cause)
                .increment(1);
            tracing::debug!(agent, cause, "the rules stand in the model's place");
        }
        asked
    }
}

/// The question after a reply that could not be read.
#[derive(Serialize)]
struct Repair<'a> {
    why: &'a str,
}

impl Template for Repair<'_> {
    const ID: PromptId = PromptId {
        name: "repair",
        version: 1,
    };
    const SOURCE: &'static str = include_str!("../data/repair.v1.j2");
}

impl Press {
    /// The call of a prompt.
    pub fn call<P: Prompt>(&self, prompt: &P, deadline: Instant) -> Call {
        Call {
            agent: P::AGENT,
            prompt: P::ID,
            messages: self.print(prompt),
            schema: Some(schema::of::<P::Said>()),
            deadline,
        }
    }

    /// Asks, and asks once more where the reply cannot be read. A reply that is of no use is not given to an equal call again.
    pub async fn ask<P: Prompt + Sync>(
        &self,
        model: &dyn LanguageModel,
        tenant: &TenantId,
        prompt: &P,
        deadline: Instant,
    ) -> Result<Asked<P::Meant>, ModelFault> {
        let mut call = self.call(prompt, deadline);
        let (mut usage, mut repaired) = (Usage::default(), false);
        loop {
            let reply = model.complete(tenant, &call).await?;
            usage = usage.plus(reply.usage);
            let said = reading::json::<P::Said>(&reply.text);
            match said.and_then(|said| prompt.check(said)) {
                Ok(meant) => {
                    return Ok(Asked {
                        meant,
                        by: format!("{} {}", reply.model, P::ID),
                        usage,
                        repaired,
                    });
                }
                Err(why) => {
                    model.discard(tenant, &call);
                    if repaired {
                        return Err(ModelFault::Garbage("it could not be read twice".into()));
                    }
                    call.messages.extend(self.repair(&reply.text, &why));
                    repaired = true;
                }
            }
        }
    }

    fn repair(&self, reply: &str, why: &Misread) -> [Message; 2] {
        let shown = Message {
            voice: Voice::Assistant,
            text: reply.chars().take(SHOWN).collect(),
        };
        let why: String = why.0.chars().take(SHOWN).collect();
        [shown, self.add(&Repair { why: &why })]
    }
}
