//! Answers on their way out: none is larger than a message may be. A listing gives shorter pages instead, a forget shorter lists,
//! anything else says what to ask for.

use std::future::Future;

use futures::StreamExt;
use memfleet_domain::ids::SpaceId;
use memfleet_domain::{Fault, FaultKind};
use memfleet_ports::knowledge_api::Told;
use memfleet_ports::ledger::Page;
use memfleet_ports::memory::{Answers, PageRequest};
use memfleet_ports::refresher::ForgetReceipt;
use memfleet_ports::subject::SubjectProgress;
use prost::Message;
use tonic::{Response, Status};

use super::access::Admitted;
use super::calls::{Calls, Outbound};
use crate::proto::forget_subject_response::Kind;
use crate::proto::subject_in_space::Outcome;
use crate::proto::{ForgetResponse, ForgetSubjectResponse};
use crate::status;

/// What makes an answer smaller: a field of the request, and what to do with it.
pub(super) type Remedy = (&'static str, &'static str);

/// Where no field does.
pub(super) const NOTHING_TO_NARROW: Remedy = (
    "",
    "raise `server.max_response_size` on the node, and the limit of the client",
);

/// The longest answer to a forget. Clients of gRPC take 4 MiB unless they are told otherwise, and one that refuses this answer
/// could not ask for less: the turns are gone.
const FORGET_BYTES: usize = 3 << 20;

/// Bytes of a message that holds a receipt and the name of its space, without the receipt.
const BESIDE_RECEIPT: usize = SpaceId::LIMIT + 32;

/// An answer that has fewer items where fewer are asked for.
pub(super) trait Listing {
    /// How many it has.
    fn count(&self) -> usize;
}

impl<T> Listing for Page<T> {
    fn count(&self) -> usize {
        self.items.len()
    }
}

impl<T> Listing for Told<T> {
    fn count(&self) -> usize {
        self.page.items.len()
    }
}

impl Calls {
    /// The answer to a single call that is small whatever is asked.
    pub(crate) fn answer<T, M>(self, result: Result<T, Fault>) -> Result<Response<M>, Status>
    where
        M: From<T> + Message,
    {
        self.answer_within(result, NOTHING_TO_NARROW)
    }

    /// The answer to a single call, or how to ask for less.
    pub(super) fn answer_within<T, M>(
        self,
        result: Result<T, Fault>,
        remedy: Remedy,
    ) -> Result<Response<M>, Status>
    where
        M: From<T> + Message,
    {
        let message = result
            .map(M::from)
            .and_then(|message| self.fitting(message, remedy));
        message
            .map(Response::new)
            .map_err(|fault| status::from_fault(&fault))
    }

    /// One page of a listing, with fewer items than asked for where these are large.
    pub(super) async fn answer_page<L, M, F>(
        self,
        mut page: PageRequest,
        read: impl Fn(PageRequest) -> F,
    ) -> Result<Response<M>, Status>
    where
        L: Listing,
        M: From<L> + Message,
        F: Future<Output = Result<L, Fault>>,
    {
        loop {
            let items = read(page.clone()).await;
            let items = items.map_err(|fault| status::from_fault(&fault))?;
            let count = items.count();
            let message = M::from(items);
            let bound = self.bounds.max_response_bytes;
            let size = message.encoded_len();
            if size <= bound || count < 2 {
                return self.answer_within(Ok(message), NOTHING_TO_NARROW);
            }
            let fitting = (count as u128 * bound as u128 / size as u128) as usize;
            page.limit = fitting.clamp(1, count - 1) as u32;
        }
    }

    /// The answer to a forget: what is done cannot be refused, so its lists are as long as a message can hold that any client
    /// takes.
    pub(crate) fn answer_forget(
        self,
        result: Result<ForgetReceipt, Fault>,
    ) -> Result<Response<ForgetResponse>, Status> {
        let bound = self.bounds.max_response_bytes.min(FORGET_BYTES);
        self.answer(result.map(|receipt| shortened(receipt.into(), bound)))
    }

