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
