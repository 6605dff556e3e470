//! Where the passages of a space are in the tables that are keyed by space and number.

/// The key of passage 0 of a space.
pub fn first_key(space: i64) -> i64 {
    space << 32
}
