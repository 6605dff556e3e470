//! The services Memory, Spaces and Sessions.

use async_trait::async_trait;
use futures::channel::oneshot;
use futures::{FutureExt, Stream, StreamExt, stream};
use memfleet_domain::Fault;
use memfleet_domain::ids::{BatchId, SpaceId, TurnId};
use memfleet_domain::ingestion::{Receipt, TurnReceipt};
use memfleet_domain::space::{Session, Space, SpaceSettings};
use memfleet_domain::turn::Turn;
use memfleet_ports::context::Context;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::ledger::{Page, PageToken};
use memfleet_ports::memory::{
    AnswerPart, AnswerRequest, Answers, Imported, Memory, PageRequest, RecallRequest, Record,
    RememberRequest,
};
use memfleet_ports::refresher::{ForgetReceipt, ForgetRequest};
use memfleet_ports::retriever::Found;
use memfleet_ports::subject::{Subject, SubjectForget, SubjectProgress};

use super::calls::{message, value, values};
use super::wire::Wire;
use super::{Client, MAX_ANSWER_BYTES};
use crate::convert::ImportMessage;
use crate::proto;
use crate::proto::memory_client::MemoryClient;
use crate::proto::sessions_client::SessionsClient;
use crate::proto::spaces_client::SpacesClient;

impl Client {
    fn memory(&self) -> MemoryClient<Wire> {
        MemoryClient::new(self.wire.clone()).max_decoding_message_size(MAX_ANSWER_BYTES)
    }

    /// Remembers request after request over one call: a receipt each, in order, until the first fault.
    pub async fn remember_stream(
        &self,
        context: &Context,
        requests: impl Stream<Item = RememberRequest> + Send + 'static,
    ) -> Result<Answers<Receipt>, Fault> {
        let request = self.request(context, requests.map(Into::into));
        let receipts = message(context, self.memory().remember_stream(request).boxed()).await?;
        Ok(values(context, receipts))
    }
}

#[async_trait]
impl Memory for Client {
    async fn remember(
        &self,
        context: &Context,
        request: RememberRequest,
    ) -> Result<Receipt, Fault> {
        let request = self.request(context, request.into());
        value(context, self.memory().remember(request).boxed()).await
    }

    async fn recall(&self, context: &Context, request: RecallRequest) -> Result<Found, Fault> {
        let request = self.request(context, request.try_into()?);
        value(context, self.memory().recall(request).boxed()).await
    }

    async fn answer(
        &self,
        context: &Context,
        request: AnswerRequest,
    ) -> Result<Answers<AnswerPart>, Fault> {
        let request = self.request(context, request.try_into()?);
        Ok(values(
            context,
            message(context, self.memory().answer(request).boxed()).await?,
        ))
    }

    async fn get(
        &self,
        context: &Context,
        space: &SpaceId,
        ids: &[TurnId],
        wait_for: &[BatchId],
    ) -> Result<Vec<Turn>, Fault> {
        let request = proto::GetRequest {
            space: space.to_string(),
            turn_ids: texts(ids),
            wait_for: texts(wait_for),
        };
        value(
            context,
            self.memory().get(self.request(context, request)).boxed(),
        )
        .await
    }

    async fn list(
        &self,
        context: &Context,
        space: &SpaceId,
        filter: &TurnFilter,
        page: PageRequest,
        wait_for: &[BatchId],
    ) -> Result<Page<Turn>, Fault> {
        let request = proto::ListRequest {
            space: space.to_string(),
            filter: Some(filter.clone().try_into()?),
            page_size: page.limit,
            page_token: page_token(page.after),
            wait_for: texts(wait_for),
        };
        value(
            context,
            self.memory().list(self.request(context, request)).boxed(),
        )
        .await
    }

    async fn history(
        &self,
        context: &Context,
        space: &SpaceId,
        turn: TurnId,
    ) -> Result<Vec<Turn>, Fault> {
        let request = proto::HistoryRequest {
            space: space.to_string(),
            turn_id: turn.to_string(),
        };
        value(
            context,
            self.memory()
                .history(self.request(context, request))
                .boxed(),
        )
        .await
    }

    async fn forget(
        &self,
        context: &Context,
        request: ForgetRequest,
    ) -> Result<ForgetReceipt, Fault> {
        let request = self.request(context, request.try_into()?);
        value(context, self.memory().forget(request).boxed()).await
    }

    async fn forget_subject(
        &self,
        context: &Context,
        request: SubjectForget,
    ) -> Result<Answers<SubjectProgress>, Fault> {
        let request = self.request(context, request.into());
        Ok(values(
            context,
            message(context, self.memory().forget_subject(request).boxed()).await?,
        ))
    }

