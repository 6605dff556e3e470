//! A server under test, by its address and a credential.

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use memfleet_rpc::Client;
use memfleet_rpc::proto::assembly_client::AssemblyClient;
use memfleet_rpc::proto::memory_client::MemoryClient;
use memfleet_rpc::proto::{self, DESCRIPTORS};
use prost_reflect::prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, SerializeOptions};
use serde_json::{Map, Value, json};
use tonic::transport::Channel;
use tonic::{Code, Request, Status};
use tonic_types::StatusExt as _;

use crate::case::{Call, Step};

/// A server.
pub struct Server {
    channel: Channel,
    credential: Option<String>,
    messages: DescriptorPool,
}

impl Server {
    /// Connects to `url`, with a key where the server wants one, believing the authority in `authority` instead of those of the system.
    pub async fn connect(
        url: &str,
        api_key: Option<&str>,
        authority: Option<PathBuf>,
    ) -> Result<Self> {
        let client = Client::connect_believing(url, api_key, authority).await?;
        Ok(Self {
            channel: client.channel(),
            credential: api_key.map(|key| format!("Bearer {key}")),
            messages: DescriptorPool::decode(DESCRIPTORS)?,
        })
    }

    /// Remembers what a step has and makes its call: the answer as JSON, every field in it; a refusal as `{"error": …}`. `tokens` are those of
    /// what was remembered so far.
    pub async fn ask(&self, space: &str, step: &Step, tokens: &mut Vec<String>) -> Result<Value> {
        let mut request = step.request.clone();
        if !step.remember.is_empty() {
            tokens.push(self.remember(space, &step.remember).await?);
        }
        if step.call == Call::Assemble && !tokens.is_empty() {
            request.insert("wait_for".to_owned(), json!(tokens));
        }
        if step.call != Call::Render && !request.contains_key("spaces") {
            request.insert("spaces".to_owned(), json!([space]));
        }
        body_as_bytes(&mut request)?;
        let asked = match step.call {
            Call::Assemble => self.assemble(request).await,
            Call::Render => self.render(request).await,
            Call::Gate => self.gate(request).await,
        };
        match asked? {
            Ok(mut answer) => {
                bytes_as_text(&mut answer)?;
                Ok(answer)
            }
            Err(status) => Ok(refusal(&status)),
        }
    }

    async fn remember(&self, space: &str, turns: &[Value]) -> Result<String> {
        let request = json!({"space": space, "turns": turns});
        let request: proto::RememberRequest = self.message("RememberRequest", request)?;
        let mut client = MemoryClient::new(self.channel.clone());
        let receipt = client.remember(self.call(request)?).await?;
        Ok(receipt.into_inner().token)
    }

    /// Forgets a space as a whole; one that does not exist is nothing to forget.
    pub async fn forget(&self, space: &str) -> Result<()> {
        let request = proto::ForgetRequest {
            space: space.to_owned(),
            everything: true,
            ..proto::ForgetRequest::default()
        };
        let mut client = MemoryClient::new(self.channel.clone());
        match client.forget(self.call(request)?).await {
            Err(status) if status.code() != Code::NotFound => Err(status.into()),
            _ => Ok(()),
        }
    }

    async fn assemble(&self, request: Map<String, Value>) -> Result<Result<Value, Status>> {
        let request: proto::AssembleRequest = self.message("AssembleRequest", request.into())?;
        let answer = self.assembly().assemble(self.call(request)?).await;
        self.json("AssembleResponse", answer)
    }

    async fn render(&self, request: Map<String, Value>) -> Result<Result<Value, Status>> {
        let request: proto::RenderRequest = self.message("RenderRequest", request.into())?;
        let answer = self.assembly().render(self.call(request)?).await;
        self.json("AssembleResponse", answer)
    }

    async fn gate(&self, request: Map<String, Value>) -> Result<Result<Value, Status>> {
        let request: proto::GateRequest = self.message("GateRequest", request.into())?;
        let answer = self.assembly().gate(self.call(request)?).await;
        self.json("GateResponse", answer)
    }

    fn assembly(&self) -> AssemblyClient<Channel> {
        AssemblyClient::new(self.channel.clone())
    }

    fn call<M>(&self, message: M) -> Result<Request<M>> {
        let mut request = Request::new(message);
        if let Some(credential) = &self.credential {
            let value = credential.parse().context("the key is not ASCII")?;
            request.metadata_mut().insert("authorization", value);
        }
        Ok(request)
    }

    /// A message from its JSON; a field that it does not have is an error.
    fn message<M: Message + Default>(&self, name: &str, json: Value) -> Result<M> {
        let message = DynamicMessage::deserialize(self.descriptor(name)?, json);
        let message = message.with_context(|| format!("{name} in JSON"))?;
        Ok(message.transcode_to()?)
    }

    /// The JSON of an answer, in the field names of the protos.
    fn json<M: Message>(
        &self,
        name: &str,
        answer: Result<tonic::Response<M>, Status>,
    ) -> Result<Result<Value, Status>> {
        let answer = match answer {
            Ok(answer) => answer.into_inner(),
            Err(status) => return Ok(Err(status)),
        };
        let mut message = DynamicMessage::new(self.descriptor(name)?);
        message.transcode_from(&answer)?;
        let options = SerializeOptions::new()
            .use_proto_field_name(true)
            .skip_default_fields(false);
        let json = message.serialize_with_options(serde_json::value::Serializer, &options)?;
        Ok(Ok(json))
    }

    fn descriptor(&self, name: &str) -> Result<prost_reflect::MessageDescriptor> {
        let name = format!("memfleet.v1.{name}");
        let descriptor = self.messages.get_message_by_name(&name);
        descriptor.ok_or_else(|| anyhow!("there is no message {name}"))
    }
}

/// A case has the body of a provider's request as text, JSON has bytes in base64.
fn body_as_bytes(request: &mut Map<String, Value>) -> Result<()> {
    let Some(provider) = request.get_mut("provider_request") else {
        return Ok(());
    };
    let body = provider["body"].as_str().context("a body is text")?;
    provider["body"] = STANDARD.encode(body).into();
    Ok(())
}

fn bytes_as_text(answer: &mut Value) -> Result<()> {
    if let Some(patched) = answer.get_mut("patched_request") {
        let bytes = STANDARD.decode(patched.as_str().unwrap_or_default())?;
        *patched = String::from_utf8(bytes)?.into();
    }
    Ok(())
}

/// A refusal, with the field that it names.
fn refusal(status: &Status) -> Value {
    let details = status.get_error_details();
    let violations = details.bad_request().map(|it| &it.field_violations);
    let field = violations
        .and_then(|violations| violations.first())
        .map(|violation| violation.field.as_str());
    let code = match status.code() {
        Code::InvalidArgument => "INVALID_ARGUMENT".to_owned(),
        Code::NotFound => "NOT_FOUND".to_owned(),
        other => format!("{other:?}"),
    };
    json!({"error": {"code": code, "field": field, "message": status.message()}})
}