    /// The answers of a stream, as long as its reader is believed.
    pub(super) fn stream<T: Send + 'static, M: From<T> + Message + 'static>(
        self,
        reader: Admitted,
        result: Result<Answers<T>, Fault>,
    ) -> Result<Response<Outbound<M>>, Status> {
        self.stream_of_messages(reader, result, M::from)
    }

    /// The progress of a forget, with receipts as [`Calls::answer_forget`] gives them.
    pub(super) fn stream_of_forgets(
        self,
        reader: Admitted,
        result: Result<Answers<SubjectProgress>, Fault>,
    ) -> Result<Response<Outbound<ForgetSubjectResponse>>, Status> {
        let bound = self.bounds.max_response_bytes.min(FORGET_BYTES);
        let message = move |progress: SubjectProgress| {
            let mut message = ForgetSubjectResponse::from(progress);
            if let Some(Kind::Space(space)) = &mut message.kind
                && let Some(Outcome::Receipt(receipt)) = &mut space.outcome
            {
                *receipt = shortened(std::mem::take(receipt), bound - BESIDE_RECEIPT);
            }
            message
        };
        self.stream_of_messages(reader, result, message)
    }

    fn stream_of_messages<T: Send + 'static, M: Message + 'static>(
        self,
        reader: Admitted,
        result: Result<Answers<T>, Fault>,
        message: impl Fn(T) -> M + Send + 'static,
    ) -> Result<Response<Outbound<M>>, Status> {
        let answers = result.map_err(|fault| status::from_fault(&fault))?;
        let believed = answers.then(move |answer| {
            let reader = reader.clone();
            async move { reader.renew().await.and(answer) }
        });
        let messages = believed.map(move |answer| {
            answer
                .map(&message)
                .and_then(|message| self.fitting(message, NOTHING_TO_NARROW))
                .map_err(|fault| status::from_fault(&fault))
        });
        Ok(Response::new(Box::pin(messages)))
    }

    fn fitting<M: Message>(self, message: M, (field, remedy): Remedy) -> Result<M, Fault> {
        let (size, bound) = (message.encoded_len(), self.bounds.max_response_bytes);
        if size <= bound {
            return Ok(message);
        }
        let problem =
            format!("the answer would be {size} bytes, a message may be {bound}: {remedy}");
        let mut fault = if field.is_empty() {
            Fault::new(FaultKind::InvalidArgument, "", problem)
        } else {
            Fault::invalid(field, problem)
        };
        fault.reason = "ANSWER_TOO_LARGE".into();
        let fault = fault.with("answer_bytes", size.to_string());
        Err(fault.with("limit_bytes", bound.to_string()))
    }
}

