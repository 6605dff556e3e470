//! Places at something of which there is a limited number (calls, connections, bytes), in fair shares: each owner may hold half of what the others leave, and
//! each member of an owner half of what the owner's other members leave of that.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A limited number of places.
#[derive(Debug, Clone)]
pub(crate) struct Places(Arc<Hall>);

#[derive(Debug)]
struct Hall {
    limit: usize,
    most: usize,
    held: Mutex<Held>,
}

/// Places that are taken.
#[derive(Debug, Default)]
struct Held {
    all: usize,
    owners: HashMap<String, Owned>,
}

/// Places of one owner, those of no member among them.
#[derive(Debug, Default)]
struct Owned {
    all: usize,
    members: HashMap<String, usize>,
}

/// Who has no place left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// Anyone: all are taken.
    All,
    /// The owner: it holds its share.
    Owner,
    /// The member: it holds its share of the owner's.
    Member,
}

/// Places that are free again once this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    hall: Arc<Hall>,
    owner: String,
    member: Option<String>,
    count: usize,
}

impl Places {
    /// `limit` places.
    pub(crate) fn new(limit: usize) -> Self {
        Self::of_each(limit, limit)
    }

    /// `limit` places, of which an owner never has more than `most`.
    pub(crate) fn of_each(limit: usize, most: usize) -> Self {
        Self(Arc::new(Hall {
            limit,
            most,
            held: Mutex::default(),
        }))
    }

    /// How many there are.
    pub(crate) fn limit(&self) -> usize {
        self.0.limit
    }

    /// A place for this member of this owner.
    pub(crate) fn take(&self, owner: &str, member: Option<&str>) -> Result<Place, Full> {
        let mut place = self.none(owner, member);
        place.grow(1)?;
        Ok(place)
    }

    /// What may grow into places of this member of this owner.
    pub(crate) fn none(&self, owner: &str, member: Option<&str>) -> Place {
        Place {
            hall: self.0.clone(),
            owner: owner.to_owned(),
            member: member.map(str::to_owned),
            count: 0,
        }
    }
}

impl Place {
    /// Holder of the places: the owner, and its member.
    pub(crate) fn holder(&self) -> (&str, Option<&str>) {
        (&self.owner, self.member.as_deref())
    }

    /// How many places it is.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Takes so many places more, or none.
    pub(crate) fn grow(&mut self, more: usize) -> Result<(), Full> {
        let (limit, most) = (self.hall.limit, self.hall.most);
        let member = self.member.as_deref();
        let mut held = self.hall.held();
        if held.all + more > limit {
            return Err(Full::All);
        }
        let (own, of_member) = held.of(&self.owner, member);
        let of_owner = share(limit - (held.all - own)).min(most);
        if own + more > of_owner {
            return Err(Full::Owner);
        }
        if let Some(of_member) = of_member
            && of_member + more > share(of_owner - (own - of_member))
        {
            return Err(Full::Member);
        }
        held.all += more;
        let owned = held.owners.entry(self.owner.clone()).or_default();
        owned.all += more;
        if let Some(member) = member {
            *owned.members.entry(member.to_owned()).or_default() += more;
        }
        drop(held);
        self.count += more;
        Ok(())
    }

    /// Gives all of its places back.
    pub(crate) fn clear(&mut self) {
        let count = std::mem::take(&mut self.count);
        if count == 0 {
            return;
        }
        let mut held = self.hall.held();
        held.all -= count;
        let Some(owned) = held.owners.get_mut(&self.owner) else {
            return;
        };
        owned.all -= count;
        if let Some(member) = &self.member
            && let Some(of_member) = owned.members.get_mut(member)
        {
            *of_member -= count;
            if *of_member == 0 {
                owned.members.remove(member);
            }
        }
        if owned.all == 0 {
            held.owners.remove(&self.owner);
        }
    }
}

