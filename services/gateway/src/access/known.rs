//! What was read of the store a moment ago. While the store cannot be reached it counts for some minutes longer, so that an outage of
//! the store is not one of everything.

use std::convert::Infallible;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use memfleet_ports::store::{Result, StoreError};
use quick_cache::sync::Cache;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

/// Values at most.
const CAPACITY: usize = 10_000;
/// How long the store may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a value counts while the store cannot be reached …
const STALE: Duration = Duration::from_mins(5);
/// … and after which pause the store is asked again.
const PAUSE: Duration = Duration::from_secs(1);

/// Values by what they were asked for; what does not exist is asked for each time.
pub struct Known<K, V>(Cache<K, Arc<Entry<V>>>);

/// One at a time asks the store, the others wait for it.
type Entry<V> = Mutex<Reading<V>>;

struct Reading<V> {
    /// What was read, and when it was asked for.
    value: Option<(V, Instant)>,
    /// Until when the store is not asked again, and what it said.
    pause: Option<(Instant, StoreError)>,
}

impl<V: Clone> Reading<V> {
    /// The value, if it was asked for no longer ago than this.
    fn within(&self, age: Duration, now: Instant) -> Option<V> {
        let known = self.value.as_ref();
        let known = known.filter(|(_, at)| now < *at + age);
        known.map(|(value, _)| value.clone())
    }

    /// What counts while the store cannot be reached, which says so.
    fn without_the_store(&self, now: Instant, error: StoreError) -> Result<Option<V>> {
        self.within(STALE, now)
            .map_or(Err(error), |value| Ok(Some(value)))
    }
}

impl<K: Hash + Eq + Clone, V: Clone> Default for Known<K, V> {
    fn default() -> Self {
        Self(Cache::new(CAPACITY))
    }
}

impl<K: Hash + Eq + Clone, V: Clone> Known<K, V> {
    /// The value, as old as `fresh` at most where the store answers.
    pub async fn get(
        &self,
        key: &K,
        fresh: Duration,
        read: impl Future<Output = Result<Option<V>>>,
    ) -> Result<Option<V>> {
        let begin = || {
            let nothing = Reading {
                value: None,
                pause: None,
            };
            Ok::<_, Infallible>(Arc::new(Mutex::new(nothing)))
        };
        let Ok(entry) = self.0.get_or_insert_with(key, begin);
        let mut reading = entry.lock().await;
        let now = Instant::now();
        if let Some(value) = reading.within(fresh, now) {
            return Ok(Some(value));
        }
        if let Some((end, error)) = reading.pause.clone()
            && now < end
        {
            return reading.without_the_store(now, error);
        }
        reading.pause = None;
        let answer = timeout(PATIENCE, read).await;
        match answer.unwrap_or_else(|_| Err(late())) {
            Ok(value) => {
                reading.value = value.clone().map(|value| (value, now));
                if value.is_none() {
                    self.0.remove(key);
                }
                Ok(value)
            }
            Err(error @ StoreError::Unavailable(_)) => {
                reading.pause = Some((Instant::now() + PAUSE, error.clone()));
                reading.without_the_store(now, error)
            }
            Err(error) => Err(error),
        }
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.0.clear();
    }
}

fn late() -> StoreError {
    StoreError::Unavailable("it does not answer".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRESH: Duration = Duration::from_secs(2);

    async fn get(known: &Known<(), u32>, answer: Result<Option<u32>>) -> Result<Option<u32>> {
        known.get(&(), FRESH, async { answer }).await
    }

    fn down() -> Result<Option<u32>> {
        Err(StoreError::Unavailable("down".to_owned()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_value_counts_for_as_long_as_it_is_fresh() {
        let known = Known::default();
        assert_eq!(get(&known, Ok(Some(1))).await, Ok(Some(1)));
        assert_eq!(get(&known, Ok(Some(2))).await, Ok(Some(1)));
        tokio::time::advance(FRESH).await;
        assert_eq!(get(&known, Ok(Some(2))).await, Ok(Some(2)));
        known.clear();
        assert_eq!(get(&known, Ok(None)).await, Ok(None));
        assert_eq!(get(&known, Ok(Some(3))).await, Ok(Some(3)));
    }

    #[tokio::test(start_paused = true)]
    async fn while_the_store_is_down_what_is_known_goes_on_for_some_minutes_and_nothing_else() {
        let known = Known::default();
        assert_eq!(get(&known, down()).await, down());
        assert_eq!(get(&known, Ok(Some(1))).await, down(), "not asked at once");
        tokio::time::advance(PAUSE).await;
        get(&known, Ok(Some(1))).await.unwrap();
        tokio::time::advance(FRESH).await;
        assert_eq!(get(&known, down()).await, Ok(Some(1)));
        tokio::time::advance(STALE / 2).await;
        assert_eq!(get(&known, down()).await, Ok(Some(1)));
        tokio::time::advance(STALE / 2).await;
        assert_eq!(get(&known, down()).await, down());
        tokio::time::advance(PAUSE).await;
        assert_eq!(get(&known, Ok(Some(2))).await, Ok(Some(2)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_hangs_is_one_that_is_down() {
        let known = Known::default();
        get(&known, Ok(Some(1))).await.unwrap();
        tokio::time::advance(FRESH).await;
        let answer = known.get(&(), FRESH, std::future::pending()).await;
        assert_eq!(answer, Ok(Some(1)));
    }
}
