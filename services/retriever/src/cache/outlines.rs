//! Spaces that are here as outlines: which they are, what is asked of the store beside them, and the index that takes the place of one.

use std::sync::Arc;

use memfleet_domain::Fault;
use memfleet_ports::candidates::Candidates;
use memfleet_retrieval::Sample;

use super::IndexCache;
use super::entry::{Entry, Outline};
use super::held::IndexKey;

impl IndexCache {
    pub(super) async fn is_too_large(&self, entry: &Entry) -> bool {
        let Some(remote) = &self.remote else {
            return false;
        };
        entry.index.read().await.passages_held() > remote.held as usize
    }

    /// A new entry: the whole space, or its outline.
    pub(super) async fn begin(self: &Arc<Self>, key: &IndexKey) -> Result<Arc<Entry>, Fault> {
        let mut asked = None;
        if let Some(remote) = &self.remote {
            let passages = remote.store.extent(&key.scope, None).await?.passages;
            if passages > remote.cold || passages > remote.held {
                asked = Some((remote, passages <= remote.held));
            }
        }
        let store = asked.map(|(remote, _)| remote.store.clone());
        let (entry, is_new) = self.insert(key, store);
        if is_new && asked.is_some_and(|(_, is_held)| is_held) {
            self.build_behind(key, &entry);
        }
        Ok(entry)
    }

    /// Builds the index of a space that is searched by its outline meanwhile.
    fn build_behind(self: &Arc<Self>, key: &IndexKey, outline: &Arc<Entry>) {
        let (cache, key, outline) = (self.clone(), key.clone(), outline.clone());
        tokio::spawn(async move {
            let whole = Arc::new(Entry::new(outline.generation, None));
            let built = async {
                let head = cache.feed.head(&key.scope).await?;
                cache.catch_up(&key, &whole, head).await
            };
            match built.await {
                Ok(()) => cache.replace(&key, &outline, &whole),
                Err(fault) => {
                    tracing::warn!(%fault, "the index of a space was not built");
                    // The next search begins anew.
                    cache.remove_entry(&key, &outline);
                }
            }
        });
    }

    /// What an outline does not say; the sample of the space is read when it is old.
    pub(super) async fn outline(
        &self,
        key: &IndexKey,
        entry: &Arc<Entry>,
        store: &Arc<dyn Candidates>,
    ) -> Result<Outline, Fault> {
        let (scope, embedding) = (&key.scope, Some(self.embedding_of(key)));
        let without_vectors = store.extent(scope, embedding).await?.without_vectors;
        let mut kept = entry.sample.lock().await;
        let numbers = {
            let index = entry.index.read().await;
            let is_new = kept.as_ref().is_some_and(|sample| !sample.is_old(&index));
            (!is_new).then(|| Sample::numbers(&index))
        };
        if let Some(numbers) = numbers {
            let found = store.passages(scope, embedding, &numbers).await?;
            let index = entry.index.read().await;
            let sample = Sample::new(&index, &numbers, found);
            entry.measure_sample(sample.bytes());
            *kept = Some(Arc::new(sample));
            drop(index);
            self.evict(key, entry);
        }
        Ok(Outline {
            store: store.clone(),
            sample: kept.clone().unwrap_or_default(),
            without_vectors,
        })
    }

    /// Puts the index in the place of its outline, unless that is gone meanwhile.
    fn replace(&self, key: &IndexKey, outline: &Arc<Entry>, whole: &Arc<Entry>) {
        whole.set_built();
        self.lock().replace(key, outline, whole);
        self.evict(key, whole);
    }
}