/// Half of what others leave, and one place at least.
fn share(left: usize) -> usize {
    (left / 2).max(1)
}

impl Held {
    /// What an owner and its member hold.
    fn of(&self, owner: &str, member: Option<&str>) -> (usize, Option<usize>) {
        let owned = self.owners.get(owner);
        let of_member = member.map(|member| {
            let members = owned.map(|owned| &owned.members);
            members
                .and_then(|members| members.get(member))
                .copied()
                .unwrap_or_default()
        });
        (owned.map_or(0, |owned| owned.all), of_member)
    }
}

impl Hall {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Takes places until there is none.
    fn fill(places: &Places, owner: &str, member: Option<&str>) -> (Vec<Place>, Full) {
        let mut taken = Vec::new();
        loop {
            match places.take(owner, member) {
                Ok(place) => taken.push(place),
                Err(full) => return (taken, full),
            }
        }
    }

    #[test]
    fn an_owner_has_half_of_what_the_others_leave_and_each_member_half_of_that() {
        let places = Places::new(256);
        let (first, full) = fill(&places, "acme", Some("a"));
        assert_eq!((first.len(), full), (64, Full::Member));
        let (second, full) = fill(&places, "acme", Some("b"));
        assert_eq!((second.len(), full), (32, Full::Member));
        let (theirs, _) = fill(&places, "beta", Some("c"));
        assert_eq!(theirs.len(), 40, "half of half of the 160 that are left");
        drop((first, second, theirs));
        assert_eq!(places.0.held().all, 0);
        assert!(places.0.held().owners.is_empty());
        assert_eq!(fill(&places, "beta", None).0.len(), 128);
    }

    #[test]
    fn a_single_place_is_whoevers_comes_first() {
        let places = Places::new(1);
        let place = places.take("acme", Some("a")).unwrap();
        assert_eq!(places.take("beta", Some("b")).unwrap_err(), Full::All);
        drop(place);
        assert!(places.take("beta", Some("b")).is_ok());
        assert_eq!(Places::new(0).take("acme", None).unwrap_err(), Full::All);
    }

    #[test]
    fn a_place_grows_within_its_share_and_gives_all_back() {
        let bytes = Places::new(1_000);
        let mut first = bytes.none("acme", Some("a"));
        first.grow(200).unwrap();
        assert_eq!(first.grow(51), Err(Full::Member));
        first.grow(50).unwrap();
        assert_eq!(first.count(), 250);
        let mut second = bytes.none("acme", Some("b"));
        assert_eq!(second.grow(126), Err(Full::Member));
        second.grow(125).unwrap();
        assert_eq!(bytes.none("acme", None).grow(126), Err(Full::Owner));
        assert_eq!(bytes.none("beta", None).grow(626), Err(Full::All));
        first.clear();
        drop(second);
        assert_eq!(bytes.0.held().all, 0);
        assert!(bytes.0.held().owners.is_empty());
    }

    #[test]
    fn no_owner_has_more_than_the_most_of_each() {
        let places = Places::of_each(100, 3);
        assert_eq!(fill(&places, "here", None).0.len(), 3);
        assert_eq!(fill(&places, "there", None).0.len(), 3);
    }

    proptest! {
        #[test]
        fn places_are_never_more_than_the_limit_and_all_come_back(
            limit in 0usize..20,
            steps in prop::collection::vec((0u8..4, 0u8..3, any::<bool>()), 0..200),
        ) {
            let places = Places::new(limit);
            let mut taken = Vec::new();
            for (owner, member, leaves) in steps {
                let (owner, member) = (owner.to_string(), member.to_string());
                match leaves {
                    true => drop(taken.pop()),
                    false => taken.extend(places.take(&owner, Some(&member))),
                }
                prop_assert!(taken.len() <= limit);
                prop_assert_eq!(places.0.held().all, taken.len());
            }
            drop(taken);
            prop_assert!(places.0.held().owners.is_empty());
        }
    }
}