    async fn watch(
        &self,
        context: &Context,
        space: &SpaceId,
        batch: BatchId,
    ) -> Result<Answers<TurnReceipt>, Fault> {
        let request = proto::WatchIngestionRequest {
            space: space.to_string(),
            token: batch.to_string(),
        };
        let request = self.request(context, request);
        Ok(values(
            context,
            message(context, self.memory().watch_ingestion(request).boxed()).await?,
        ))
    }

    async fn export(
        &self,
        context: &Context,
        space: &SpaceId,
        filter: &TurnFilter,
    ) -> Result<Answers<Record>, Fault> {
        let request = proto::ExportRequest {
            space: space.to_string(),
            filter: Some(filter.clone().try_into()?),
        };
        let request = self.request(context, request);
        Ok(values(
            context,
            message(context, self.memory().export(request).boxed()).await?,
        ))
    }

    async fn export_subject(
        &self,
        context: &Context,
        subject: &Subject,
    ) -> Result<Answers<Record>, Fault> {
        let request = self.request(context, subject.clone().into());
        Ok(values(
            context,
            message(context, self.memory().export_subject(request).boxed()).await?,
        ))
    }

    /// After a fault among `records` the server gets a message that it refuses, so that it never takes a part for the whole.
    async fn import(
        &self,
        context: &Context,
        space: &SpaceId,
        records: Answers<Record>,
    ) -> Result<Imported, Fault> {
        let (messages, mut reported) = import_messages(space, records);
        let imported = value(
            context,
            self.memory()
                .import(self.request(context, messages))
                .boxed(),
        )
        .await;
        match reported.try_recv() {
            Ok(Some(fault)) => Err(fault),
            _ => imported,
        }
    }

    async fn put_space(
        &self,
        context: &Context,
        space: &SpaceId,
        settings: SpaceSettings,
    ) -> Result<Space, Fault> {
        let request = proto::PutSpaceRequest {
            space: space.to_string(),
            settings: Some(settings.into()),
        };
        let mut spaces = SpacesClient::new(self.wire.clone());
        value(
            context,
            spaces.put_space(self.request(context, request)).boxed(),
        )
        .await
    }

    async fn set_legal_hold(
        &self,
        context: &Context,
        space: &SpaceId,
        held: bool,
        reason: String,
    ) -> Result<Space, Fault> {
        let request = proto::SetLegalHoldRequest {
            space: space.to_string(),
            held,
            reason,
        };
        let mut spaces = SpacesClient::new(self.wire.clone());
        value(
            context,
            spaces
                .set_legal_hold(self.request(context, request))
                .boxed(),
        )
        .await
    }

    async fn spaces(&self, context: &Context, page: PageRequest) -> Result<Page<Space>, Fault> {
        let request = proto::ListSpacesRequest {
            page_size: page.limit,
            page_token: page_token(page.after),
        };
        let mut spaces = SpacesClient::new(self.wire.clone());
        value(
            context,
            spaces.list_spaces(self.request(context, request)).boxed(),
        )
        .await
    }

    async fn sessions(
        &self,
        context: &Context,
        space: &SpaceId,
        page: PageRequest,
    ) -> Result<Page<Session>, Fault> {
        let request = proto::ListSessionsRequest {
            space: space.to_string(),
            page_size: page.limit,
            page_token: page_token(page.after),
        };
        let mut sessions = SessionsClient::new(self.wire.clone());
        value(
            context,
            sessions
                .list_sessions(self.request(context, request))
                .boxed(),
        )
        .await
    }
}

fn texts(ids: &[impl ToString]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}

/// The messages of an import: the space, then the records. At a fault they end in a message without content, and the
/// fault comes through the channel.
fn import_messages(
    space: &SpaceId,
    records: Answers<Record>,
) -> (
    impl Stream<Item = proto::ImportRequest> + Send + 'static,
    oneshot::Receiver<Fault>,
) {
    let (report, reported) = oneshot::channel();
    let mut report = Some(report);
    let rest = records.map(move |record| match record {
        Ok(record) => ImportMessage::Record(record).into(),
        Err(fault) => {
            let _nobody_waits = report.take().map(|report| report.send(fault));
            proto::ImportRequest::default()
        }
    });
    let first = ImportMessage::Space(space.clone()).into();
    (stream::iter([first]).chain(rest), reported)
}

/// The token of a request; none is empty.
pub(super) fn page_token(token: Option<PageToken>) -> String {
    token.map(|token| token.0).unwrap_or_default()
}
