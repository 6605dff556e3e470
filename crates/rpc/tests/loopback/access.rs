//! Every method of every public service with every set of rights, and with spaces that a credential does not reach. The messages are
//! made from the descriptors, so that a new method is tried without a word here.

use std::sync::Arc;

use bytes::{Buf, BufMut};
use futures::stream;
use memfleet_domain::access::{Grant, Right, SpacePattern};
use memfleet_ports::access::Caller;
use memfleet_ports::testing::{Callers, caller};
use memfleet_rpc::proto::{self, DESCRIPTORS};
use memfleet_rpc::server::Bounds;
use memfleet_runtime::server::Options;
use prost::Message;
use prost_types::field_descriptor_proto::Type;
use prost_types::{DescriptorProto, FileDescriptorSet, MethodDescriptorProto};
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_types::StatusExt;

use crate::calls::remember;
use crate::{serve, serve_with};

/// A method and a message for it that names a space, where it can.
struct Method {
    path: String,
    name: String,
    naming_space: Option<Vec<u8>>,
}

/// Every method of the public API.
fn methods(space: &str) -> Vec<Method> {
    let files = FileDescriptorSet::decode(DESCRIPTORS).unwrap().file;
    let messages: Vec<_> = files.iter().flat_map(|file| &file.message_type).collect();
    let services = files.iter().flat_map(|file| &file.service);
    let messages = &messages;
    services
        .flat_map(|service| {
            let made = move |method: &MethodDescriptorProto| Method {
                path: format!("/memfleet.v1.{}/{}", service.name(), method.name()),
                name: format!("{}.{}", service.name(), method.name()),
                naming_space: naming(messages, method, space),
            };
            service.method.iter().map(made)
        })
        .collect()
}

fn naming(
    messages: &[&DescriptorProto],
    method: &MethodDescriptorProto,
    space: &str,
) -> Option<Vec<u8>> {
    let of = method.input_type().rsplit('.').next()?;
    let message = messages.iter().find(|message| message.name() == of)?;
    let field = message.field.iter().find(|field| {
        field.r#type() == Type::String && ["space", "spaces"].contains(&field.name())
    })?;
    // A key is not about spaces: it lists what it will reach.
    if method.name() == "CreateKey" {
        return None;
    }
    let mut bytes = Vec::new();
    prost::encoding::string::encode(field.number() as u32, &space.to_owned(), &mut bytes);
    Some(bytes)
}

/// Messages as they are.
#[derive(Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = ();
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put_slice(&item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = ();
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<()>, Status> {
        buffer.advance(buffer.remaining());
        Ok(Some(()))
    }
}

/// How a call ends; a stream is read to its end.
async fn call(
    channel: &Channel,
    method: &Method,
    message: Vec<u8>,
    key: &str,
) -> Result<(), Status> {
    let mut client = tonic::client::Grpc::new(channel.clone());
    client.ready().await.unwrap();
    let mut request = Request::new(stream::iter([message]));
    let credential = format!("Bearer {key}").parse().unwrap();
    request.metadata_mut().insert("authorization", credential);
    let path = method.path.parse().unwrap();
    let mut answers = client.streaming(request, path, Raw).await?.into_inner();
    while answers.message().await?.is_some() {}
    Ok(())
}

fn reason(status: &Status) -> String {
    let info = status.get_details_error_info();
    info.map(|info| info.reason).unwrap_or_default()
}

fn allowed(rights: &[Right], spaces: &[&str]) -> Caller {
    Caller {
        grant: Grant {
            rights: rights.iter().copied().collect(),
            spaces: spaces
                .iter()
                .map(|space| SpacePattern::new(*space).unwrap())
                .collect(),
        },
        ..caller("acme")
    }
}

fn takes_admin(method: &str) -> bool {
    method.starts_with("Admin.")
        || [
            "Spaces.SetLegalHold",
            "Assembly.PutModelProfile",
            "Policies.PutPolicy",
            "Policies.PutDocument",
            "Policies.RemoveDocument",
        ]
        .contains(&method)
}

#[tokio::test]
async fn every_method_needs_exactly_one_right_and_admin_needs_every_space() {
    let one = Right::ALL.map(|right| (right.name(), allowed(&[right], &[])));
    let narrow = ("narrow", allowed(&Right::ALL, &["own"]));
    let callers = Arc::new(Callers::new(one.into_iter().chain([narrow])));
    let (_, url) = serve_with(callers.clone(), Bounds::default(), Options::default(), None).await;
    let channel = Endpoint::new(url).unwrap().connect().await.unwrap();
    let methods = methods("own");
    assert!(methods.len() >= 26);
    let mut refused_admin = 0;
    for method in &methods {
        let message = method.naming_space.clone().unwrap_or_default();
        let mut fitting = Vec::new();
        for right in Right::ALL {
            let answer = call(&channel, method, message.clone(), right.name()).await;
            match answer {
                Err(status) if status.code() == Code::PermissionDenied => {
                    let name = reason(&status);
                    assert!(name.starts_with("RIGHT_"), "{}: {name}", method.name);
                    refused_admin += usize::from(name == "RIGHT_ADMIN_MISSING");
                }
                _ => fitting.push(right),
            }
        }
        assert_eq!(fitting.len(), 1, "{}: {fitting:?}", method.name);
        let is_admin = takes_admin(&method.name);
        assert_eq!(fitting == [Right::Admin], is_admin, "{}", method.name);
        let narrow = call(&channel, method, message, "narrow").await;
        let is_denied = matches!(narrow, Err(status) if status.code() == Code::PermissionDenied);
        let takes_all = is_admin || method.name.ends_with("Subject");
        assert_eq!(is_denied, takes_all, "{}", method.name);
        refused_admin += usize::from(is_admin);
    }
    assert_eq!(callers.refusals().len(), refused_admin, "each is told of");
}

