//! The service Memory.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use memfleet_domain::Fault;
use memfleet_ports::context::Context;
use memfleet_ports::memory::{Answers, Memory, Record};
use tonic::{Request, Response, Status, Streaming};

use super::access::Admitted;
use super::calls::{Calls, Outbound, at_message};
use crate::convert::{ImportMessage, accept};
use crate::proto::{self, memory_server};
use crate::status;

pub(super) struct Service {
    pub memory: Arc<dyn Memory>,
    pub calls: Calls,
}

#[tonic::async_trait]
impl memory_server::Memory for Service {
    async fn remember(
        &self,
        request: Request<proto::RememberRequest>,
    ) -> Result<Response<proto::RememberResponse>, Status> {
        let (context, request) = self.calls.open(request)?;
        self.calls.answer(
            context
                .within("the receipt", self.memory.remember(&context, request))
                .await,
        )
    }

    type RememberStreamStream = Outbound<proto::RememberResponse>;

    /// One request at a time: the order inside a session is the order of acceptance.
    async fn remember_stream(
        &self,
        request: Request<Streaming<proto::RememberRequest>>,
    ) -> Result<Response<Self::RememberStreamStream>, Status> {
        let (writer, context) = self
            .calls
            .stream_of::<proto::RememberRequest, _>(&request)?;
        let writer = Writer {
            writer,
            context,
            memory: self.memory.clone(),
            calls: self.calls,
            requests: request.into_inner(),
            index: 0,
        };
        let receipts = futures::stream::try_unfold(writer, async |mut writer| {
            let request = writer.requests.message().await;
            let Some(request) = request.map_err(|status| writer.calls.broken(status))? else {
                return Ok(None);
            };
            let receipt = writer.remember(request).await;
            let receipt =
                receipt.map_err(|fault| status::from_fault(&at_message(fault, writer.index)))?;
            writer.index += 1;
            Ok(Some((receipt, writer)))
        });
        Ok(Response::new(Box::pin(receipts)))
    }

    async fn recall(
        &self,
        request: Request<proto::RecallRequest>,
    ) -> Result<Response<proto::RecallResponse>, Status> {
        let (context, request) = self.calls.open(request)?;
        let found = self.memory.recall(&context, request);
        self.calls.answer_within(
            context.within("the search", found).await,
            ("k", "ask for fewer hits, or fewer `neighbours`"),
        )
    }

    type AnswerStream = Outbound<proto::AnswerResponse>;

    async fn answer(
        &self,
        request: Request<proto::AnswerRequest>,
    ) -> Result<Response<Self::AnswerStream>, Status> {
        let (reader, context, request) = self.calls.open_stream(request)?;
        let answer = self.memory.answer(&context, request);
        self.calls
            .stream(reader, context.within("the answer", answer).await)
    }

    async fn get(
        &self,
        request: Request<proto::GetRequest>,
    ) -> Result<Response<proto::GetResponse>, Status> {
        let (context, (space, ids, wait_for)) = self.calls.open(request)?;
        let turns = self.memory.get(&context, &space, &ids, &wait_for);
        self.calls.answer_within(
            context.within("the turns", turns).await,
            ("turn_ids", "ask for fewer at a time"),
        )
    }

    async fn list(
        &self,
        request: Request<proto::ListRequest>,
    ) -> Result<Response<proto::ListResponse>, Status> {
        let (context, (space, filter, page, wait_for)) = self.calls.open(request)?;
        let read = |page| {
            let turns = self.memory.list(&context, &space, &filter, page, &wait_for);
            context.within("the turns", turns)
        };
        self.calls.answer_page(page, read).await
    }

    async fn history(
        &self,
        request: Request<proto::HistoryRequest>,
    ) -> Result<Response<proto::HistoryResponse>, Status> {
        let (context, (space, turn)) = self.calls.open(request)?;
        self.calls.answer(
            context
                .within("the history", self.memory.history(&context, &space, turn))
                .await,
        )
    }

    async fn forget(
        &self,
        request: Request<proto::ForgetRequest>,
    ) -> Result<Response<proto::ForgetResponse>, Status> {
        let (context, request) = self.calls.open(request)?;
        let receipt = self.memory.forget(&context, request);
        self.calls
            .answer_forget(context.within("the forgetting", receipt).await)
    }

    type ForgetSubjectStream = Outbound<proto::ForgetSubjectResponse>;

