//! What was read of the store a moment ago. While the store cannot be reached it counts for some minutes longer, so that an outage of
//! the store is not one of everything.

use std::convert::Infallible;
use std::hash::Hash;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use memfleet_ports::store::{Result, StoreError};
use quick_cache::sync::Cache;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::{Instant, timeout};

/// Values at most.
const CAPACITY: usize = 10_000;
/// How long the store may take to answer where nothing else is said …
const PATIENCE: Duration = Duration::from_secs(2);
/// … and how long where it did not the last time: who calls must not wait for a store that is away.
const IMPATIENCE: Duration = Duration::from_millis(200);
/// How long a value counts while the store cannot be reached …
const STALE: Duration = Duration::from_mins(5);
/// … and after which pause the store is asked again.
const PAUSE: Duration = Duration::from_secs(1);

/// How many at once ask for what nobody here has asked for yet: guesses must not take the store away from everybody else.
const STRANGERS: usize = 4;

/// Values by what they were asked for; what does not exist is asked for each time.
pub struct Known<K, V> {
    entries: Cache<K, Arc<Entry<V>>>,
    strangers: Semaphore,
    outage: Arc<Outage>,
    patience: Duration,
}

/// That the store did not answer when it was asked last: until when it is not asked again, and what it said. All that is known of one store
/// shares it, or a call would wait once for each.
#[derive(Default)]
pub struct Outage(StdMutex<Option<(Instant, StoreError)>>);

impl Outage {
    fn lasting(&self) -> Option<(Instant, StoreError)> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Notes how the store answered.
    fn note<T>(&self, answer: &Result<T>) {
        let outage = match answer {
            Err(error @ StoreError::Unavailable(_)) => {
                Some((Instant::now() + PAUSE, error.clone()))
            }
            _ => None,
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = outage;
    }
}

/// What was read, and when it was asked for. One at a time asks the store, the others wait for it.
type Entry<V> = Mutex<Option<(V, Instant)>>;

impl<K: Hash + Eq + Clone, V: Clone> Default for Known<K, V> {
    fn default() -> Self {
        Self {
            entries: Cache::new(CAPACITY),
            strangers: Semaphore::new(STRANGERS),
            outage: Arc::default(),
            patience: PATIENCE,
        }
    }
}

impl<K: Hash + Eq + Clone, V: Clone> Known<K, V> {
    /// Nothing is known yet of a store whose outages others see, too.
    pub fn of(outage: &Arc<Outage>) -> Self {
        Self {
            outage: outage.clone(),
            ..Self::default()
        }
    }

    /// The same, where the store may take this long to answer.
    pub fn waiting(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// The value, as old as `fresh` at most where the store answers.
    pub async fn get(
        &self,
        key: &K,
        fresh: Duration,
        read: impl Future<Output = Result<Option<V>>>,
    ) -> Result<Option<V>> {
        self.get_while(key, |_| fresh, read).await
    }

    /// The same, where the value says for how long it is fresh.
    pub async fn get_while(
        &self,
        key: &K,
        fresh: impl Fn(&V) -> Duration,
        read: impl Future<Output = Result<Option<V>>>,
    ) -> Result<Option<V>> {
        let Ok(entry) = self
            .entries
            .get_or_insert_with(key, || Ok::<_, Infallible>(Arc::default()));
        let mut reading = entry.lock().await;
        if let Some((value, at)) = reading.as_ref()
            && at.elapsed() < fresh(value)
        {
            return Ok(Some(value.clone()));
        }
        match self.ask(reading.is_none(), read).await {
            Ok(value) => *reading = value,
            Err(error @ StoreError::Unavailable(_)) if reading.is_some() => {
                return within(reading.as_ref(), STALE).map_or(Err(error), |value| Ok(Some(value)));
            }
            Err(error) => {
                self.entries.remove(key);
                return Err(error);
            }
        }
        if reading.is_none() {
            self.entries.remove(key);
        }
        Ok(reading.clone().map(|(value, _)| value))
    }

    /// Asks the store, unless it did not answer a moment ago.
    async fn ask(
        &self,
        is_stranger: bool,
        read: impl Future<Output = Result<Option<V>>>,
    ) -> Result<Option<(V, Instant)>> {
        let _place = match is_stranger {
            true => Some(self.strangers.acquire().await.expect("it is never closed")),
            false => None,
        };
        let begun = Instant::now();
        let patience = match self.outage.lasting() {
            Some((end, error)) if begun < end => return Err(error),
            Some(_) => IMPATIENCE,
            None => self.patience,
        };
        let answer = timeout(patience, read).await;
        let answer = answer.unwrap_or_else(|_| Err(late()));
        self.outage.note(&answer);
        Ok(answer?.map(|value| (value, begun)))
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.entries.clear();
    }
}

/// The value, if it was asked for no longer ago than this.
fn within<V: Clone>(reading: Option<&(V, Instant)>, age: Duration) -> Option<V> {
    let (value, at) = reading?;
    (at.elapsed() < age).then(|| value.clone())
}

fn late() -> StoreError {
    StoreError::Unavailable("it does not answer".to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

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

    #[tokio::test(start_paused = true)]
    async fn guesses_wait_for_each_other_and_what_is_known_does_not_wait_for_them() {
        let known = Arc::new(Known::<u32, u32>::default());
        known.get(&0, FRESH, async { Ok(Some(1)) }).await.unwrap();
        tokio::time::advance(FRESH).await;
        let asked = Arc::new(AtomicUsize::new(0));
        for guess in 1..100 {
            let (known, asked) = (known.clone(), asked.clone());
            let read = async move {
                asked.fetch_add(1, Ordering::SeqCst);
                std::future::pending().await
            };
            tokio::spawn(async move { known.get(&guess, FRESH, read).await });
        }
        tokio::task::yield_now().await;
        let answer = known.get(&0, FRESH, async { Ok(Some(2)) }).await;
        assert_eq!(answer, Ok(Some(2)));
        assert_eq!(asked.load(Ordering::SeqCst), STRANGERS);
        let behind = known.get(&100, FRESH, async { Ok(Some(1)) }).await;
        assert_eq!(behind, Err(late()), "a store that hangs is asked no more");
        assert_eq!(asked.load(Ordering::SeqCst), STRANGERS);
    }
}
