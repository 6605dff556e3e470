//! Listings: which part is asked for, and where the next one begins.

use memfleet_ports::ledger::{Page, PageToken};
use memfleet_ports::memory::PageRequest;

use super::Fields;
use crate::limits;

impl Fields {
    /// The part of a listing that a request asks for.
    pub(super) fn page(&mut self, size: u32, token: String) -> Option<PageRequest> {
        let limit = self.number(
            "page_size",
            size,
            PageRequest::default().limit,
            1..=limits::PAGE,
        );
        let after = self.text("page_token", token, limits::PAGE_TOKEN);
        Some(PageRequest {
            limit: limit?,
            after: page_token(after?),
        })
    }
}

/// The token of a message; an empty one is none.
pub(super) fn page_token(text: String) -> Option<PageToken> {
    (!text.is_empty()).then_some(PageToken(text))
}

/// A page's items as messages, and the token of the next page.
pub(super) fn parts<T, M: From<T>>(page: Page<T>) -> (Vec<M>, String) {
    let items = page.items.into_iter().map(Into::into).collect();
    (items, page.next.map(|token| token.0).unwrap_or_default())
}
