//! Pages of a listing, and the tokens between them.

use memfleet_ports::ledger::{Page, PageToken};
use memfleet_ports::store::StoreError;

/// A page of at most `limit` of the items; more of them mean that there is a next one.
pub fn cut<T>(mut items: Vec<T>, limit: u32, token: impl Fn(&T) -> PageToken) -> Page<T> {
    let more = items.len() > limit as usize;
    items.truncate(limit as usize);
    Page {
        next: items.last().filter(|_| more).map(token),
        items,
    }
}

/// Bytes of items after which a page in the making ends, so that what one listing holds is bounded whatever the items are.
pub const PAGE_BYTES: usize = 16 << 20;

/// A page that is filled item by item. It ends at its limit of items or at [`PAGE_BYTES`], whichever comes first.
#[derive(Debug)]
pub struct GrowingPage<T> {
    limit: usize,
    items: Vec<T>,
    bytes: usize,
    last: Option<PageToken>,
    is_over: bool,
}

impl<T> GrowingPage<T> {
    /// An empty page of at most `limit` items.
    pub fn new(limit: u32) -> Self {
        Self {
            limit: limit as usize,
            items: Vec::new(),
            bytes: 0,
            last: None,
            is_over: false,
        }
    }

    /// Adds the next item of the listing, with its size and place. Where the page is full the item is of the next one.
    pub fn add(&mut self, item: T, bytes: usize, token: PageToken) {
        if self.items.len() == self.limit || self.bytes >= PAGE_BYTES {
            self.is_over = true;
            return;
        }
        self.items.push(item);
        self.bytes += bytes;
        self.last = Some(token);
    }

    /// Whether an item of the next page was seen.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Items that the listing can use at most: one more than the page holds says whether there is a next one.
    pub fn wanted(&self) -> usize {
        self.limit + 1 - self.items.len()
    }

    /// The page.
    pub fn done(self) -> Page<T> {
        Page {
            items: self.items,
            next: self.last.filter(|_| self.is_over),
        }
    }
}

/// The same of rows, of which only those of the page are read: `read` makes an item of a row, `token` says where the last one stands.
pub fn page<R, T, E>(
    rows: &[R],
    limit: usize,
    read: impl Fn(&R) -> Result<T, E>,
    token: impl FnOnce(&R) -> Result<PageToken, E>,
) -> Result<Page<T>, E> {
    let items = rows
        .iter()
        .take(limit)
        .map(read)
        .collect::<Result<_, E>>()?;
    let last = limit.checked_sub(1).and_then(|last| rows.get(last));
    let next = match last {
        Some(row) if rows.len() > limit => Some(token(row)?),
        _ => None,
    };
    Ok(Page { items, next })
}

/// The place in a listing as a token.
pub fn to_token<const N: usize>(place: [i64; N]) -> PageToken {
    PageToken(place.map(|number| number.to_string()).join("."))
}

/// The place that a token names.
pub fn from_token<const N: usize>(token: &PageToken) -> Result<[i64; N], StoreError> {
    let numbers: Option<Vec<i64>> = token
        .0
        .split('.')
        .map(|number| number.parse().ok())
        .collect();
    numbers
        .and_then(|numbers| numbers.try_into().ok())
        .ok_or(StoreError::PageToken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_rows_names_the_next_only_where_there_is_one() {
        let next = |rows: &[i64], limit| {
            let page = page(
                rows,
                limit,
                |row| Ok(*row),
                |row| Ok::<_, ()>(to_token([*row])),
            );
            page.map(|page| (page.items, page.next)).unwrap()
        };
        assert_eq!(next(&[1, 2, 3], 2), (vec![1, 2], Some(to_token([2]))));
        assert_eq!(next(&[1, 2], 2), (vec![1, 2], None));
        assert_eq!(next(&[1], 0), (vec![], None));
    }

    #[test]
    fn a_growing_page_ends_at_its_limit_or_its_bytes_and_names_the_next_one() {
        let fill = |limit, sizes: &[usize]| {
            let mut page = GrowingPage::new(limit);
            let mut seen = 0;
            for (at, bytes) in sizes.iter().enumerate() {
                if page.is_over() {
                    break;
                }
                page.add(at, *bytes, to_token([at as i64]));
                seen += 1;
            }
            let page = page.done();
            (page.items, page.next, seen)
        };
        let half = PAGE_BYTES / 2;
        assert_eq!(fill(2, &[1, 1]), (vec![0, 1], None, 2));
        assert_eq!(fill(2, &[1, 1, 1, 1]), (vec![0, 1], Some(to_token([1])), 3));
        assert_eq!(fill(9, &[half, half]), (vec![0, 1], None, 2));
        let cut = (vec![0, 1], Some(to_token([1])), 3);
        assert_eq!(fill(9, &[half, half, 1, 1]), cut);
        let huge = (vec![0], Some(to_token([0])), 2);
        assert_eq!(fill(9, &[2 * PAGE_BYTES, 1]), huge);
    }

    #[test]
    fn a_token_names_its_place_and_others_are_refused() {
        let place = [i64::MIN, -1, 0, i64::MAX];
        assert_eq!(from_token(&to_token(place)).unwrap(), place);
        for other in ["", "1.2", "1.2.3.x", "1.2.3.4.5"] {
            assert!(
                from_token::<4>(&PageToken(other.into())).is_err(),
                "{other}"
            );
        }
    }
}
