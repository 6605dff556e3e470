//! The refresher role behind the network.

use async_trait::async_trait;
use futures::FutureExt;
use memfleet_domain::Fault;
use memfleet_domain::derivation::{DecidedMemory, Derivation};
use memfleet_domain::ids::{ChangeId, SpaceId};
use memfleet_ports::context::Context;
use memfleet_ports::knowledge::Recorded;
use memfleet_ports::knowledge_api::UpdateRequest;
use memfleet_ports::refresher::{ForgetReceipt, ForgetRequest, Naming, Refresher};
use tonic::transport::Channel;

use super::call::{Repeat, Terms, call};
use super::credential::Credential;
use super::{MAX_MESSAGE_BYTES, Peers};
use crate::convert::understand;
use crate::proto;
use crate::proto::internal::refresher_client::RefresherClient;

/// Asks the refreshers of a fleet.
#[derive(Debug, Clone)]
pub struct RemoteRefresher {
    /// Its replicas.
    pub peers: Peers,
    /// What they believe.
    pub credential: Credential,
}

impl RemoteRefresher {
    fn terms<'a>(&'a self, context: &'a Context, repeat: Repeat) -> Terms<'a> {
        Terms {
            credential: &self.credential,
            tenant: Some(&context.tenant),
            deadline: context.deadline,
            repeat,
        }
    }
}

fn client(channel: Channel) -> RefresherClient<Channel> {
    RefresherClient::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES)
}

#[async_trait]
impl Refresher for RemoteRefresher {
    /// Once: a second try would give the receipt of a forget that found nothing any more.
    async fn forget(
        &self,
        context: &Context,
        request: &ForgetRequest,
    ) -> Result<ForgetReceipt, Fault> {
        let message: proto::ForgetRequest = request.clone().try_into()?;
        let answer = call(
            self.peers.least_busy()?,
            self.terms(context, Repeat::Never),
            message,
            |channel, request| async move { client(channel).forget(request).await }.boxed(),
        );
        understand(answer.await?)
    }

    /// Once: where the first try was carried out, a second would find another version than the caller has seen.
    async fn correct(
        &self,
        context: &Context,
        request: &UpdateRequest,
    ) -> Result<Derivation, Fault> {
        let answer = call(
            self.peers.least_busy()?,
            self.terms(context, Repeat::Never),
            proto::UpdateRequest::from(request.clone()),
            |channel, request| async move { client(channel).correct(request).await }.boxed(),
        );
        understand(answer.await?)
    }

    /// As often as it takes: said again, it is the same change.
    async fn identify(
        &self,
        context: &Context,
        space: &SpaceId,
        namings: &[Naming],
    ) -> Result<ChangeId, Fault> {
        let message = proto::internal::IdentifyRequest {
            space: space.to_string(),
            namings: namings.iter().cloned().map(Into::into).collect(),
        };
        let answer = call(
            self.peers.least_busy()?,
            self.terms(context, Repeat::Freely),
            message,
            |channel, request| async move { client(channel).identify(request).await }.boxed(),
        );
        understand(answer.await?)
    }

    /// As often as it takes: what is in place already is not put there again.
    async fn restore(
        &self,
        context: &Context,
        space: &SpaceId,
        memory: &DecidedMemory,
    ) -> Result<bool, Fault> {
        let message = proto::internal::RestoreRequest {
            space: space.to_string(),
            memory: Some(memory.clone().into()),
        };
        let answer = call(
            self.peers.least_busy()?,
            self.terms(context, Repeat::Freely),
            message,
            |channel, request| async move { client(channel).restore(request).await }.boxed(),
        );
        understand(answer.await?)
    }

    /// As often as it takes: a change is undone once, and the second try is answered like the first.
    async fn revert(
        &self,
        context: &Context,
        space: &SpaceId,
        change: ChangeId,
    ) -> Result<Recorded, Fault> {
        let message = proto::RevertRequest {
            space: space.to_string(),
            change_id: change.to_string(),
        };
        let answer = call(
            self.peers.least_busy()?,
            self.terms(context, Repeat::Freely),
            message,
            |channel, request| async move { client(channel).revert(request).await }.boxed(),
        );
        understand(answer.await?)
    }
}
