//! Spaces that are here as outlines: which they are, what is asked of the store beside them, and the index that takes the place of one.

use std::sync::Arc;

use memfleet_domain::{Fault, Scope};
use memfleet_ports::candidates::Candidates;
use memfleet_retrieval::Sample;

use super::IndexCache;
use super::entry::{Entry, Outline};

impl IndexCache {
    pub(super) async fn is_too_large(&self, entry: &Entry) -> bool {
        let Some(remote) = &self.remote else {
            return false;
        };
        entry.index.read().await.passages_held() > remote.held as usize
    }

    /// A new entry: the whole space, or its outline.
    pub(super) async fn begin(self: &Arc<Self>, scope: &Scope) -> Result<Arc<Entry>, Fault> {
        let mut asked = None;
        if let Some(remote) = &self.remote {
            let passages = remote.store.extent(scope).await?.passages;
            if passages > remote.cold || passages > remote.held {
                asked = Some((remote, passages <= remote.held));
            }
        }
        let store = asked.map(|(remote, _)| remote.store.clone());
        let (entry, is_new) = self.insert(scope, store);
        if is_new && asked.is_some_and(|(_, is_held)| is_held) {
            self.build_behind(scope, &entry);
        }
        Ok(entry)
    }

    /// Builds the index of a space that is searched by its outline meanwhile.
    fn build_behind(self: &Arc<Self>, scope: &Scope, outline: &Arc<Entry>) {
        let (cache, scope, outline) = (self.clone(), scope.clone(), outline.clone());
        tokio::spawn(async move {
            let whole = Arc::new(Entry::new(outline.generation, None));
            let built = async {
                let head = cache.feed.head(&scope).await?;
                cache.catch_up(&scope, &whole, head).await
            };
            match built.await {
                Ok(()) => cache.replace(&scope, &outline, &whole),
                Err(fault) => {
                    tracing::warn!(%fault, "the index of a space was not built");
                    // The next search begins anew.
                    cache.remove_entry(&scope, &outline);
                }
            }
        });
    }

    /// What an outline does not say; the sample of the space is read when it is old.
    pub(super) async fn outline(
        &self,
        scope: &Scope,
        entry: &Arc<Entry>,
        store: &Arc<dyn Candidates>,
    ) -> Result<Outline, Fault> {
        let without_vectors = store.extent(scope).await?.without_vectors;
        let mut kept = entry.sample.lock().await;
        let numbers = {
            let index = entry.index.read().await;
            let is_new = kept.as_ref().is_some_and(|sample| !sample.is_old(&index));
            (!is_new).then(|| Sample::numbers(&index))
        };
        if let Some(numbers) = numbers {
            let found = store.passages(scope, &numbers).await?;
            let index = entry.index.read().await;
            let sample = Sample::new(&index, &numbers, found);
            entry.measure_sample(sample.bytes());
            *kept = Some(Arc::new(sample));
            drop(index);
            self.evict(scope, entry);
        }
        Ok(Outline {
            store: store.clone(),
            sample: kept.clone().unwrap_or_default(),
            without_vectors,
        })
    }

    /// Puts the index in the place of its outline, unless that is gone meanwhile.
    fn replace(&self, scope: &Scope, outline: &Arc<Entry>, whole: &Arc<Entry>) {
        self.lock().replace(scope, outline, whole);
        self.evict(scope, whole);
    }
}