fn shortened(mut answer: ForgetResponse, bound: usize) -> ForgetResponse {
    loop {
        let size = answer.encoded_len();
        let (turns, sessions) = (answer.turn_ids.len(), answer.emptied_sessions.len());
        if size <= bound || turns + sessions == 0 {
            return answer;
        }
        let fitting = |count: usize| (count as u128 * bound as u128 / size as u128) as usize;
        answer.turn_ids.truncate(fitting(turns));
        answer.emptied_sessions.truncate(fitting(sessions));
        answer.lists_cut = true;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use memfleet_domain::ids::{SessionId, TurnId};
    use memfleet_domain::space::Session;
    use memfleet_domain::time::Timestamp;
    use memfleet_ports::erasure::Erased;
    use memfleet_ports::subject::InSpace;
    use memfleet_ports::testing::{Callers, caller};

    use super::*;
    use crate::proto::ListSessionsResponse;
    use crate::server::Bounds;

    /// The first page of 50 sessions with long names, within a bound.
    async fn page(
        max_response_bytes: usize,
        limit: u32,
    ) -> Result<Response<ListSessionsResponse>, Status> {
        let bounds = Bounds {
            max_response_bytes,
            ..Bounds::default()
        };
        let calls = Calls {
            bounds,
            due: |_| None,
        };
        let read = async |page: PageRequest| {
            let session = |n: u32| Session {
                id: SessionId::new(format!("{n:0200}")).unwrap(),
                turns: 1,
                first_turn_at: Timestamp::UNIX_EPOCH,
                last_turn_at: Timestamp::UNIX_EPOCH,
            };
            Ok(Page {
                items: (0..page.limit.min(50)).map(session).collect(),
                next: None,
            })
        };
        calls
            .answer_page(PageRequest { limit, after: None }, read)
            .await
    }

    #[tokio::test]
    async fn a_page_is_as_long_as_a_message_can_hold() {
        let whole = page(1 << 20, 1_000).await.unwrap().into_inner();
        assert_eq!(whole.sessions.len(), 50);
        let bound = whole.encoded_len() / 2;
        let part = page(bound, 1_000).await.unwrap().into_inner();
        assert!((20..=25).contains(&part.sessions.len()));
        assert!(part.encoded_len() <= bound);
    }

    #[test]
    fn the_lists_of_a_forget_are_as_long_as_a_message_can_hold_and_its_counts_are_whole() {
        let names = |count: usize| (0..count).map(|n| format!("{n:036}")).collect::<Vec<_>>();
        let whole = ForgetResponse {
            turn_ids: names(1_000),
            emptied_sessions: names(100),
            turns: 1_000,
            sessions: 100,
            ..Default::default()
        };
        let size = whole.encoded_len();
        assert_eq!(shortened(whole.clone(), size), whole);
        let cut = shortened(whole.clone(), size / 2);
        assert!(cut.encoded_len() <= size / 2);
        assert!((450..500).contains(&cut.turn_ids.len()));
        assert!(!cut.emptied_sessions.is_empty());
        assert!(whole.turn_ids.starts_with(&cut.turn_ids));
        assert_eq!((cut.turns, cut.sessions, cut.lists_cut), (1_000, 100, true));
    }

    #[test]
    fn the_answer_to_a_forget_is_one_that_any_client_takes() {
        let calls = Calls {
            bounds: Bounds::default(),
            due: |_| None,
        };
        let id = |n: u32| TurnId::from_bytes(u128::from(n).to_be_bytes());
        let erased = Erased {
            turns: (0..200_000).map(id).collect(),
            ..Erased::default()
        };
        let receipt = ForgetReceipt::of(erased, false);
        let answer = calls.answer_forget(Ok(receipt)).unwrap().into_inner();
        assert!(answer.encoded_len() <= 3 << 20);
        assert!(answer.encoded_len() > 2 << 20);
        assert_eq!((answer.turns, answer.lists_cut), (200_000, true));
    }

    #[tokio::test]
    async fn a_receipt_in_a_stream_is_one_that_any_client_takes() {
        let calls = Calls {
            bounds: Bounds::default(),
            due: |_| None,
        };
        let id = |n: u32| TurnId::from_bytes(u128::from(n).to_be_bytes());
        let erased = Erased {
            turns: (0..200_000).map(id).collect(),
            ..Erased::default()
        };
        let space = SpaceId::new("s".repeat(SpaceId::LIMIT)).unwrap();
        let done = InSpace::Forgotten(ForgetReceipt::of(erased, false));
        let progress = SubjectProgress::Space(space, done);
        let answers: Answers<_> = futures::stream::iter([Ok(progress)]).boxed();
        let reader = Admitted {
            caller: Arc::new(caller("acme")),
            authority: Arc::new(Callers::new([])),
        };
        let mut answers = calls.stream_of_forgets(reader, Ok(answers)).unwrap();
        let answer = answers.get_mut().next().await.unwrap().unwrap();
        assert!((2 << 20..=3 << 20).contains(&answer.encoded_len()));
        let Some(Kind::Space(space)) = answer.kind else {
            panic!("one space is done");
        };
        let Some(Outcome::Receipt(receipt)) = space.outcome else {
            panic!("nothing is on hold");
        };
        assert_eq!((receipt.turns, receipt.lists_cut), (200_000, true));
    }

    #[tokio::test]
    async fn an_item_that_no_message_can_hold_is_refused() {
        let fault = status::to_fault(&page(100, 1_000).await.unwrap_err());
        assert_eq!(fault.reason, "ANSWER_TOO_LARGE");
        assert!(
            fault.message.contains("server.max_response_size"),
            "{fault}"
        );
    }
}