#[tokio::test]
async fn no_method_reaches_a_space_beyond_the_grant() {
    let callers = Callers::new([("narrow", allowed(&Right::ALL, &["own", "team/*"]))]);
    let (node, url) = serve(callers, Bounds::default()).await;
    let channel = Endpoint::new(url).unwrap().connect().await.unwrap();
    let mut tried = 0;
    for space in ["another", "owner", "team", "Own"] {
        for method in methods(space) {
            let Some(message) = method.naming_space.clone() else {
                continue;
            };
            let status = call(&channel, &method, message, "narrow")
                .await
                .unwrap_err();
            assert_eq!(status.code(), Code::PermissionDenied, "{}", method.name);
            // The right `admin` is for the whole tenant: this caller does not have it anywhere.
            let expected = match takes_admin(&method.name) {
                true => "RIGHT_ADMIN_MISSING",
                false => "SPACE_NOT_GRANTED",
            };
            assert_eq!(reason(&status), expected, "{}", method.name);
            tried += 1;
        }
    }
    assert!(tried >= 4 * 14, "{tried}");
    assert!(node.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_call_about_every_space_takes_a_credential_for_all_of_them() {
    let callers = Callers::new([
        ("narrow", allowed(&Right::ALL, &["own", "team/*"])),
        ("wide", allowed(&Right::ALL, &["*"])),
        ("all", allowed(&Right::ALL, &[])),
    ]);
    let (_, url) = serve(callers, Bounds::default()).await;
    let channel = Endpoint::new(url).unwrap().connect().await.unwrap();
    let request = proto::ExportSubjectRequest {
        subject: Some(proto::Subject {
            name: "Ada".into(),
            aliases: Vec::new(),
        }),
    };
    for name in ["Memory.ForgetSubject", "Memory.ExportSubject"] {
        let methods = methods("own");
        let method = methods.iter().find(|method| method.name == name).unwrap();
        let status = call(&channel, method, request.encode_to_vec(), "narrow").await;
        let status = status.unwrap_err();
        assert_eq!(reason(&status), "SPACE_NOT_GRANTED");
        assert!(status.message().contains("every space"), "{status}");
        for key in ["wide", "all"] {
            let answer = call(&channel, method, request.encode_to_vec(), key).await;
            assert!(answer.is_ok(), "{key}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn one_forbidden_space_among_others_is_enough() {
    let callers = Callers::new([("narrow", allowed(&Right::ALL, &["own"]))]);
    let (_, url) = serve(callers, Bounds::default()).await;
    let channel = Endpoint::new(url).unwrap().connect().await.unwrap();
    let request = proto::RecallRequest {
        query: "x".into(),
        spaces: vec!["own".into(), "another".into()],
        ..Default::default()
    };
    let methods = methods("own");
    let recall = methods.iter().find(|method| method.name == "Memory.Recall");
    let answer = call(&channel, recall.unwrap(), request.encode_to_vec(), "narrow").await;
    assert_eq!(reason(&answer.unwrap_err()), "SPACE_NOT_GRANTED");
}

#[tokio::test]
async fn a_stream_ends_when_its_caller_is_believed_no_more() {
    let callers = Arc::new(Callers::new([("key", caller("acme"))]));
    let (_, url) = serve_with(callers.clone(), Bounds::default(), Options::default(), None).await;
    let channel = Endpoint::new(url).unwrap().connect().await.unwrap();
    let mut client = proto::memory_client::MemoryClient::new(channel);
    let message = || proto::RememberRequest::from(remember("own"));
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    let messages = tokio_stream::wrappers::ReceiverStream::new(receiver);
    let mut request = Request::new(messages);
    let credential = "Bearer key".parse().unwrap();
    request.metadata_mut().insert("authorization", credential);
    sender.send(message()).await.unwrap();
    let mut receipts = client.remember_stream(request).await.unwrap().into_inner();
    assert!(receipts.message().await.unwrap().is_some());
    callers.ban();
    sender.send(message()).await.unwrap();
    let status = receipts.message().await.unwrap_err();
    assert_eq!(reason(&status), "CREDENTIAL_REVOKED");
}