    async fn forget_subject(
        &self,
        request: Request<proto::ForgetSubjectRequest>,
    ) -> Result<Response<Self::ForgetSubjectStream>, Status> {
        let (writer, context, request) = self.calls.open_stream(request)?;
        let forgets = self.memory.forget_subject(&context, request);
        self.calls
            .stream_of_forgets(writer, context.within("the forgetting", forgets).await)
    }

    type WatchIngestionStream = Outbound<proto::WatchIngestionResponse>;

    async fn watch_ingestion(
        &self,
        request: Request<proto::WatchIngestionRequest>,
    ) -> Result<Response<Self::WatchIngestionStream>, Status> {
        let (reader, context, (space, batch)) = self.calls.open_stream(request)?;
        self.calls.stream(
            reader,
            context
                .within("the states", self.memory.watch(&context, &space, batch))
                .await,
        )
    }

    type ExportStream = Outbound<proto::ExportResponse>;

    async fn export(
        &self,
        request: Request<proto::ExportRequest>,
    ) -> Result<Response<Self::ExportStream>, Status> {
        let (reader, context, (space, filter)) = self.calls.open_stream(request)?;
        self.calls.stream(
            reader,
            context
                .within("the records", self.memory.export(&context, &space, &filter))
                .await,
        )
    }

    type ExportSubjectStream = Outbound<proto::ExportSubjectResponse>;

    async fn export_subject(
        &self,
        request: Request<proto::ExportSubjectRequest>,
    ) -> Result<Response<Self::ExportSubjectStream>, Status> {
        let (reader, context, subject) = self.calls.open_stream(request)?;
        let records = self.memory.export_subject(&context, &subject);
        self.calls
            .stream(reader, context.within("the records", records).await)
    }

    async fn import(
        &self,
        request: Request<Streaming<proto::ImportRequest>>,
    ) -> Result<Response<proto::ImportResponse>, Status> {
        let (writer, context) = self.calls.stream_of::<proto::ImportRequest, _>(&request)?;
        let mut messages = request.into_inner();
        let first = messages.message().await;
        let Some(first) = first.map_err(|status| self.calls.broken(status))? else {
            return Err(status::from_fault(&unnamed_space()));
        };
        let permitted = writer.permit(&context, &first);
        permitted.map_err(|fault| status::from_fault(&at_message(fault, 0)))?;
        let space =
            match accept(first).map_err(|fault| status::from_fault(&at_message(fault, 0)))? {
                ImportMessage::Space(space) => space,
                ImportMessage::Record(_) => {
                    return Err(status::from_fault(&at_message(unnamed_space(), 0)));
                }
            };
        self.calls.answer(
            context
                .within(
                    "the import",
                    self.memory
                        .import(&context, &space, records(messages, self.calls, writer)),
                )
                .await,
        )
    }
}

/// The state of a `RememberStream`.
struct Writer {
    writer: Admitted,
    context: Context,
    memory: Arc<dyn Memory>,
    calls: Calls,
    requests: Streaming<proto::RememberRequest>,
    index: u64,
}

impl Writer {
    async fn remember(
        &self,
        request: proto::RememberRequest,
    ) -> Result<proto::RememberResponse, Fault> {
        let context = self.calls.message_context(&self.context);
        self.writer.again(&context, &request).await?;
        let receipt = self.memory.remember(&context, accept(request)?);
        context.within("the receipt", receipt).await.map(Into::into)
    }
}

fn unnamed_space() -> Fault {
    Fault::invalid("space", "must come in the first message")
}

/// The records after the first message.
fn records(
    messages: Streaming<proto::ImportRequest>,
    calls: Calls,
    writer: Admitted,
) -> Answers<Record> {
    let numbered = messages
        .map_err(move |status| status::to_fault(&calls.broken(status)))
        .zip(futures::stream::iter(1..));
    Box::pin(numbered.then(move |(message, index): (_, u64)| {
        let writer = writer.clone();
        async move {
            writer
                .renew()
                .await
                .map_err(|fault| at_message(fault, index))?;
            match accept(message?) {
                Ok(ImportMessage::Record(record)) => Ok(record),
                Ok(ImportMessage::Space(_)) => Err(at_message(
                    Fault::invalid("space", "must come in the first message only"),
                    index,
                )),
                Err(fault) => Err(at_message(fault, index)),
            }
        }
    }))
}
