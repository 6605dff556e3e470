//! The service around a model that blocks on demand.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use memfleet_domain::FaultKind;
use memfleet_domain::embedding::TokenVectors;
use memfleet_encoder::{Error, Tokens};

use super::*;

/// A model that waits for permission before every batch and says what it was given.
struct Gated {
    permits: Mutex<Receiver<()>>,
    seen: Sender<usize>,
}

impl Model for Gated {
    fn tokenize(&self, _: TextKind, texts: &[&str]) -> Result<Vec<Tokens>, Error> {
        Ok(texts
            .iter()
            .map(|text| Tokens::of_ids(text.bytes().map(u32::from).collect()))
            .collect())
    }

    fn encode(&self, _: TextKind, batch: &[Tokens]) -> Result<Vec<PassageVectors>, Error> {
        self.seen.send(batch.len()).unwrap();
        self.permits
            .lock()
            .unwrap()
            .recv()
            .map_err(|_| Error::Inference("gone".to_owned()))?;
        let vectors = |tokens: &Tokens| PassageVectors {
            sentence: vec![tokens.len() as i8],
            tokens: TokenVectors {
                dimensions: 1,
                pieces: tokens.ids().to_vec(),
                values: vec![0; tokens.len()],
            },
        };
        Ok(batch.iter().map(vectors).collect())
    }
}

fn gated(capacity: usize) -> (Arc<LocalEmbedder>, Sender<()>, Receiver<usize>) {
    let (permit, permits) = channel();
    let (seen, seen_by_test) = channel();
    let space = EmbeddingSpace {
        model: "m".into(),
        revision: "r".into(),
        recipe: "r".into(),
        projection: "p".into(),
    };
    let model = Gated {
        permits: Mutex::new(permits),
        seen,
    };
    (
        Arc::new(LocalEmbedder::start(space, model, capacity).unwrap()),
        permit,
        seen_by_test,
    )
}

fn texts(count: usize) -> Vec<String> {
    (0..count).map(|index| "x".repeat(index % 7 + 1)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_come_in_the_order_of_the_texts() {
    let (embedder, permit, _seen) = gated(100);
    (0..9).for_each(|_| permit.send(()).unwrap());
    let vectors = embedder.embed_passages(texts(20)).await.unwrap();
    let lengths: Vec<usize> = vectors
        .iter()
        .map(|vectors| vectors.tokens.pieces.len())
        .collect();
    assert_eq!(
        lengths,
        (0..20).map(|index| index % 7 + 1).collect::<Vec<_>>()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_sheds_at_once() {
    let (embedder, permit, seen) = gated(4);
    let working = tokio::spawn({
        let embedder = embedder.clone();
        async move { embedder.embed_passages(texts(1)).await }
    });
    let _seen = tokio::task::spawn_blocking(move || (seen.recv().unwrap(), seen).1)
        .await
        .unwrap();
    let waiting = tokio::spawn({
        let embedder = embedder.clone();
        async move { embedder.embed_passages(texts(4)).await }
    });
    while embedder.workers.queue.is_empty() {
        tokio::task::yield_now().await;
    }
    let fault = embedder.embed_passages(texts(1)).await.unwrap_err();
    assert_eq!(
        (fault.kind, &*fault.reason),
        (FaultKind::ResourceExhausted, "EMBEDDER_OVERLOADED")
    );
    (0..9).for_each(|_| permit.send(()).unwrap());
    assert_eq!(
        working.await.unwrap().unwrap().len() + waiting.await.unwrap().unwrap().len(),
        5
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn work_whose_caller_left_is_never_computed() {
    let (embedder, permit, seen) = gated(100);
    let working = tokio::spawn({
        let embedder = embedder.clone();
        async move { embedder.embed_passages(texts(1)).await }
    });
    let seen = tokio::task::spawn_blocking(move || (seen.recv().unwrap(), seen).1)
        .await
        .unwrap();
    let leaving = tokio::spawn({
        let embedder = embedder.clone();
        async move { embedder.embed_passages(texts(5)).await }
    });
    while embedder.workers.queue.is_empty() {
        tokio::task::yield_now().await;
    }
    leaving.abort();
    assert!(leaving.await.unwrap_err().is_cancelled());
    (0..9).for_each(|_| permit.send(()).unwrap());
    working.await.unwrap().unwrap();
    embedder.embed_query("q".to_owned()).await.unwrap();
    assert_eq!(
        seen.try_iter().collect::<Vec<_>>(),
        [1],
        "only the query was computed after the first"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_fails_is_an_unavailable_embedder() {
    let (embedder, permit, _seen) = gated(100);
    drop(permit);
    let fault = embedder.embed_query("q".to_owned()).await.unwrap_err();
    assert_eq!(
        (fault.kind, &*fault.reason),
        (FaultKind::Unavailable, "EMBEDDER_UNAVAILABLE")
    );
}
