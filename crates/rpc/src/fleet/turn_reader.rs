//! The reader of turns behind the network.

use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::{BoxFuture, try_join, try_join_all};
use memfleet_domain::statement::{RelationScores, Statement};
use memfleet_domain::{Fault, FaultKind};
use memfleet_ports::turn_reader::{
    NeedQuestion, PromptReading, ReaderAnswers, TurnComparison, TurnInContext, TurnReader,
    TurnText, no_reader,
};
use tonic::transport::Channel;
use tonic::{Request, Response, Status};

use super::call::{Repeat, Terms, call, within};
use super::credential::Credential;
use super::{MAX_MESSAGE_BYTES, Peers};
use crate::convert::{Checked, understand};
use crate::limits;
use crate::proto::internal::turn_reader_client::TurnReaderClient;
use crate::proto::internal::{NeedsRequest, RelationsRequest, StatementsRequest};

/// Turns or pairs of one call: small enough that replicas share the turns of an import.
const TURNS: usize = 64;

/// Longest wait for statements and relations: a queue before them may be long.
const READING: Duration = Duration::from_mins(1);

/// Longest wait for needs; a prompt has a deadline of its own, which ends the call when it passes.
const NEEDS: Duration = Duration::from_secs(10);

/// Asks the readers of a fleet, which its embedders have.
#[derive(Debug, Clone)]
pub struct RemoteTurnReader {
    /// The embedders.
    pub peers: Peers,
    /// Credential that they believe.
    pub credential: Credential,
}

impl RemoteTurnReader {
    async fn ask<Q: Clone, A: Checked>(
        &self,
        message: Q,
        budget: Duration,
        send: impl Fn(
            TurnReaderClient<Channel>,
            Request<Q>,
        ) -> BoxFuture<'static, Result<Response<A>, Status>>,
    ) -> Result<A::Value, Fault> {
        let terms = Terms {
            credential: &self.credential,
            tenant: None,
            deadline: within(budget),
            repeat: Repeat::Freely,
        };
        let answer = call(
            self.peers.least_busy()?,
            terms,
            message,
            |channel, request| {
                let client = TurnReaderClient::new(channel);
                send(client.max_decoding_message_size(MAX_MESSAGE_BYTES), request)
            },
        );
        match answer.await {
            Err(fault) if fault.reason == "UNIMPLEMENTED" => Err(no_reader(
                "the embedders are of a version without a reader of turns: upgrade them",
            )),
            answer => understand(answer?),
        }
    }

    async fn statements_of(
        &self,
        turns: &[TurnInContext],
    ) -> Result<ReaderAnswers<Vec<Statement>>, Fault> {
        let message = StatementsRequest::from(turns.to_vec());
        let statements = self.ask(message, READING, |mut client, request| {
            async move { client.statements(request).await }.boxed()
        });
        let statements: ReaderAnswers<Vec<Statement>> = complete(statements.await?, turns.len())?;
        let is_of = |(turn, statements): (&TurnInContext, &Vec<Statement>)| {
            let mut statements = statements.iter();
            statements.all(|it| turn.turn.text.get(it.bytes.clone()).is_some())
        };
        match turns.iter().zip(&statements.answers).all(is_of) {
            true => Ok(statements),
            false => Err(misread("a statement lies beyond the text of its turn")),
        }
    }

    async fn relations_of(
        &self,
        pairs: &[TurnComparison],
    ) -> Result<ReaderAnswers<Vec<RelationScores>>, Fault> {
        let message = RelationsRequest::from(pairs.to_vec());
        let relations = self.ask(message, READING, |mut client, request| {
            async move { client.relations(request).await }.boxed()
        });
        let relations: ReaderAnswers<Vec<RelationScores>> =
            complete(relations.await?, pairs.len())?;
        let is_of = |(pair, relations): (&TurnComparison, &Vec<RelationScores>)| {
            let (later, earlier) = (pair.later.statements.len(), pair.earlier.statements.len());
            let mut relations = relations.iter();
            relations.all(|it| it.later < later && it.earlier < earlier)
        };
        match pairs.iter().zip(&relations.answers).all(is_of) {
            true => Ok(relations),
            false => Err(misread("a relation is of a statement that was not sent")),
        }
    }

