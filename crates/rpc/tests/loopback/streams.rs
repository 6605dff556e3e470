//! Every stream, and what happens when one side goes.

use futures::{StreamExt, TryStreamExt, stream};
use memfleet_domain::Fault;
use memfleet_domain::ids::Speaker;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::memory::{AnswerMode, AnswerRequest, Imported, Memory, Record};
use memfleet_ports::retriever::Query;
use memfleet_ports::subject::{Subject, SubjectForget};

use crate::calls::{recall, remember};
use crate::node::{self, space};
use crate::{connected, context};

#[tokio::test]
async fn a_stream_of_requests_gets_a_receipt_each_in_order() {
    let (node, client) = connected().await;
    let requests = (1..=5).map(|turns| {
        let mut request = remember("ada");
        request.turns = vec![request.turns[0].clone(); turns];
        request
    });
    let receipts = client
        .remember_stream(&context(), stream::iter(requests))
        .await
        .unwrap();
    let receipts: Vec<_> = receipts.try_collect().await.unwrap();
    assert_eq!(receipts, [1, 2, 3, 4, 5].map(node::receipt));
    assert_eq!(node.asked.lock().unwrap().len(), 5);
}

#[tokio::test]
async fn the_first_fault_ends_a_stream_of_requests_and_names_its_message() {
    let (node, client) = connected().await;
    let requests = stream::iter(["ada", "ada", "missing", "ada"]).map(remember);
    let mut receipts = client.remember_stream(&context(), requests).await.unwrap();
    assert!(receipts.next().await.unwrap().is_ok() && receipts.next().await.unwrap().is_ok());
    assert_eq!(
        receipts.next().await.unwrap(),
        Err(node::missing().with("message", "2"))
    );
    assert!(receipts.next().await.is_none());
    assert_eq!(node.asked.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn states_are_watched_to_their_end() {
    let (_, client) = connected().await;
    let states = client
        .watch(&context(), &space("ada"), node::batch())
        .await
        .unwrap();
    assert_eq!(states.try_collect::<Vec<_>>().await, Ok(node::states()));
}

#[tokio::test]
async fn a_subject_is_forgotten_and_exported_space_by_space() {
    let (node, client) = connected().await;
    let request = SubjectForget {
        subject: Subject {
            name: node::turn("x").accepted.speaker,
            aliases: vec![Speaker::new("A. Lovelace").unwrap()],
        },
        dry_run: true,
    };
    let progress = client.forget_subject(&context(), request.clone()).await;
    let progress: Vec<_> = progress.unwrap().try_collect().await.unwrap();
    assert_eq!(progress, node::progress());
    assert_eq!(node.last().1, format!("{request:?}"));
    let records = client.export_subject(&context(), &request.subject).await;
    let records: Vec<_> = records.unwrap().try_collect().await.unwrap();
    assert_eq!(records, node::records());
    assert_eq!(node.last().1, format!("{:?}", request.subject));
}

#[tokio::test]
async fn an_answer_arrives_in_its_parts() {
    let (node, client) = connected().await;
    let question = |name: &str| AnswerRequest {
        query: Query {
            neighbours: 0,
            explain: false,
            ..recall(name).query
        },
        wait_for: vec![node::batch()],
        mode: AnswerMode::Rules,
    };
    let asked = question("ada");
    let parts = client.answer(&context(), asked.clone()).await.unwrap();
    assert_eq!(parts.try_collect::<Vec<_>>().await, Ok(node::answered()));
    assert_eq!(node.last().1, format!("{asked:?}"));
    let missing = client.answer(&context(), question("missing")).await;
    assert_eq!(missing.err(), Some(node::missing()));
}

#[tokio::test]
async fn a_fault_inside_a_stream_comes_after_what_was_sent() {
    let (_, client) = connected().await;
    let states = client
        .watch(&context(), &space("missing"), node::batch())
        .await
        .unwrap();
    let states: Vec<_> = states.collect().await;
    assert_eq!(states.len(), 3);
    assert_eq!(states[2], Err(node::missing()));
}

#[tokio::test]
async fn a_dropped_stream_is_dropped_by_the_server() {
    let (node, client) = connected().await;
    let mut states = client
        .watch(&context(), &space("slow"), node::batch())
        .await
        .unwrap();
    assert!(states.next().await.unwrap().is_ok());
    drop(states);
    node.dropped.notified().await;
}

#[tokio::test]
async fn a_dropped_call_is_dropped_by_the_server() {
    let (node, client) = connected().await;
    let (call, circumstances) = (client.clone(), context());
    let call = tokio::spawn(async move { call.remember(&circumstances, remember("slow")).await });
    node.begun.notified().await;
    call.abort();
    node.dropped.notified().await;
}

#[tokio::test]
async fn an_export_can_be_imported() {
    let (node, client) = connected().await;
    let records = client
        .export(&context(), &space("ada"), &TurnFilter::default())
        .await
        .unwrap();
    let imported = client.import(&context(), &space("copy"), records).await;
    assert_eq!(
        imported,
        Ok(Imported {
            accepted: 2,
            duplicates: 1,
            forgotten: 3,
            decided: 4,
            left_out: vec!["a part".into()],
            batches: node::imported_batches(),
        })
    );
    let asked = node.asked.lock().unwrap().clone();
    let expected: Vec<_> = node::records()
        .iter()
        .map(|record| format!("copy {record:?}"))
        .collect();
    assert_eq!(
        asked[1..3]
            .iter()
            .map(|(_, what)| what.clone())
            .collect::<Vec<_>>(),
        expected
    );
}

#[tokio::test]
async fn an_import_that_breaks_off_at_its_source_is_not_taken_for_whole() {
    let (node, client) = connected().await;
    let broken = Fault::invalid("line", "is not JSON");
    let records = node::records()
        .into_iter()
        .map(Ok)
        .chain([Err(broken.clone())]);
    let imported = client
        .import(&context(), &space("copy"), Box::pin(stream::iter(records)))
        .await;
    assert_eq!(imported, Err(broken));
    node.dropped.notified().await;
    assert!(
        node.asked
            .lock()
            .unwrap()
            .iter()
            .all(|(_, what)| what != "the end")
    );
}

#[tokio::test]
async fn a_wrong_record_is_named_by_its_message() {
    let (_, client) = connected().await;
    let mut wrong = node::turn("fine");
    wrong.accepted.content.text = " ".into();
    let records = node::records()
        .into_iter()
        .chain([Record::Turn(Box::new(wrong))])
        .map(Ok);
    let fault = client
        .import(&context(), &space("copy"), Box::pin(stream::iter(records)))
        .await
        .unwrap_err();
    assert_eq!(fault.fields[0].field, "record.turn.text");
    assert_eq!(fault.metadata["message"], "3");
}
