//! How many dead letters there are, and whether there is any.

use std::sync::{MutexGuard, PoisonError};
use std::time::Instant;

use memfleet_ports::store::Result;

use crate::admission::{Admission, MOMENT};
use crate::shared::Shared;
use crate::subject::Letter;

/// The letters of a tenant are counted when this process has buried so many more.
pub const COUNTED: u64 = 64;

/// What is known of dead letters.
#[derive(Debug, Default)]
pub struct Letters {
    /// When there was none at all.
    none_at: Option<Instant>,
    /// How many this process buried.
    buried: u64,
}

impl Admission {
    fn letters(&self) -> MutexGuard<'_, Letters> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Whether there is no dead letter at all, as is usual: then nobody who publishes has to look for one. What this process
    /// buries is known at once, what others bury after a moment.
    pub async fn has_no_letters(&self) -> Result<bool> {
        let buried = {
            let letters = self.admission.letters();
            if letters.none_at.is_some_and(|at| at.elapsed() < MOMENT) {
                return Ok(true);
            }
            letters.buried
        };
        let asked_at = Instant::now();
        let info = self.link.stream(&self.names.letters).await?;
        let is_empty = info.state.messages == 0;
        let mut letters = self.admission.letters();
        if is_empty && letters.buried == buried {
            letters.none_at = Some(asked_at);
        }
        Ok(is_empty)
    }

    /// A tenant has one more dead letter, of so many bytes. Now and then its oldest are removed
    /// beyond the bounds.
    pub async fn note_letter(&self, tenant: &str, bytes: u64) -> Result<()> {
        {
            let mut letters = self.admission.letters();
            letters.none_at = None;
            letters.buried += 1;
        }
        if self.tally.count(tenant, bytes) {
            self.bound_letters(tenant).await?;
        }
        Ok(())
    }

    async fn bound_letters(&self, tenant: &str) -> Result<()> {
        let stream = &self.names.letters;
        let filter = self.names.letters_of_tenant(tenant);
        let letters = self.link.sizes(stream, &filter).await?.into_iter();
        let placed = letters.filter_map(|letter| {
            let place = Letter::parse(&self.names, &letter.subject)?;
            Some((place, letter))
        });
        let mut letters: Vec<_> = placed.collect();
        letters.sort_unstable_by(|(one, _), (other, _)| other.cmp(one));
        let (mut number, mut bytes, mut removed) = (0, 0, 0);
        for (_, letter) in letters {
            if number < self.options.letters && bytes < self.options.letter_bytes {
                (number, bytes) = (number + 1, bytes + letter.bytes);
            } else {
                removed += u64::from(self.link.delete(stream, letter.sequence).await?);
            }
        }
        if removed > 0 {
            tracing::warn!(
                tenant,
                removed,
                "the oldest dead letters are removed: there are too many, or they are too large"
            );
            metrics::counter!("memfleet_dead_letters_removed_total").increment(removed);
        }
        Ok(())
    }

    /// How many dead letters a tenant has, and how many there are. The subjects of other tenants
    /// are not listed.
    pub async fn count_letters(&self, tenant: Option<&str>) -> Result<(u64, u64)> {
        let stream = &self.names.letters;
        let own = async {
            let Some(tenant) = tenant else { return Ok(0) };
            let filter = self.names.letters_of_tenant(tenant);
            Ok(self.link.subjects(stream, &filter).await?.len() as u64)
        };
        let (own, info) = futures::try_join!(own, self.link.stream(stream))?;
        Ok((own, info.state.messages))
    }
}