    async fn needs_of(&self, question: NeedQuestion) -> Result<PromptReading, Fault> {
        let asked = question.lines.len();
        let message = NeedsRequest::from(question);
        let reading = self.ask(message, NEEDS, |mut client, request| {
            async move { client.needs(request).await }.boxed()
        });
        let reading: PromptReading = reading.await?;
        check_count(reading.needs.len(), asked)?;
        Ok(reading)
    }
}

#[async_trait]
impl TurnReader for RemoteTurnReader {
    async fn statements(
        &self,
        turns: Vec<TurnInContext>,
    ) -> Result<ReaderAnswers<Vec<Statement>>, Fault> {
        if turns.is_empty() {
            return self.statements_of(&turns).await;
        }
        let parts = turns.chunks(TURNS).map(|part| self.statements_of(part));
        joined(try_join_all(parts).await?)
    }

    async fn relations(
        &self,
        pairs: Vec<TurnComparison>,
    ) -> Result<ReaderAnswers<Vec<RelationScores>>, Fault> {
        let parts = pairs.chunks(TURNS).map(|part| self.relations_of(part));
        joined(try_join_all(parts).await?)
    }

    /// Asks with the beginning of a prompt and the end of the turns before it: no more is read.
    async fn needs(&self, question: NeedQuestion) -> Result<PromptReading, Fault> {
        let prompt = &question.prompt[..question.prompt.floor_char_boundary(limits::TEXT)];
        let surplus = question.before.len().saturating_sub(limits::TEXT);
        let before = &question.before[question.before.ceil_char_boundary(surplus)..];
        let needs_of = |lines: &[TurnText]| {
            self.needs_of(NeedQuestion {
                prompt: prompt.to_owned(),
                before: before.to_owned(),
                lines: lines.to_vec(),
            })
        };
        // Without lines the prompt is read all the same.
        let first = question.lines.len().min(limits::NEED_LINES);
        let (first, rest) = question.lines.split_at(first);
        let (mut reading, others) = try_join(
            needs_of(first),
            try_join_all(rest.chunks(limits::NEED_LINES).map(needs_of)),
        )
        .await?;
        for other in others {
            check_reader(&reading.reader, &other.reader)?;
            reading.needs.extend(other.needs);
        }
        Ok(reading)
    }
}

fn complete<T>(found: ReaderAnswers<T>, asked: usize) -> Result<ReaderAnswers<T>, Fault> {
    check_count(found.answers.len(), asked)?;
    Ok(found)
}

fn check_count(came: usize, asked: usize) -> Result<(), Fault> {
    match came == asked {
        true => Ok(()),
        false => Err(misread(format!(
            "{came} answers came for {asked} questions"
        ))),
    }
}

/// Answers of parts of a question as one. Those of two readers, which meet while a fleet is upgraded,
/// are not mixed: the question is to be asked again.
fn joined<T>(parts: Vec<ReaderAnswers<T>>) -> Result<ReaderAnswers<T>, Fault> {
    let mut parts = parts.into_iter();
    let Some(mut joined) = parts.next() else {
        return Ok(ReaderAnswers {
            reader: String::new(),
            answers: Vec::new(),
        });
    };
    for part in parts {
        check_reader(&joined.reader, &part.reader)?;
        joined.answers.extend(part.answers);
    }
    Ok(joined)
}

fn check_reader(one: &str, other: &str) -> Result<(), Fault> {
    if one == other {
        return Ok(());
    }
    let message = format!("`{one}` and `{other}` answered one question");
    let fault = Fault::new(FaultKind::Unavailable, "READERS_DIFFER", message);
    Err(fault.retry_after(Duration::from_secs(1)))
}

/// Fault of an answer that does not meet its question.
fn misread(message: impl Into<String>) -> Fault {
    Fault::new(FaultKind::Internal, "ANSWER_NOT_UNDERSTOOD", message.into())
}
